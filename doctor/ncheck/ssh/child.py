"""Child processes on this machine: run to the end, or kept as a stream of bytes both ways."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

CHUNK = 65536
STDERR_KEPT = 4096
LONGEST_LINE = 4096  # bytes: the lines that are looked for are shorter
LOG_KEPT = 256 * 1024  # bytes of standard error; ssh -v writes some 5 KB a login, more through jump hosts
TERMINATE_PATIENCE = 0.2  # seconds between SIGTERM and SIGKILL
STATUS_PATIENCE = 5.0  # seconds that a child which has closed its output may take to end, on a busy machine


class NotStartedError(Exception):
    """A program cannot be started: one line, and a command line that shows why."""

    def __init__(self, detail: str, fix: str) -> None:
        super().__init__(detail)
        self.detail, self.fix = detail, fix


def run(argv: Sequence[str], seconds: float, environ: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, with nothing on its input. Raises OSError; TimeoutError after `seconds`."""
    try:
        return subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False, env=dict(environ)
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from None


def start(argv: Sequence[str], environ: Mapping[str, str], *, cwd: str | None = None) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with pipes to all three streams. Raises NotStartedError."""
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program is None:
        raise NotStartedError(f"{argv[0]} is not on PATH on this machine", f"command -v {shlex.quote(argv[0])}")
    try:
        return subprocess.Popen(
            [program, *argv[1:]], bufsize=0, env=dict(environ), start_new_session=True, cwd=cwd,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise NotStartedError(f"{argv[0]} cannot be started on this machine: {error}", "ulimit -a") from None


def _unchanged(text: str) -> str:
    return text


class ChildStream:
    """A child's pipes as a stream; `close` ends the child and its process group.

    `clean` takes the program's own log lines out of its standard error. `broken(text)` tells from what is left whether
    a child that ended with status 255 lost its connection.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        clean: Callable[[str], str] = _unchanged,
        broken: Callable[[str], bool] | None = None,
    ) -> None:
        self._process, self._clean, self._broken = process, clean, broken
        self._stdin, self._stdout, self._stderr = (_pipe(p) for p in (process.stdin, process.stdout, process.stderr))
        self._log = bytearray()
        self._came = 0  # bytes of it that came last
        self._stderr_open = True
        self._closed = False

    @property
    def log(self) -> str:
        """All that came on standard error so far."""
        return self._log.decode("utf-8", "replace").replace("\r\n", "\n")

    def watch(self, done: Callable[[str], bool], deadline: float) -> bool:
        """Read standard error until `done` says so or it ends; return False when the deadline came first.

        `done` is shown what came last, from the beginning of its line: all of it each time would be too much work where
        the child writes without an end.
        """
        poll = select.poll()
        poll.register(self._open(self._stderr), select.POLLIN)
        while not done(self._newest()):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            if poll.poll(remaining * 1000 + 1) and not self._read_stderr():
                return True
        return True

    def _newest(self) -> str:
        begin = max(0, len(self._log) - self._came)
        line = self._log.rfind(b"\n", max(0, begin - LONGEST_LINE), begin) + 1
        return self._log[line or max(0, begin - LONGEST_LINE) :].decode("utf-8", "replace").replace("\r\n", "\n")

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
                self._read_stderr()
            if self._open(self._stdout) in ready and (data := self._read_stdout()) is not None:
                return data or self._at_end(min(deadline, time.monotonic() + STATUS_PATIENCE))

    def stderr(self) -> bytes:
        for _ in range(LOG_KEPT // CHUNK):  # a child may write faster than this reads
            if self._closed or not self._stderr_open or not self._read_waiting_stderr():
                break
        return self._clean(self.log).encode()[-STDERR_KEPT:]

    def exit_status(self, timeout: float) -> int | None:
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return status if status >= 0 else None

    def close(self) -> None:
        """Close the pipes, and end a child that goes on."""
        if self._closed:
            return
        self._closed = True
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        if self._process.returncode is None:
            self._end()

    def _end(self) -> None:
        """Terminate the child with its process group, and soon after that kill them."""
        self._signal(signal.SIGTERM)
        _await_end(self._process.pid, TERMINATE_PATIENCE)
        self._signal(signal.SIGKILL)  # before it is reaped: until then no other process can have its number
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

    def _read_stdout(self) -> bytes | None:
        try:
            return os.read(self._open(self._stdout), CHUNK)
        except BlockingIOError:
            return None

    def _at_end(self, deadline: float) -> bytes:
        """Return b"" where the command ended. Raises ConnectionError where the connection broke: ssh ends with 255."""
        if self._broken is None:
            return b""
        self.watch(lambda _: not self._stderr_open, deadline)
        status = self.exit_status(max(TERMINATE_PATIENCE, deadline - time.monotonic()))
        words = self._clean(self.log)
        if status == 255 and self._broken(words):  # noqa: PLR2004  ssh's own status
            raise ConnectionError(words.strip().splitlines()[-1])
        return b""

    def _read_waiting_stderr(self) -> bool:
        poll = select.poll()
        poll.register(self._open(self._stderr), select.POLLIN)
        return bool(poll.poll(0)) and self._read_stderr()

    def _read_stderr(self) -> bool:
        """Take what waits on standard error; return whether it is still open."""
        try:
            data = os.read(self._open(self._stderr), CHUNK)
        except BlockingIOError:
            return True
        self._stderr_open = bool(data)
        self._came = len(data)
        self._log += data
        if len(self._log) > LOG_KEPT:
            del self._log[: len(self._log) - LOG_KEPT // 2]
        return self._stderr_open

    @staticmethod
    def _open(pipe: IO[bytes]) -> int:
        """Return its number; ConnectionError where it is closed, be it by another thread a moment ago."""
        try:
            return pipe.fileno()
        except ValueError:
            raise ConnectionError("the stream was closed") from None


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
