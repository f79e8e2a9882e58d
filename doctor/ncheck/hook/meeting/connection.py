"""A socket that does not block and speaks as wire.py says."""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
import struct
from collections import deque
from contextlib import suppress
from functools import cached_property
from typing import Protocol

from ncheck.hook.meeting.messages import ENDED, FILTERED, FOREIGN, LOST, MISUSE, REFUSED, UNREACHABLE, Message, written
from ncheck.hook.meeting.wire import End, ForeignError, MisuseError

_CHUNK = 256 * 1024
_READS = 16  # in a row from one peer, before the others have their turn
_UNREACHABLE = {
    errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM, errno.ENETDOWN,
    errno.EHOSTDOWN, errno.EINVAL,  # a blackhole route
}  # fmt: skip


class Listener(Protocol):
    """Who is told what a connection does."""

    def proved(self, connection: Connection) -> None: ...
    def heard(self, connection: Connection, message: object) -> None: ...
    def over(self, connection: Connection, reason: str) -> None: ...


class Connection:
    """One connection, from its beginning (it need not be established yet) to `close` or `detach`.

    After `over` was called, or `close`, nothing is called any more.
    """

    def __init__(self, selector: selectors.BaseSelector, sock: socket.socket, end: End, listener: Listener) -> None:
        self._selector, self._socket, self._end, self._listener = selector, sock, end, listener
        self._waiting: deque[memoryview] = deque()
        self._open = True
        selector.register(sock, selectors.EVENT_READ, self._ready)
        self._take_outgoing()

    @property
    def connected(self) -> bool:
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    @property
    def peer(self) -> tuple[socket.AddressFamily, tuple[str | int, ...]]:
        return self._socket.family, self._socket.getpeername()

    @cached_property
    def user(self) -> int | None:
        """The user of the other end, where that is a process of this machine; None unknown."""
        return user_of_peer(self._socket)

    @property
    def own_address(self) -> str:
        with suppress(OSError):
            if self._socket.family != socket.AF_UNIX:
                return str(self._socket.getsockname()[0])
        return ""

    @property
    def unsent(self) -> bool:
        return bool(self._waiting)

    def say(self, message: Message) -> None:
        self.say_text(encoded(message))

    def say_text(self, text: bytes) -> None:
        """Send a message that is encoded once for many."""
        if self._open:
            self._end.say(text)
            self._take_outgoing()
            self._flush()

    def linger(self) -> None:
        """Let what was sent arrive, even if this side closes first."""
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))

    def hand_to(self, listener: Listener) -> None:
        self._listener = listener

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(KeyError, ValueError, OSError):
                self._selector.unregister(self._socket)
            self._socket.close()

    def detach(self) -> socket.socket:
        """Give the socket away, blocking; nothing that came after the last message was read from it."""
        self._open = False
        self._selector.unregister(self._socket)
        self._socket.setblocking(True)  # noqa: FBT003
        return self._socket

    def _ready(self, events: int) -> None:
        if self._open and events & selectors.EVENT_WRITE:
            self._flush()
        if self._open and events & selectors.EVENT_READ:
            self._read()

    def _read(self) -> None:
        for _ in range(_READS):
            if not self._open:
                return
            try:
                data = self._socket.recv(min(self._end.wanted, _CHUNK))
                before = self._end.proved
                messages = self._end.feed(data)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._over(reason_of(error))
                return
            except (ForeignError, MisuseError) as error:
                self._over(FOREIGN if isinstance(error, ForeignError) else MISUSE)
                return
            if not data:
                self._over(ENDED)
                return
            self._take_outgoing()
            self._flush()
            if self._end.proved and not before and self._open:
                self._listener.proved(self)
            for message in messages:
                if self._open:
                    self._listener.heard(self, message)

    def _take_outgoing(self) -> None:
        self._waiting.extend(memoryview(data) for data in self._end.outgoing)
        self._end.outgoing.clear()
        self._watch()

    def _flush(self) -> None:
        try:
            while self._waiting:
                sent = self._socket.send(self._waiting[0], socket.MSG_NOSIGNAL)
                if sent == len(self._waiting[0]):
                    self._waiting.popleft()
                else:
                    self._waiting[0] = self._waiting[0][sent:]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._waiting.clear()
            if error.errno not in {errno.EPIPE, errno.ECONNRESET}:  # these are read, after what came before them
                self._over(reason_of(error))
                return
        self._watch()

    def _watch(self) -> None:
        if self._open:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting else 0)
            if self._selector.get_key(self._socket).events != events:
                self._selector.modify(self._socket, events, self._ready)

    def _over(self, reason: str) -> None:
        self.close()
        self._listener.over(self, reason)


def reason_of(error: OSError) -> str:
    """Return why a connection is over."""
    if error.errno == errno.ECONNREFUSED:
        return REFUSED
    if error.errno in {errno.ECONNRESET, errno.EPIPE}:
        return ENDED
    if error.errno == errno.ETIMEDOUT:
        return FILTERED
    return UNREACHABLE if error.errno in _UNREACHABLE else LOST


def encoded(message: Message) -> bytes:
    return json.dumps(written(message)).encode()


# Whose process holds the other end: known where that process is on this machine. A job's id is often easy to guess, so
# the proof that a peer knows it is not enough: on one machine it must also be of this job's user.

_UNKNOWN_HERE = 65534  # how the kernel shows a user that this container has no number for
_ROOT = 0


def is_other(user: int | None) -> bool:
    """Tell whether this is known to be another user than that of this process, and not root."""
    return user is not None and user not in {os.geteuid(), _ROOT}


def user_of_peer(sock: socket.socket) -> int | None:
    """Return the user of the other end; None if that is on another machine, or unknown."""
    try:
        if sock.family == socket.AF_UNIX:
            return os.geteuid()  # a pair that this process made
        own, peer = sock.getsockname(), sock.getpeername()
    except OSError:
        return None
    user = _user(peer, own) if _is_own(str(peer[0])) else None
    return None if user == _UNKNOWN_HERE else user


def _is_own(address: str) -> bool:
    """Return whether an address is one of this machine: the kernel lets nobody be bound to another one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        return True
    return False


def _user(local: tuple[str | int, ...], remote: tuple[str | int, ...]) -> int | None:
    """Return the user of the socket with this end and that one."""
    with suppress(OSError, struct.error):
        return _asked(_packed(local), int(local[1]), _packed(remote), int(remote[1]))
    for one, other in zip(_as_shown(local), _as_shown(remote), strict=True):
        if (user := _row_user(f" {one} {other} ")) is not None:
            return user
    return None


def _as_shown(address: tuple[str | int, ...]) -> tuple[str, str]:
    """Return an address as the kernel's tables show it, for IPv4 and for IPv6: 0100007F:1F90 is 127.0.0.1:8080."""
    packed = _packed(address)
    words = [packed[at : at + 4][::-1].hex().upper() for at in range(0, 16, 4)]
    return f"{words[3]}:{address[1]:04X}", f"{''.join(words)}:{address[1]:04X}"


def _packed(address: tuple[str | int, ...]) -> bytes:
    """Return the 16 bytes of an address, those of IPv4 as IPv6 has them."""
    text = str(address[0]).partition("%")[0]
    return socket.inet_pton(socket.AF_INET6, text if ":" in text else f"::ffff:{text}")


_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_NO_COOKIE = b"\xff" * 8
_USER_AT = 16 + 4 + 48 + 12  # in the answer: after its header, four bytes, the two ends, and three numbers


def _asked(local: bytes, local_port: int, remote: bytes, remote_port: int) -> int:
    """Ask the kernel for one socket: reading all of its tables takes long where there are many. Raises OSError."""
    ends = struct.pack(">HH16s16sI", local_port, remote_port, local, remote, 0) + _NO_COOKIE
    question = struct.pack("=BBBBI", socket.AF_INET6, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends
    header = struct.pack("=IHHII", 16 + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(header + question)
        answer = kernel.recv(4096)
    if struct.unpack_from("=IH", answer)[1] != _BY_FAMILY:
        raise OSError("no such socket")
    return int(struct.unpack_from("=I", answer, _USER_AT)[0])


def _row_user(part: str) -> int | None:
    """Return the user of the first socket whose row has this part: its two addresses."""
    # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0
    for table in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as file:  # noqa: PTH123  pathlib is dear
            text = file.read()
            if (at := text.find(part)) >= 0:
                return int(text[text.rfind("\n", 0, at + 1) + 1 :].split(None, 8)[7])
    return None
