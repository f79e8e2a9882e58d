"""The bytes of one remote command over a child process of ours, ssh or what stands in for it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from typing import IO

from ncheck.model.evidence import Login
from ncheck.ssh.program_log import without_chatter

CHUNK = 65536


STDERR_KEPT = 4096


LOG_KEPT = 256 * 1024  # bytes of -v: some 5 KB a login, more through jump hosts


LAST_WORDS = 0.2  # seconds that a program may take to end by itself


ITS_STATUS = 5.0  # seconds that one which has closed its output may take to end, on a machine that does other things


class Child:
    """A stream over a child's pipes. `said` is all that came on standard error so far, ssh's own lines included."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.login = Login(reached=False)
        self._process = process
        self._stdin, self._stdout, self._stderr = (_pipe(p) for p in (process.stdin, process.stdout, process.stderr))
        self._log = bytearray()
        self._stderr_open = True
        self._closed = False

    @property
    def said(self) -> str:
        return self._log.decode("utf-8", "replace").replace("\r\n", "\n")

    def watch(self, done: Callable[[str], bool], deadline: float) -> bool:
        """Read standard error until `done` says so or it ends; return False when the deadline came first."""
        poll = select.poll()
        poll.register(self._open(self._stderr), select.POLLIN)
        while not done(self.said):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            if poll.poll(remaining * 1000 + 1) and not self._hear():
                return True
        return True

    def send(self, data: bytes, timeout: float) -> None:
        view, deadline = memoryview(data), time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._open(self._stdin), select.POLLOUT)
        while view:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not poll.poll(remaining * 1000 + 1):
                raise TimeoutError("the node takes no more input")
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._open(self._stdin), view[:CHUNK]) :]

    def receive(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            remaining = deadline - time.monotonic()
            ready = self._ready(remaining) if remaining > 0 else []
            if not ready:
                raise TimeoutError(f"nothing came for {timeout:.0f} s")
            if self._open(self._stderr) in ready:
                self._hear()
            if self._open(self._stdout) in ready and (data := self._read()) is not None:
                return data or self._at_end(min(deadline, time.monotonic() + ITS_STATUS))

    def stderr(self) -> bytes:
        while not self._closed and self._stderr_open and self._hear_at_once():
            pass
        return without_chatter(self.said).encode()[-STDERR_KEPT:]

    def exit_status(self, timeout: float) -> int | None:
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return status if status >= 0 else None

    def close(self) -> None:
        """End it and all that it started: a nudge, and the axe at once after it."""
        if self._closed:
            return
        self._closed = True
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            _await_end(self._process.pid, LAST_WORDS)
            self._signal(signal.SIGKILL)  # before it is reaped: until then its number is nobody else's
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _ready(self, seconds: float) -> list[int]:
        poll = select.poll()
        poll.register(self._open(self._stdout), select.POLLIN)
        if self._stderr_open:
            poll.register(self._open(self._stderr), select.POLLIN)
        return [number for number, _ in poll.poll(seconds * 1000 + 1)]

    def _read(self) -> bytes | None:
        try:
            return os.read(self._open(self._stdout), CHUNK)
        except BlockingIOError:
            return None

    def _at_end(self, deadline: float) -> bytes:
        """Tell the command's end from the connection's: ssh ends with 255 where the connection broke."""
        self.watch(lambda _: not self._stderr_open, deadline)
        status = self.exit_status(max(LAST_WORDS, deadline - time.monotonic()))
        words = without_chatter(self.said)
        if status == 255 and any(w in words for w in _BROKEN):  # noqa: PLR2004  ssh's own status
            raise ConnectionError(words.strip().splitlines()[-1])
        return b""

    def _hear_at_once(self) -> bool:
        poll = select.poll()
        poll.register(self._open(self._stderr), select.POLLIN)
        return bool(poll.poll(0)) and self._hear()

    def _hear(self) -> bool:
        """Take what is there on standard error; return whether it is still open."""
        try:
            data = os.read(self._open(self._stderr), CHUNK)
        except BlockingIOError:
            return True
        self._stderr_open = bool(data)
        self._log += data
        if len(self._log) > LOG_KEPT:
            del self._log[: len(self._log) - LOG_KEPT // 2]
        return self._stderr_open

    @staticmethod
    def _open(pipe: IO[bytes]) -> int:
        """Return its number; ConnectionError where it was closed, be it by another thread a moment ago."""
        try:
            return pipe.fileno()
        except ValueError:
            raise ConnectionError("the stream was closed") from None


# client_loop: send disconnect: Broken pipe    |    Timeout, server 10.0.0.7 not responding.
_BROKEN = ("Connection reset", "closed by remote host", "Broken pipe", "not responding", "Connection to ", "timed out")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101  all three were asked for
    os.set_blocking(pipe.fileno(), False)
    return pipe


def _await_end(pid: int, seconds: float) -> None:
    """Wait for a child to end without reaping it."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ChildProcessError):
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < deadline:
            time.sleep(0.002)
