"""The process that outlives the agent and ends everything that the agent left behind.

It is the parent of the agent and, as the kernel's subreaper, of everything whose own parent ends: so whatever the
agent started is found beneath it. When the agent ends, by whatever means, or its time is over, all of that is ended.
"""

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Callable, List, NoReturn, Optional

_CUT_SHORT = 3  # no status of a Python that does not start: the shell that waits for us must try no other one
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_HEEDED = (signal.SIGCHLD, signal.SIGALRM, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_MOST_ROUNDS = 50  # a process that forks as it is ended is found in the next round


def guarded(work: "Callable[[], object]", seconds: float) -> "NoReturn":
    """Run `work()` in a child and end with it; after `seconds` it and everything beneath is ended. Never returns."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    guard = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
    child = os.fork()
    if child == 0:
        _end_with_the_guard()
        if os.getppid() == guard:
            work()
        os._exit(0)
    _let_go_of_the_streams()
    _watch(child, seconds)


def _end_with_the_guard() -> None:
    """If the guard is killed, end the processes that remain before this one ends."""
    signal.signal(signal.SIGTERM, _last_of_all)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _last_of_all(number: int, frame: "Optional[FrameType]") -> "NoReturn":
    end_descendants()
    os._exit(_CUT_SHORT)


def prctl(option: int, value: int) -> None:
    """Ask the kernel; a system without it is served less well, and no worse."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def _let_go_of_the_streams() -> None:
    """Leave them to the agent alone: the head sees the end of output when it ends, not when the guard does."""
    empty = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(empty, number)


def _watch(child: int, seconds: float) -> "NoReturn":
    """Wait for the end of the child, of the time, or of the session, and then end all that is left.

    The signals are taken from the queue and never interrupt: one that comes a moment late, while the rest is being
    ended, must not end the ending. What that needs is imported now, beside the agent's start: later, the file system
    that it lies on may hang.
    """
    from ncheck.agent import proc  # noqa: F401

    signal.setitimer(signal.ITIMER_REAL, max(1.0, seconds))
    status = None
    while status is None and signal.sigwait(_HEEDED) == signal.SIGCHLD:
        status = _reaped(child)
    end_descendants()
    sys.stdout = sys.stderr = None
    os._exit(0 if status == 0 else _CUT_SHORT)


def _reaped(child: int) -> "Optional[int]":
    """Take the statuses of all that ended; return the child's, None as long as it goes on."""
    pid = None
    while pid not in (0, child):
        pid, status = os.waitpid(-1, os.WNOHANG)
    return status if pid else None


def end_descendants() -> None:
    """End everything beneath this process; what sleeps in the kernel is told and not waited for."""
    for _ in range(_MOST_ROUNDS):
        beneath = descendants(os.getpid())
        if not beneath:
            return
        for pid in beneath:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        _reap()


def _reap() -> None:
    import time

    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        time.sleep(0.01)
    except OSError:
        pass


def descendants(ancestor: int) -> "List[int]":
    """Return the processes beneath one by one walk over /proc: zombies are left out, and what is beneath them is not.

    A process whose first thread has ended is shown as a zombie while its other threads, and their children, live on.
    """
    from ncheck.agent import proc

    table = {pid: now for pid, now in ((pid, proc.stat(pid)) for pid in proc.pids()) if now}
    below = proc.beneath([ancestor], {pid: now.parent for pid, now in table.items()})
    return [pid for pid in below if not table[pid].ended]
