"""Looks after a rank's time: at its deadline, or when its parent says so, NCCL is aborted and the process ends.

This is a thread, for a call into NCCL may never come back; ctypes lets other threads run meanwhile.
"""

import os
import signal
import threading
import time

from ncheck.agent.tasks import segments

FAILED, TOLD_TO_END, LATE = 1, 3, 4  # exit statuses
_FOR_ABORT = 3.0  # seconds that ncclCommAbort may take
_BEFORE_REMOVING = 0.3  # and twice this until what it did not remove is removed: a launcher may kill a second later


class Watch:
    """`step` is what the rank does now; `abort`, where there is something to abort, does it."""

    def __init__(self, telling, ends):
        self.telling, self.ends = telling, ends
        self.step = "start"
        self.abort = None
        self.leaving = threading.Lock()  # whose thread has it leaves the process, and never gives it back

    def start(self):
        """Begin to watch. Blocks SIGTERM in this thread and in those that it starts: the watch waits for it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=self._watch, daemon=True).start()

    def at(self, step):
        """Tell what comes now."""
        self.step = step
        self.telling.say("step", step=step)

    def left(self):
        """Return the seconds until the deadline."""
        return self.ends - time.monotonic()

    def _watch(self):
        heard = signal.sigtimedwait({signal.SIGTERM}, max(0.0, self.left()))
        if heard is None:
            self.telling.failure(self.step, "its time was over in: " + self.step, late=True)
        self.end(LATE if heard is None else TOLD_TO_END)

    def end(self, status):
        """Abort what NCCL does, for as long as that may take, and leave. Never returns."""
        self.leaving.acquire()
        held = self.telling.held()
        if self.abort:
            thread = threading.Thread(target=self.abort, daemon=True)
            thread.start()
            thread.join(_BEFORE_REMOVING)
        if self.telling.alone and status != FAILED:  # of one that fails by itself another rank may have it, too
            self._clear(held)
        if self.abort:
            thread.join(_FOR_ABORT - 2 * _BEFORE_REMOVING)
        os._exit(status)

    def _clear(self, held):
        """Remove what abort has not removed by then, and tell of it: all ranks are to end, and after a ^C of the head
        nobody sweeps up.
        """
        ends = time.monotonic() + _BEFORE_REMOVING
        while segments.still(held) and time.monotonic() < ends:
            time.sleep(0.02)
        words = segments.removed({}, held)
        self.telling.removed(words, sorted(set(held) - set(segments.still(held))))
