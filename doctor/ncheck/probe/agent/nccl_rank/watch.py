"""Ends a rank in time: at its deadline, or at SIGTERM, NCCL is aborted and the process ends.

This is a thread, because a call into NCCL may never return; ctypes lets other threads run meanwhile.
"""

import os
import signal
import threading
import time

from ncheck.probe.agent import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, NoReturn, Optional

    from ncheck.probe.agent.nccl_rank.messages import Messages

FAILED, ASKED_TO_END, LATE = 1, 3, 4  # exit statuses
_FOR_ABORT = 3.0  # seconds that ncclCommAbort may take
_BEFORE_REMOVING = 0.3  # twice this until the rest is removed: a launcher may kill a second later


class Watch:
    """`step` is what the rank does now; `abort`, where there is something to abort, does it."""

    def __init__(self, messages: "Messages", ends: float) -> None:
        self.messages, self.ends = messages, ends
        self.step = "start"
        self.abort: "Optional[Callable[[], object]]" = None
        self.leaving = threading.Lock()  # the thread that has it ends the process, and never releases it

    def start(self) -> None:
        """Start the thread. Blocks SIGTERM in this thread and in those that it starts: the watch waits for it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=self._watch, daemon=True).start()

    def at(self, step: str) -> None:
        """Report the next step."""
        self.step = step
        self.messages.send("step", step=step)

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return self.ends - time.monotonic()

    def _watch(self) -> None:
        received = signal.sigtimedwait({signal.SIGTERM}, max(0.0, self.left()))
        if received is None:
            self.messages.failure(self.step, "its time was over in: " + self.step, late=True)
        self.end(LATE if received is None else ASKED_TO_END)

    def end(self, status: int) -> "NoReturn":
        """Abort NCCL within its time limit, and end the process. Never returns."""
        self.leaving.acquire()
        own = self.messages.own_segments()
        aborting = threading.Thread(target=self.abort, daemon=True) if self.abort else None
        if aborting:
            aborting.start()
            aborting.join(_BEFORE_REMOVING)
        if self.messages.alone and status != FAILED:  # if it failed alone, another rank may still use it
            self._clear(own)
        if aborting:
            aborting.join(_FOR_ABORT - 2 * _BEFORE_REMOVING)
        os._exit(status)

    def _clear(self, own: "Dict[str, int]") -> None:
        """Remove what the abort has not removed, and report it: all ranks end, and after a ^C of the head nothing else
        removes it.
        """
        ends = time.monotonic() + _BEFORE_REMOVING
        while segments.still(own) and time.monotonic() < ends:
            time.sleep(0.02)
        lines = segments.removed({}, own)
        self.messages.removed(lines, sorted(set(own) - set(segments.still(own))))
