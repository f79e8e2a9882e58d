"""The open ports of the hub: whoever connects is a stranger until it proves that it knows the job's token.

A stranger costs a file descriptor and 100 bytes for a few seconds. There is room for so many, and for half as many of
one address: more of that address are turned away, and try again. Where more come at once from many (a scanner, or a job
of a thousand ranks), the kernel's queue holds them until the oldest is gone.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ncheck.hook.meeting.connection import Connection, is_other
from ncheck.hook.meeting.messages import FOREIGN
from ncheck.hook.meeting.ports import plain
from ncheck.hook.meeting.wire import End

if TYPE_CHECKING:
    from collections.abc import Callable

    Introduce = Callable[[Connection, str, object], None]

_MOST_STRANGERS = 256
_FEWEST_STRANGERS = 16
_TO_PROVE = 3.0  # seconds that a stranger may take: a rank needs a round trip
_TO_PROVE_WHEN_FULL = 0.25
_AT_ONCE = 64  # accepted in a row, before those who are in have their turn
_PAUSE = 0.1  # seconds without accepting anyone, where no file descriptor is left
_AT_ONCE_GONE = struct.pack("ii", 1, 0)  # a port that strangers left is not kept by the kernel for a minute
_FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Gate:
    """Listens, and calls `introduce(connection, address, message)` with the first message of who proved to be of this
    job, and `turned_away(address)` for who did not: perhaps it was a rank.
    """

    def __init__(  # noqa: PLR0913  the words of one call
        self,
        selector: selectors.BaseSelector,
        token: bytes,
        introduce: Introduce,
        turned_away: Callable[[str], None],
        room: int,
        *,
        secret: bool = False,
    ) -> None:
        self._selector, self._token = selector, token
        self._introduce, self._turned_away = introduce, turned_away
        self._secret = secret  # the token cannot be guessed: ranks may be of several users
        self._room = min(_MOST_STRANGERS, max(_FEWEST_STRANGERS, room))
        self._listeners: list[socket.socket] = []
        self._strangers: dict[Connection, tuple[str, float]] = {}  # address, since when: the oldest first
        self._paused_until = 0.0
        self._of_address: dict[str, int] = {}  # how many strangers of an address are in

    def listen(self, listener: socket.socket) -> None:
        self._listeners.append(listener)
        if not self._paused_until:
            self._watch(listener)

    def accept(self, sock: socket.socket, address: str) -> None:
        """Take a new connection, of a stranger so far."""
        sock.setblocking(False)  # noqa: FBT003
        connection = Connection(self._selector, sock, End(self._token, hub=True), self)
        self._strangers[connection] = address, time.monotonic()
        self._of_address[address] = self._of_address.get(address, 0) + 1

    @property
    def wake(self) -> float:
        """When to call `tick` if nothing comes."""
        oldest = min(self._oldest + _TO_PROVE, float("inf"))
        return min(self._paused_until, oldest) if self._paused_until else oldest

    def tick(self, now: float) -> None:
        for connection, (_, since) in list(self._strangers.items()):
            if now < since + _TO_PROVE:
                break
            self._turn_away(connection)
        if self._paused_until and (now >= self._paused_until or len(self._strangers) < self._room // 2):
            self._paused_until = 0.0
            for listener in self._listeners:
                self._watch(listener)

    def close(self) -> None:
        for sock in self._listeners:
            with suppress(KeyError, ValueError, OSError):
                self._selector.unregister(sock)
            sock.close()
        self._listeners.clear()
        for connection in list(self._strangers):
            self._drop(connection)

    # What a Connection calls.

    def proved(self, connection: Connection) -> None:
        """Wait for the first message."""

    def heard(self, connection: Connection, message: object) -> None:
        if not self._secret and is_other(connection.user):
            self._turn_away(connection)
            return
        address = self._forget(connection)
        connection.linger()
        self._introduce(connection, address, message)

    def over(self, connection: Connection, reason: str) -> None:
        address = self._forget(connection)
        if reason == FOREIGN:
            self._turned_away(address)

    def _watch(self, listener: socket.socket) -> None:
        self._selector.register(listener, selectors.EVENT_READ, lambda _: self._accept_waiting(listener))

    def _accept_waiting(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            if self._paused_until or not self._has_room():
                return
            try:
                sock, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _FULL:
                    self._pause(time.monotonic() + _PAUSE)
                continue  # that one hung up before it was accepted
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE_GONE)
            name = plain(str(address[0]))
            if self._of_address.get(name, 0) < self._room // 2 or self._drop_old_of(name):
                self.accept(sock, name)
            else:
                sock.close()

    def _has_room(self) -> bool:
        """Make room for one more, if need be by dropping the oldest; pause if that one is too young for it."""
        if len(self._strangers) < self._room:
            return True
        patience = self._oldest + _TO_PROVE_WHEN_FULL
        if time.monotonic() < patience:
            self._pause(patience)
            return False
        self._turn_away(next(iter(self._strangers)))
        return True

    def _drop_old_of(self, address: str) -> bool:
        """Make room for one more of an address whose share is full, by dropping its oldest, unless that is young."""
        oldest, since = next((one, since) for one, (held, since) in self._strangers.items() if held == address)
        if time.monotonic() < since + _TO_PROVE_WHEN_FULL:
            return False
        self._turn_away(oldest)
        return True

    def _pause(self, until: float) -> None:
        self._paused_until = until
        for listener in self._listeners:
            with suppress(KeyError):
                self._selector.unregister(listener)

    @property
    def _oldest(self) -> float:
        return next((since for _, since in self._strangers.values()), float("inf"))

    def _turn_away(self, connection: Connection) -> None:
        """Drop a peer whose time to authenticate is over."""
        address, _ = self._strangers[connection]
        self._drop(connection)
        self._turned_away(address)

    def _drop(self, connection: Connection) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: Connection) -> str:
        """Count somebody no longer as a stranger, and return its address."""
        address, _ = self._strangers.pop(connection)
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]
        return address
