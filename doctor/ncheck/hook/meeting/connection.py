"""A socket that does not block and speaks as wire.py says."""

from __future__ import annotations

import errno
import json
import selectors
import socket
import struct
from collections import deque
from contextlib import suppress
from functools import cached_property
from typing import Protocol

from ncheck.hook.meeting.messages import ENDED, FILTERED, FOREIGN, LOST, MISUSE, REFUSED, UNREACHABLE, Message, written
from ncheck.hook.meeting.peer_user import user_of_peer
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
