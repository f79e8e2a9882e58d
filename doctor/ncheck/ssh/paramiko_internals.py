"""Paramiko's wire, tuned through its public doors: a packetizer and a transport of our own.

What is gained: reads are buffered, acknowledgements are not delayed (40 ms a round trip otherwise), no timer thread a
connection, one deadline that really ends, and an ear for what paramiko does not pass on: the server's first words, its
banners, the methods that it takes, and its parting words. Nothing of the security is changed.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import paramiko
from paramiko.common import MSG_DEBUG, MSG_DISCONNECT, MSG_IGNORE, MSG_USERAUTH_BANNER, MSG_USERAUTH_FAILURE
from paramiko.message import Message
from paramiko.packet import NeedRekeyException, Packetizer

from ncheck.model.evidence import Login

if TYPE_CHECKING:
    from typing_extensions import Buffer


# Liked first, not liked only: hosts in FIPS mode lack some, so that what is left follows in paramiko's own order.
FAST_KEX = ("curve25519-sha256@libssh.org", "curve25519-sha256", "ecdh-sha2-nistp256")


FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr")


RSA_ALGORITHMS = ("rsa-sha2-512", "rsa-sha2-256")


FIRST_LINE = 256  # bytes: a banner is at most 255 (RFC 4253, 4.2)


SECOND_LINE_PATIENCE = 2.0  # seconds that a server may take for its banner after it said something else


STALE_WRITE = 20.0  # seconds after which a peer that takes no bytes is given up


def silence_paramiko() -> None:
    """Keep paramiko's own log lines off the terminal: every failure is told in our words."""
    log = logging.getLogger("paramiko")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    log.setLevel(logging.CRITICAL + 1)


class Deaf:
    """A log that keeps nothing, for what is logged dozens of times a login."""

    def log(self, level: int, message: str, *words: object) -> None:
        """Let it pass."""


DEAF = Deaf()


@dataclass
class Heard:
    """What came over the wire that paramiko keeps to itself."""

    banner: str = ""  # SSH-2.0-OpenSSH_9.2p1
    before_banner: bytes = b""  # what was said in its place
    messages: list[str] = field(default_factory=list)  # user-authentication banners
    methods: tuple[str, ...] = ()  # what the server said would be taken next
    failures: int = 0
    partial: bool = False
    parting: str = ""  # the text of its disconnect message


class Wire(Packetizer):
    """Packets over one socket, until `deadline` (of time.monotonic; None: no end), heard on the way."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        sock.setblocking(False)  # noqa: FBT003
        self.heard = Heard()
        self.deadline: float | None = None
        self.timed_out = False
        self._wire = sock
        self._buffer = bytearray()
        self._shut = False
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(sock, select.POLLOUT)

    @property
    def closed(self) -> bool:
        return self._shut

    def close(self) -> None:
        """Wake whoever reads or writes; the transport's thread, which alone reads, gives the descriptor back."""
        self._shut = True
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)

    def start_handshake(self, timeout: float) -> None:
        """Start no timer thread: the deadline covers the handshake."""

    def handshake_timed_out(self) -> bool:
        return self.timed_out

    def complete_handshake(self) -> None:
        """There is no timer to stop."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # noqa: FBT001, FBT002  paramiko's signature
        buffer = self._buffer
        while len(buffer) < n:
            if check_rekey and not buffer and self.need_rekey():
                raise NeedRekeyException
            self._fill()
        data = bytes(buffer[:n])
        del buffer[:n]
        return data

    def readline(self, timeout: float) -> str:  # noqa: ARG002  paramiko's patience; the deadline decides
        """Return the next line before the key exchange, or what came in place of one; the banner must follow soon."""
        patience = time.monotonic() + SECOND_LINE_PATIENCE if self.heard.before_banner else None
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > FIRST_LINE:
                break
            try:
                self._fill(patience)
            except (EOFError, TimeoutError):
                self.heard.before_banner += bytes(self._buffer)
                raise
            if patience is None and not self._buffer.startswith(b"SSH-"[: len(self._buffer)]):
                patience = time.monotonic() + SECOND_LINE_PATIENCE
        line = bytes(self._buffer[: end + 1 if end >= 0 else len(self._buffer)])
        del self._buffer[: len(line)]
        return self._noted(line)

    def _noted(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.startswith("SSH-"):
            self.heard.banner = text
        elif len(self.heard.before_banner) < 4 * FIRST_LINE:
            self.heard.before_banner += line
        return text

    def write_all(self, out: Buffer) -> None:
        view = memoryview(out)
        end = min(time.monotonic() + STALE_WRITE, self.deadline or float("inf"))
        while view:
            view = view[self._written(view, end) :]

    def _written(self, view: memoryview, end: float) -> int:
        """Write what the kernel takes. Raises EOFError when the connection is gone, or takes nothing until `end`."""
        try:
            return self._wire.send(view)
        except (BlockingIOError, InterruptedError):
            remaining = end - time.monotonic()
            if remaining > 0 and self._writable.poll(remaining * 1000 + 1):
                return 0
            self.timed_out = True
            self.close()
        except OSError as error:
            raise EOFError from error
        raise EOFError

    def read_message(self) -> tuple[int, Message]:
        kind, message = super().read_message()
        if kind in _EARS:
            _EARS[kind](self.heard, Message(message.asbytes()))
        # A server's debug words are for a log that we do not keep; paramiko would spell each out, letter by letter.
        return MSG_IGNORE if kind == MSG_DEBUG else kind, message

    def _fill(self, patience: float | None = None) -> None:
        """Wait for bytes and take all there are. Raises EOFError at the end, TimeoutError at the deadline."""
        while not self._shut:
            now = time.monotonic()
            ends = [end for end in (self.deadline, patience) if end is not None]
            if ends and now >= min(ends):
                self.timed_out = self.deadline is not None and now >= self.deadline
                raise TimeoutError(errno.ETIMEDOUT, "nothing came in time")  # paramiko reads args[1]
            if self._readable.poll((min(ends) - now) * 1000 + 1 if ends else None):
                break
        if self._shut:
            raise EOFError
        try:
            data = self._wire.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            raise EOFError
        # The kernel forgets this option as it sees fit, so it is set anew.
        self._wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self._buffer += data


def _hear_banner(heard: Heard, message: Message) -> None:
    if len(heard.messages) < 16:  # noqa: PLR2004  a flood of banners is not kept
        heard.messages.append(message.get_binary()[:4096].decode("utf-8", "replace"))


def _hear_failure(heard: Heard, message: Message) -> None:
    heard.methods = tuple(message.get_list())
    heard.partial = message.get_boolean()
    heard.failures += 1


def _hear_parting(heard: Heard, message: Message) -> None:
    message.get_int()
    heard.parting = message.get_binary()[:1024].decode("utf-8", "replace")


_EARS = {
    MSG_USERAUTH_BANNER: _hear_banner,
    MSG_USERAUTH_FAILURE: _hear_failure,
    MSG_DISCONNECT: _hear_parting,
}


class Link(paramiko.Transport):
    """A transport that likes fast algorithms first, and of host keys those that are known already."""

    def __init__(self, sock: socket.socket, known_types: tuple[str, ...]) -> None:
        self._known_types = known_types
        super().__init__(sock, packetizer_class=Wire)
        self.logger = cast("logging.Logger", DEAF)

    @property
    def wire(self) -> Wire:
        return cast("Wire", self.packetizer)

    # Each list is asked for many times a login, and paramiko makes it anew each time.

    @cached_property
    def preferred_kex(self) -> tuple[str, ...]:
        return _first(FAST_KEX, super().preferred_kex)

    @cached_property
    def preferred_ciphers(self) -> tuple[str, ...]:
        return _first(FAST_CIPHERS, super().preferred_ciphers)

    @cached_property
    def preferred_keys(self) -> tuple[str, ...]:
        """No certificates: paramiko cannot check who signed them."""
        plain = tuple(name for name in super().preferred_keys if "-cert-" not in name)
        known = [a for kind in self._known_types for a in (RSA_ALGORITHMS if kind == "ssh-rsa" else (kind,))]
        return _first(tuple(name for name in plain if name in known), plain)

    @cached_property
    def preferred_macs(self) -> tuple[str, ...]:
        return tuple(super().preferred_macs)

    @cached_property
    def preferred_compression(self) -> tuple[str, ...]:
        return tuple(super().preferred_compression)

    def close(self) -> None:
        """End it without waiting for its thread."""
        self.active = False
        self.packetizer.close()


def _first(liked: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    return tuple(a for a in liked if a in offered) + tuple(a for a in offered if a not in liked)


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
