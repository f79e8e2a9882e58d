"""All that overrides paramiko: its packetizer, its transport and its ssh-agent client. No other module relies on more
than its documented interface; tests/ncheck/ssh/test_paramiko_internals.py names what a new release changes.

What is gained: buffered reads, no delayed acknowledgements (40 ms a round trip otherwise), no timer thread per
connection, one deadline for all, an agent that many logins can use at once, and what paramiko reads but does not
return: the server's first line, its banners, the methods that it accepts, and its disconnect message. The cryptography
is paramiko's own.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import select
import socket
import struct
import threading
import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import paramiko
from paramiko.agent import AgentSSH
from paramiko.common import MSG_DEBUG, MSG_DISCONNECT, MSG_IGNORE, MSG_USERAUTH_BANNER, MSG_USERAUTH_FAILURE
from paramiko.message import Message
from paramiko.packet import NeedRekeyException, Packetizer
from paramiko.pkey import PublicBlob

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh.algorithms import WantedAlgorithms, offered, user_keys
from ncheck.ssh.dial import IDENTIFICATION, lossy
from ncheck.ssh.login import LoginRecord
from ncheck.ssh.public_keys import type_of

if TYPE_CHECKING:
    from typing_extensions import Buffer


RSA_ALGORITHMS = ("rsa-sha2-512", "rsa-sha2-256")
FIRST_LINE = 256  # bytes: a banner is at most 255 (RFC 4253, 4.2)
SECOND_LINE_PATIENCE = 2.0  # seconds that a server may take for its banner after it sent something else
STALE_WRITE = 20.0  # seconds after which a peer that takes no bytes is given up

# Every failure is reported as a LoginFailedError, so paramiko's log lines go to a logger that drops them. The loggers
# that paramiko itself uses are left to the program.
LOG = logging.getLogger(__name__)
LOG.disabled = True


@dataclass
class ServerMessages:
    """What the server sent that paramiko does not return."""

    banner: str = ""  # SSH-2.0-OpenSSH_9.2p1
    before_banner: bytes = b""  # what came instead of it
    messages: list[str] = field(default_factory=list)  # user-authentication banners
    methods: tuple[str, ...] = ()  # what the server accepts next
    failures: int = 0
    partial: bool = False
    disconnect: str = ""  # the text of its disconnect message


class Wire(Packetizer):
    """Packets over one socket, until `deadline` (of time.monotonic; None: no end). `server` keeps its messages."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        sock.setblocking(False)  # noqa: FBT003
        self.server = ServerMessages()
        self.deadline: float | None = None
        self.timed_out = False
        self.identified = False  # whoever connected has sent the identification
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
        """Wake all threads that read or write; the transport's thread, the only reader, closes the descriptor."""
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
        """Return the next line before the key exchange, or what came instead of one; the banner must follow soon."""
        patience = time.monotonic() + SECOND_LINE_PATIENCE if self.server.before_banner else None
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > FIRST_LINE:
                break
            try:
                self._fill(patience)
            except (EOFError, TimeoutError):
                self.server.before_banner += bytes(self._buffer)
                raise
            if patience is None and not self._buffer.startswith(b"SSH-"[: len(self._buffer)]):
                patience = time.monotonic() + SECOND_LINE_PATIENCE
        line = bytes(self._buffer[: end + 1 if end >= 0 else len(self._buffer)])
        del self._buffer[: len(line)]
        return self._noted(line)

    def _noted(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.startswith("SSH-"):
            self.server.banner = text
        elif len(self.server.before_banner) < 4 * FIRST_LINE:
            self.server.before_banner += line
        return text

    def write_all(self, out: Buffer) -> None:
        if self.identified and bytes(out) == IDENTIFICATION:
            return
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
        if kind in _KEPT:
            _KEPT[kind](self.server, Message(message.asbytes()))
        # Paramiko would format a server's debug messages for its log, letter by letter.
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
        # The kernel clears this option on its own, so it is set again.
        self._wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self._buffer += data


def _keep_banner(server: ServerMessages, message: Message) -> None:
    if len(server.messages) < 16:  # noqa: PLR2004  a flood of banners is not kept
        server.messages.append(message.get_binary()[:4096].decode("utf-8", "replace"))


def _keep_failure(server: ServerMessages, message: Message) -> None:
    server.methods = tuple(message.get_list())
    server.partial = message.get_boolean()
    server.failures += 1


def _keep_disconnect(server: ServerMessages, message: Message) -> None:
    message.get_int()
    server.disconnect = message.get_binary()[:1024].decode("utf-8", "replace")


_KEPT = {
    MSG_USERAUTH_BANNER: _keep_banner,
    MSG_USERAUTH_FAILURE: _keep_failure,
    MSG_DISCONNECT: _keep_disconnect,
}


class ConfiguredTransport(paramiko.Transport):
    """A transport that offers what the ssh configuration says, and first the types of host key that are known."""

    server_extensions: dict[str, bytes]  # the stubs leave it out

    def __init__(self, sock: socket.socket, wanted: WantedAlgorithms, known_types: tuple[str, ...]) -> None:
        self._wanted = wanted
        self._known_types = known_types if wanted.known_first else ()
        super().__init__(sock, packetizer_class=Wire)
        self.set_log_channel(LOG.name)
        self.local_version = IDENTIFICATION.decode().rstrip()

    @property
    def wire(self) -> Wire:
        return cast("Wire", self.packetizer)

    @property
    def accepted_types(self) -> str:
        """The server's list of algorithms with which a key may sign (RFC 8308); "" where it sent none."""
        return self.server_extensions.get("server-sig-algs", b"").decode("ascii", "replace")

    def _log(self, level: int, msg: object, *args: object) -> None:
        """Log nothing: a login has forty lines for a logger that drops them."""

    # Each list is asked for many times a login, and paramiko makes it anew each time.

    @cached_property
    def preferred_kex(self) -> tuple[str, ...]:
        return self._offered("kexalgorithms", "_kex_info")

    @cached_property
    def preferred_ciphers(self) -> tuple[str, ...]:
        return self._offered("ciphers", "_cipher_info")

    @cached_property
    def preferred_keys(self) -> tuple[str, ...]:
        plain = self._offered("hostkeyalgorithms", "_key_info")
        known = [a for kind in self._known_types for a in (RSA_ALGORITHMS if kind == "ssh-rsa" else (kind,))]
        return _first(tuple(name for name in plain if name in known), plain)

    @cached_property
    def preferred_macs(self) -> tuple[str, ...]:
        return self._offered("macs", "_mac_info")

    @cached_property
    def preferred_pubkeys(self) -> tuple[str, ...]:
        plain = (name for name in user_keys(self._wanted) if "-cert-" not in name)
        return self._that_it_has(plain, "_key_info")

    def _offered(self, keyword: str, table: str) -> tuple[str, ...]:
        return self._that_it_has(offered(self._wanted, keyword), table)

    def _that_it_has(self, names: Iterable[str], table: str) -> tuple[str, ...]:
        """Leave out what this release of paramiko lacks."""
        has: Container[str] = getattr(self, table)
        return tuple(name for name in names if name in has)

    @cached_property
    def preferred_compression(self) -> tuple[str, ...]:
        return tuple(super().preferred_compression)

    def close(self) -> None:
        """End it without waiting for its thread."""
        self.active = False
        self.packetizer.close()


def _first(preferred: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    return tuple(a for a in preferred if a in offered) + tuple(a for a in offered if a not in preferred)


CHUNK = 65536
STDERR_KEPT = 4096
MOST_CHUNKS = 64  # of standard error at a time: 4 MiB, more than the window of a channel


class ParamikoStream:
    """Standard input and output of one command; its connection ends with it."""

    def __init__(
        self, link: ConfiguredTransport, channel: paramiko.Channel, record: LoginRecord, sock: socket.socket
    ) -> None:
        self.record = record
        self._sock = sock
        self._link = link
        self._channel = channel
        self._stderr = b""
        self._came = threading.Event()
        channel.in_buffer.set_event(self._came)
        channel.in_stderr_buffer.set_event(self._came)

    def send(self, data: bytes, timeout: float) -> None:
        self._channel.settimeout(timeout)
        self._link.clear_to_send_timeout = timeout
        try:
            self._channel.sendall(data)
        except TimeoutError:
            raise TimeoutError("the node takes no more input") from None
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise ConnectionError(f"the connection is gone: {error or 'closed'}") from None
        if not self._link.is_active():  # paramiko silently drops what is sent into a dead connection
            raise ConnectionError("the connection is gone")

    def receive(self, timeout: float) -> bytes:
        end = time.monotonic() + timeout
        while True:
            self._came.clear()
            ended = self._channel.eof_received or self._channel.closed  # read first: what came before it is still read
            # The server is told how much was read. While keys are renewed that waits, by default for half a minute.
            self._link.clear_to_send_timeout = max(0.0, end - time.monotonic())
            try:
                self._drain_stderr()
                if self._channel.recv_ready():
                    return self._channel.recv(CHUNK)
            except paramiko.SSHException as error:
                raise TimeoutError(str(error)) from None
            except EOFError:  # the server could not be told
                raise ConnectionError("the connection broke") from None
            if ended:
                return self._at_end()
            remaining = end - time.monotonic()
            if remaining <= 0 or not self._came.wait(remaining):
                raise TimeoutError(f"nothing came for {timeout:.0f} s")

    def stderr(self) -> bytes:
        self._link.clear_to_send_timeout = 0.0
        with contextlib.suppress(paramiko.SSHException):
            self._drain_stderr()
        return self._stderr

    def exit_status(self, timeout: float) -> int | None:
        self._channel.status_event.wait(timeout)
        self.stderr()
        status = self._channel.exit_status
        return status if status >= 0 else None

    def lossy(self) -> bool:
        """Tell whether the network is why the connection is slow, or may be."""
        return lossy(self._sock)

    def close(self) -> None:
        self._link.close()

    def _drain_stderr(self) -> None:
        """Read standard error: unread, it would fill the window that it shares with standard output."""
        for _ in range(MOST_CHUNKS):  # a command may write faster than this reads
            if not self._channel.recv_stderr_ready():
                break
            self._stderr = (self._stderr + self._channel.recv_stderr(CHUNK))[-STDERR_KEPT:]

    def _at_end(self) -> bytes:
        """Return b"" where the command ended. Raises ConnectionError where the connection broke without that."""
        if self._channel.eof_received or (self._channel.status_event.is_set() and self._channel.exit_status >= 0):
            return b""
        if self._link.is_active():
            return b""
        raise ConnectionError(self._link.wire.server.disconnect or "the connection broke")


AGENT_TIMEOUT = 10.0  # seconds: an agent may ask its user to confirm each signature


class _Agent(AgentSSH):
    """The ssh-agent at one socket, with a connection for each message: paramiko's single one serves only one thread."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def keys(self) -> list[AgentKey]:
        """Return the keys that the agent holds."""
        cast("Any", self)._connect(None)  # noqa: SLF001  the stubs leave the private names out
        return [AgentKey(self, key.blob, key.comment) for key in self.get_keys()]

    def _send_message(self, msg: Message) -> tuple[int, Message]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(AGENT_TIMEOUT)
            connection.connect(self.path)
            single: Any = AgentSSH()
            single._conn = connection  # noqa: SLF001
            kind, answer = single._send_message(msg)  # noqa: SLF001
        return kind, answer


class AgentKey(paramiko.AgentKey):
    """A key in an agent, known by its own blob even where that is a certificate. `refusal` is why it did not sign."""

    public_blob: PublicBlob | None  # type: ignore[assignment]  # the stubs say None

    def __init__(self, agent: AgentSSH, blob: bytes, comment: str) -> None:
        super().__init__(agent, blob, comment)
        self.public_blob = PublicBlob(type_of(blob), blob)
        self.refusal = ""

    def asbytes(self) -> bytes:
        return self.blob

    def certified(self, certificate: bytes) -> AgentKey:
        """Return the same key, offered under a certificate for it."""
        key = AgentKey(self.agent, self.blob, self.comment)
        key.public_blob = PublicBlob(type_of(certificate), certificate)
        return key

    def sign_ssh_data(self, data: Any, algorithm: str | None = None) -> Message:  # noqa: ANN401  as in the stubs
        """Sign; where the agent does not, return a signature that no server accepts. The next key is then offered, as
        by ssh: an exception would end the connection.
        """
        try:
            return Message(cast("bytes", super().sign_ssh_data(data, algorithm)))
        except (OSError, paramiko.SSHException, struct.error) as error:
            self.refusal = f"the agent did not sign: {error}"
        refused = Message()
        refused.add_string(self.get_name())
        refused.add_string(bytes(64))
        return Message(refused.asbytes())


def agent_keys(path: str) -> tuple[list[AgentKey], str]:
    """Return the keys that the agent at this socket holds, or why it gives none."""
    if not path:
        return [], ""
    try:
        return _Agent(path).keys(), ""
    except (OSError, paramiko.SSHException, struct.error, ValueError, TypeError) as error:
        return [], f"the agent at {path} does not answer: {error}"
