"""Programs that the head runs for the probe: several at once, bounded in time and output, and nothing of them left.

A dead mpirun leaves ssh processes that hold its output open, and one that waits for a silent node heeds no SIGTERM: so
nothing is read that could block, and at the end everything of its session is killed, and what left the session: it
bears a mark in its environment.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MOST = 8 * 1024 * 1024  # bytes of each stream; of more the end is kept


GRACE = 2.0  # seconds for mpirun to end its ranks and its daemons, once it is told to


_MARK = "NCHECK_CHILD"  # a variable by which what they started is known


_STRIDE = 0.2  # seconds between two looks at who ended


_READ = 65536


_ROUNDS = 20  # a process that forks as it is ended is found in the next round


@dataclass(frozen=True)
class Ended:
    """How one program ended; `late`: its time was over. `exit_status` is None where it had to be killed."""

    stdout: str
    stderr: str
    exit_status: int | None
    late: bool
    seconds: float


@dataclass
class _Child:
    process: subprocess.Popen[bytes]
    streams: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    late: bool = False
    ended: float = 0.0


def run_children(
    lines: Sequence[Sequence[str]],
    seconds: float,
    environ: Mapping[str, str],
    clock: Callable[[], float] = time.monotonic,
) -> list[Ended]:
    """Run them all at once for `seconds` at the most. Raises OSError where one cannot be started."""
    began, children, failed, started = clock(), list[_Child](), list[OSError](), threading.Event()
    mark = os.urandom(16).hex()
    marked = {**environ, _MARK: mark}
    # In a thread, for a ^C in the middle of a start would lose what was started; and with an event of its own, for a
    # thread whose join was interrupted counts as ended from then on.
    threading.Thread(target=_start, args=(lines, marked, children, failed, started), daemon=True).start()
    try:
        started.wait()
        if failed:
            raise failed[0]
        _heard(children, began + max(0.1, seconds - GRACE), clock)
        late = [child for child in children if child.process.poll() is None]
        for child in late:
            child.late = True
            _told(child.process)
        _heard(late, clock() + GRACE, clock)
    finally:
        started.wait()
        _end(children, f"{_MARK}={mark}".encode())
    return [_ended(child, began) for child in children]


def _start(
    lines: Sequence[Sequence[str]],
    environ: Mapping[str, str],
    children: list[_Child],
    failed: list[OSError],
    started: threading.Event,
) -> None:
    try:
        for words in lines:
            process = subprocess.Popen(
                list(words), env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            children.append(_Child(process))
    except OSError as error:
        failed.append(error)
    finally:
        started.set()


def _heard(children: Sequence[_Child], until: float, clock: Callable[[], float]) -> None:
    """Read what they say until all have ended, or the time has come."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            for name, stream in _streams(child):
                if not stream.closed:
                    selector.register(stream, selectors.EVENT_READ, (child, name))
        while clock() < until:
            running = [child for child in children if child.process.poll() is None]  # asked before what they said last
            ready = selector.select(max(0.0, min(_STRIDE, until - clock())) if selector.get_map() else 0.0)
            for key, _ in ready:
                child, name = key.data
                data = os.read(key.fd, _READ)
                child.streams[name] += data
                del child.streams[name][: -2 * MOST]
                if not data:
                    selector.unregister(key.fileobj)
            for child in children:
                child.ended = child.ended or (0.0 if child in running else clock())
            if not running and not ready:
                return
            if running and not selector.get_map():
                time.sleep(_STRIDE)


def _streams(child: _Child) -> Iterator[tuple[str, BinaryIO]]:
    for name in ("stdout", "stderr"):
        stream = getattr(child.process, name)
        if stream is not None:
            yield name, stream


def _told(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end: mpirun then ends its ranks everywhere."""
    with suppress(OSError):
        process.send_signal(signal.SIGTERM)


def _end(children: Sequence[_Child], mark: bytes) -> None:
    """Kill all that is left of them, and read no more of it."""
    for child in children:
        if child.process.poll() is None:
            _kill(child.process.pid)
    leaders = {child.process.pid for child in children}
    for _ in range(_ROUNDS):
        left = [pid for pid in _processes() if _is_left(pid, leaders, mark)]
        for pid in left:
            _kill(pid)
        if not left:
            break
    for child in children:
        for _, stream in _streams(child):
            stream.close()
        with suppress(subprocess.TimeoutExpired):  # it sleeps in the kernel then, and ends when it wakes
            child.process.wait(1.0)


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _is_left(pid: int, leaders: Collection[int], mark: bytes) -> bool:
    """Tell whether a process is in a session of ours, which outlives its leader, or was started from one."""
    try:
        # 4711 (ssh) S 4700 4710 4700 0 -1 ...: state, parent, group, session
        state, _, _, session = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:4]
        ours = int(session) in leaders or mark in Path(f"/proc/{pid}/environ").read_bytes()
    except (OSError, ValueError):  # it has ended, or is somebody else's
        return False
    return ours and state != b"Z"


def _ended(child: _Child, began: float) -> Ended:
    code = child.process.poll()
    texts = {name: bytes(data[-MOST:]).decode("utf-8", "backslashreplace") for name, data in child.streams.items()}
    killed = child.late and (code is None or code == -signal.SIGKILL)
    took = max(0.0, (child.ended or began) - began)
    return Ended(texts["stdout"], texts["stderr"], None if killed else code, child.late, took)
