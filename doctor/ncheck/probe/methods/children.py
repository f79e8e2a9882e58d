"""Programs that the local host runs for the probe: several at once, with limits on time and output.

A killed mpirun leaves ssh processes that keep its output open, and one that waits for a silent node ignores SIGTERM. So
no read may block, and at the end every process of its session is killed; processes that left the session are recognized
by a variable in their environment.
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
    """Run all these programs at once for at most `seconds`. Raises OSError if one cannot be started."""
    began, children, failed, started = clock(), list[_Child](), list[OSError](), threading.Event()
    mark = os.urandom(16).hex()
    marked = {**environ, _MARK: mark}
    # Started in a thread, because ^C in the middle of a start would lose the process. The event is needed because a
    # thread whose join was interrupted counts as ended.
    threading.Thread(target=_start, args=(lines, marked, children, failed, started), daemon=True).start()
    try:
        started.wait()
        if failed:
            raise failed[0]
        _read(children, began + max(0.1, seconds - GRACE), clock)
        late = [child for child in children if child.process.poll() is None]
        for child in late:
            child.late = True
            _terminate(child.process)
        _read(late, clock() + GRACE, clock)
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
                time.sleep(_STRIDE)


def _streams(child: _Child) -> Iterator[tuple[str, BinaryIO]]:
    for name in ("stdout", "stderr"):
        stream = getattr(child.process, name)
        if stream is not None:
            yield name, stream


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM: mpirun then ends its ranks on all nodes."""
    with suppress(OSError):
        process.send_signal(signal.SIGTERM)


def _end(children: Sequence[_Child], mark: bytes) -> None:
    """Kill what is left of their processes, and close their streams."""
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
        with suppress(subprocess.TimeoutExpired):  # in uninterruptible sleep: it ends when it wakes
            child.process.wait(1.0)


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _is_left(pid: int, leaders: Collection[int], mark: bytes) -> bool:
    """Return whether a process belongs to one of our sessions, which outlive their leader, or was started from one."""
    try:
        # 4711 (ssh) S 4700 4710 4700 0 -1 ...: state, parent, group, session
        state, _, _, session = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:4]
        ours = int(session) in leaders or mark in Path(f"/proc/{pid}/environ").read_bytes()
    except (OSError, ValueError):  # it has ended, or belongs to another user
        return False
    return ours and state != b"Z"


def _ended(child: _Child, began: float) -> Ended:
    code = child.process.poll()
    texts = {name: bytes(data[-MOST:]).decode("utf-8", "backslashreplace") for name, data in child.streams.items()}
    killed = child.late and (code is None or code == -signal.SIGKILL)
    took = max(0.0, (child.ended or began) - began)
    return Ended(texts["stdout"], texts["stderr"], None if killed else code, child.late, took)
