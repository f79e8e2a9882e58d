"""This very machine as a node: the same one remote command under /bin/sh, with no SSH in between."""

from __future__ import annotations

import getpass
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from ncheck.fleet.link import REMOTE_COMMAND, LoginFailedError, Stream
from ncheck.model.evidence import Cause, Login

if TYPE_CHECKING:
    from ncheck.model.node import Node


STDERR_KEPT = 4096


_CHUNK = 65536


class LocalTransport:
    """Runs the remote command here."""

    name = "local"

    def connect(self, node: Node, timeout: float) -> Stream:  # noqa: ARG002  a process starts at once or not at all
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", REMOTE_COMMAND], bufsize=0, start_new_session=True, cwd="/",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            login = Login(reached=False, cause=Cause.TRANSPORT, detail=f"/bin/sh: {error}", transport=self.name)
            raise LoginFailedError(login) from error
        login = Login(reached=True, transport=self.name, user=_user(), seconds=time.monotonic() - started)
        return LocalStream(process, login)


class LocalStream:
    """A child process's streams."""

    def __init__(self, process: subprocess.Popen[bytes], login: Login) -> None:
        self.login = login
        self._process = process
        assert process.stdin  # noqa: S101  all three are pipes
        assert process.stdout  # noqa: S101
        assert process.stderr  # noqa: S101
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._complaints = b""

    def send(self, data: bytes, timeout: float) -> None:
        view, deadline = memoryview(data), time.monotonic() + timeout
        while view:
            poll = select.poll()
            poll.register(self._open(self._stdin), select.POLLOUT)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError("the process takes no more input")
            with suppress(BlockingIOError):
                view = view[os.write(self._open(self._stdin), view[:_CHUNK]) :]

    def receive(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        poll, complaints = select.poll(), self._open(self._stderr)
        poll.register(self._open(self._stdout), select.POLLIN)
        poll.register(complaints, select.POLLIN)
        while ready := poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            numbers = [number for number, _ in ready]
            if self._open(self._stdout) in numbers:
                return os.read(self._open(self._stdout), _CHUNK)
            if not self._heard():
                poll.unregister(complaints)
        raise TimeoutError("nothing came")

    def stderr(self) -> bytes:
        while not self._stderr.closed and self._heard():
            pass
        return self._complaints

    def exit_status(self, timeout: float) -> int | None:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """End of input ends the agent; its guard ends the rest. A shell that never came so far is ended here."""
        if self._process.poll() is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGHUP)
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)

    def _heard(self) -> bool:
        try:
            data = os.read(self._stderr.fileno(), _CHUNK)
        except (BlockingIOError, ValueError):
            return False
        self._complaints = (self._complaints + data)[-STDERR_KEPT:]
        return bool(data)

    @staticmethod
    def _open(pipe: IO[bytes]) -> int:
        """Return its number; ConnectionError where it was closed, be it by another thread a moment ago."""
        try:
            return pipe.fileno()
        except ValueError:
            raise ConnectionError("the stream was closed") from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
