"""The bytes of one remote command over paramiko."""

from __future__ import annotations

import threading
import time

import paramiko

from doctor.model.evidence import Login
from doctor.transport.ssh.wire import Link

CHUNK = 65536
STDERR_KEPT = 4096


class ParamikoStream:
    """Standard input and output of the command on one channel; the connection is its own and ends with it."""

    def __init__(self, link: Link, channel: paramiko.Channel, login: Login) -> None:
        self.login = login
        self._link = link
        self._channel = channel
        self._stderr = b""
        self._came = threading.Event()
        channel.in_buffer.set_event(self._came)
        channel.in_stderr_buffer.set_event(self._came)

    def send(self, data: bytes, timeout: float) -> None:
        self._channel.settimeout(timeout)
        try:
            self._channel.sendall(data)
        except TimeoutError:
            raise TimeoutError("the node takes no more input") from None
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise ConnectionError(f"the connection is gone: {error or 'closed'}") from None
        if not self._link.is_active():  # paramiko drops what is sent into a dead connection, in silence
            raise ConnectionError("the connection is gone")

    def receive(self, timeout: float) -> bytes:
        end = time.monotonic() + timeout
        while True:
            self._came.clear()
            ended = self._channel.eof_received or self._channel.closed  # asked first: what came before it is still read
            self._drain_stderr()
            if self._channel.recv_ready():
                return self._channel.recv(CHUNK)
            if ended:
                return self._at_end()
            remaining = end - time.monotonic()
            if remaining <= 0 or not self._came.wait(remaining):
                raise TimeoutError(f"nothing came for {timeout:.0f} s")

    def stderr(self) -> bytes:
        self._drain_stderr()
        return self._stderr

    def exit_status(self, timeout: float) -> int | None:
        self._channel.status_event.wait(timeout)
        self._drain_stderr()
        status = self._channel.exit_status
        return status if status >= 0 else None

    def close(self) -> None:
        self._link.close()

    def _drain_stderr(self) -> None:
        """Take what came on standard error: unread, it would fill the window that standard output shares with it."""
        while self._channel.recv_stderr_ready():
            self._stderr = (self._stderr + self._channel.recv_stderr(CHUNK))[-STDERR_KEPT:]

    def _at_end(self) -> bytes:
        """Tell an end from a break: a command that ends says so, a connection that breaks does not."""
        if self._channel.eof_received or (self._channel.status_event.is_set() and self._channel.exit_status >= 0):
            return b""
        if self._link.is_active():
            return b""
        raise ConnectionError(self._link.wire.heard.parting or "the connection broke")
