"""Programs that the local host runs: to their end, several at once, with limits on time and output; and the end of a
child that runs beside ncheck.

A killed mpirun leaves ssh processes that keep its output open, and one that waits for a silent node ignores SIGTERM. So
no read may block, and at the end every process of its session is killed. Of programs that get time to end others, those
that left the session are killed, too: a variable in their environment shows them. psutil finds them all, and what is
beneath a child. Without it (the single file) only the process group is ended.

This is imported inside jobs: what only the command line needs is imported where it is used.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, BinaryIO

from ncheck.agent import proc
from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import threading
    from subprocess import Popen

    from psutil import Process

MOST = 8 * 1024 * 1024  # bytes kept of each stream, from its end
GRACE = 2.0  # seconds for mpirun to end its ranks and daemons after SIGTERM
_MARK = "NCHECK_CHILD"  # the variable by which their processes are recognized
_STRIDE = 0.2  # seconds between two checks for programs that ended
_CHUNK = 65536
_ROUNDS = 20  # a process that forks while it is being killed is found in the next round


@dataclass(frozen=True)
class Ended:
    """How one program ended. `late`: it ran out of time. `exit_status` is None if it had to be killed."""

    stdout: str
    stderr: str
    exit_status: int | None
    late: bool
    seconds: float


@dataclass
class _Child:
    process: Popen[bytes]
    streams: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    late: bool = False
    ended: float = 0.0


def run(argv: Sequence[str], seconds: float, environ: Mapping[str, str] = os.environ) -> Ended:
    """Run one program to its end, or kill it after `seconds`. Raises OSError if it cannot be started."""
    return run_all([argv], seconds, environ, grace=0.0)[0]


def run_all(
    lines: Sequence[Sequence[str]],
    seconds: float,
    environ: Mapping[str, str],
    clock: Callable[[], float] = time.monotonic,
    grace: float = GRACE,
) -> list[Ended]:
    """Run all these programs at once for at most `seconds`, of which `grace` are for those that are asked to end.

    Raises OSError if one cannot be started.
    """
    import threading

    began, children, failed, started = clock(), list[_Child](), list[OSError](), threading.Event()
    mark = os.urandom(16).hex() if grace else ""
    marked = {**environ, _MARK: mark} if mark else environ
    # Started in a thread, because ^C in the middle of a start would lose the process. The event is needed because a
    # thread whose join was interrupted counts as ended.
    threading.Thread(target=_start, args=(lines, marked, children, failed, started), daemon=True).start()
    try:
        started.wait()
        if failed:
            raise failed[0]
        _read(children, began + max(0.1, seconds - grace), clock)
        late = [child for child in children if child.process.poll() is None]
        for child in late:
            child.late = True
            _terminate(child.process)
        _read(late, clock() + grace, clock)
    finally:
        started.wait()
        _end(children, mark)
    return [_ended(child, began) for child in children]


def _start(
    lines: Sequence[Sequence[str]],
    environ: Mapping[str, str],
    children: list[_Child],
    failed: list[OSError],
    started: threading.Event,
) -> None:
    from subprocess import DEVNULL, PIPE, Popen

    try:
        for words in lines:
            process = Popen(
                list(words), env=dict(environ), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True,
            )  # fmt: skip
            children.append(_Child(process))
    except OSError as error:
        failed.append(error)
    finally:
        started.set()


def _read(children: Sequence[_Child], until: float, clock: Callable[[], float]) -> None:
    """Read their output until all have ended or the time is over."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            for name, stream in _streams(child):
                if not stream.closed:
                    selector.register(stream, selectors.EVENT_READ, (child, name))
        while clock() < until:
            running = [child for child in children if child.process.poll() is None]  # before the last read
            ready = selector.select(max(0.0, min(_STRIDE, until - clock())) if selector.get_map() else 0.0)
            for key, _ in ready:
                child, name = key.data
                data = os.read(key.fd, _CHUNK)
                child.streams[name] += data
                del child.streams[name][: -2 * MOST]
                if not data:
                    selector.unregister(key.fileobj)
            for child in children:
                child.ended = child.ended or (0.0 if child in running else clock())
            if not running and not ready:
                return
            if running and not selector.get_map():
                _wait(running[0].process, _STRIDE)


def _streams(child: _Child) -> Iterator[tuple[str, BinaryIO]]:
    for name in ("stdout", "stderr"):
        stream = getattr(child.process, name)
        if stream is not None:
            yield name, stream


def _terminate(process: Popen[bytes]) -> None:
    """Send SIGTERM: mpirun then ends its ranks on all nodes."""
    with suppress(OSError):
        process.send_signal(signal.SIGTERM)


def _end(children: Sequence[_Child], mark: str) -> None:
    """Kill what is left of their processes, and close their streams."""
    for child in children:
        if child.process.poll() is None:
            child.process.kill()
    _kill_what_is_left({child.process.pid for child in children}, mark)
    for child in children:
        for _, stream in _streams(child):
            stream.close()
        _wait(child.process, 1.0)  # in uninterruptible sleep: it ends when it wakes


def _kill_what_is_left(leaders: Collection[int], mark: str) -> None:
    """Kill the processes of these sessions, and those that have this mark, if there is one."""
    import threading
    from importlib.util import find_spec

    if find_spec("psutil") is None:
        for leader in leaders:
            with suppress(OSError):
                os.killpg(leader, signal.SIGKILL)
        return
    # The environment of a process whose memory is locked cannot be read before that lock is free.
    killing = threading.Thread(target=_kill_in_rounds, args=(leaders, mark), daemon=True)
    killing.start()
    killing.join(_UNENDING)


def _kill_in_rounds(leaders: Collection[int], mark: str) -> None:
    import psutil

    for _ in range(_ROUNDS):
        left = [process for pid in psutil.pids() if (process := _left(pid, leaders, mark))]
        _kill(left)
        if not left:
            break


def _kill(processes: Collection[Process]) -> None:
    import psutil

    for process in processes:
        with suppress(psutil.Error):  # it ended, and its number may be another's by now; or it is another user's
            process.kill()


def _left(pid: int, leaders: Collection[int], mark: str) -> Process | None:
    """Return a process of one of our sessions, which outlive their leader, or one that was started from them."""
    import psutil

    try:
        if os.getsid(pid) in leaders or (mark and psutil.Process(pid).environ().get(_MARK) == mark):
            process = psutil.Process(pid)
            return process if process.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, psutil.Error):  # it has ended, or belongs to another user
        pass
    return None


def _ended(child: _Child, began: float) -> Ended:
    code = child.process.poll()
    texts = {name: bytes(data[-MOST:]).decode("utf-8", "backslashreplace") for name, data in child.streams.items()}
    killed = child.late and (code is None or code == -signal.SIGKILL)
    took = max(0.0, (child.ended or began) - began)
    return Ended(texts["stdout"], texts["stderr"], None if killed else code, child.late, took)


# A child that runs beside ncheck, in a session of its own

OWN_END = 0.5  # seconds in which a child may end by itself
_AFTER_TERM = 1.0  # seconds in which it may end what it started in sessions of their own
_UNENDING = 1.0
_STEP = 0.005


def is_over(process: Popen[bytes]) -> bool:
    """Return whether a child ended. It is not reaped: until then no other process can have its number."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # this process ignores SIGCHLD, or reaps all its children itself


def end(process: Popen[bytes], patience: float = OWN_END, after_term: float = _AFTER_TERM) -> None:
    """Close a child's input and let it end by itself for a moment, then end it and its process group."""
    if process.returncode is not None:
        return  # its number may be another's by now
    with suppress(OSError, ValueError):
        if process.stdin:
            process.stdin.close()
    try:
        if not _is_over_within(process, patience):
            _signal(process, signal.SIGTERM)
            _is_over_within(process, after_term)
    finally:  # ^C while this waits ends the waiting
        _signal(process, signal.SIGKILL)
        _wait(process, _UNENDING)  # it sleeps in the kernel: nobody can end it now, and nobody waits for it


def end_tree(process: Popen[bytes]) -> None:
    """End a child and all beneath it, which may first end by themselves at SIGTERM to the child's process group.

    Without psutil no more than that is done: a child that is killed would no longer end what it started.
    """
    tree = _tree(process.pid)
    try:
        _signal(process, signal.SIGTERM)
        _is_over_within(process, OWN_END)
    finally:  # as above
        if tree:
            _kill(tree)
        _wait(process, _UNENDING)


def _tree(pid: int) -> list[Process]:
    """Return this process and all beneath it; none without psutil, or where /proc denies other users' processes."""
    try:
        import psutil
    except ImportError:
        return []
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def _is_over_within(process: Popen[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_over(process):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_STEP)
    return True


def _signal(process: Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:  # it has no group of its own, or all of it ended
        if not is_over(process):
            os.kill(process.pid, number)
    except PermissionError:
        pass  # the group has only processes of another user


def _wait(process: Popen[bytes], seconds: float) -> None:
    from subprocess import TimeoutExpired

    with suppress(TimeoutExpired):
        process.wait(seconds)


# A process that ncheck did not start


class Other:
    """A process that is no child of this one, told from a later one that gets its number.

    `started`: when it began, in ticks since boot; None if it had ended already. `number`: a file descriptor that can be
    read when it has ended; -1 where the kernel, or that for which this Python was built, is older than 5.3.
    """

    def __init__(self, pid: int) -> None:
        self.pid, self.number = pid, -1
        with suppress(OSError, AttributeError):
            self.number = os.pidfd_open(pid)
        self.started = _started(pid)

    def is_over(self) -> bool:
        return self.started is None or _started(self.pid) != self.started

    def close(self) -> None:
        if self.number >= 0:
            os.close(self.number)


def _started(pid: int) -> int | None:
    now = proc.stat(pid)
    return None if now is None or now.ended else now.started


def ready(number: int | None, *others: Other, event: int = select.POLLIN) -> bool:
    """Wait until a file descriptor is ready, or one of these processes has ended; return whether the descriptor is.

    May return False early, where the kernel does not tell of the end of a process.
    """
    poller = select.poll()
    for other in others:
        if other.number >= 0:
            poller.register(other.number, select.POLLIN)
    if number is not None:
        poller.register(number, event)
    blind = any(other.number < 0 for other in others)
    return number in [one for one, _ in poller.poll(_BLIND if blind else None)]


_BLIND = 500  # milliseconds between two looks at a process


def owner_of(pid: int) -> str | None:
    """Return the user of a process; None if there is no such process, "" if it is not known."""
    try:
        os.kill(pid, 0)  # /proc may hide it
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    try:
        import psutil
    except ImportError:
        return ""
    try:
        return psutil.Process(pid).username()
    except psutil.Error:  # it ends now, or /proc shows no other users' processes
        return ""
