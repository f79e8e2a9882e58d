"""A socket that does not block and speaks as wire.py says; and a child process that must not outlive the meeting."""

from __future__ import annotations

import errno
import json
import os
import selectors
import signal
import socket
import struct
import time
from collections import deque
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from ncheck.hook.peer_user import user_of_peer
from ncheck.hook.wire import End, ForeignError, MisuseError

if TYPE_CHECKING:
    from subprocess import Popen

_CHUNK = 256 * 1024
_READS = 16  # in a row from one peer, before the others have their turn
_UNREACHABLE = {
    errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM, errno.ENETDOWN,
    errno.EHOSTDOWN, errno.EINVAL,  # a blackhole route
}  # fmt: skip
OWN_END = 0.5  # seconds in which a child may end by itself
_AFTER_TERM = 1.0  # seconds in which it may end what it started in sessions of their own
_UNENDING = 1.0
_STEP = 0.005

# Why a connection is over: the other side closed it or its process ended; nobody listens; no answer; no route; the
# other side is not of this job; it sends what ncheck does not send; or the network broke.
ENDED, REFUSED, FILTERED, UNREACHABLE, FOREIGN, MISUSE, LOST = (
    "ended", "refused", "filtered", "unreachable", "foreign", "misuse", "lost",
)  # fmt: skip


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
    def is_proved(self) -> bool:
        return self._end.proved

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

    def say(self, message: object) -> None:
        self.say_text(json.dumps(message).encode())

    def say_text(self, text: bytes) -> None:
        """Send JSON that is made once for many."""
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


class Child:
    """A process of ncheck's own, in a session of its own, that must not outlive the meeting."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process

    @property
    def is_over(self) -> bool:
        """Whether it ended. It is not reaped: until then no other process can have its number."""
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True  # this process ignores SIGCHLD, or reaps all its children itself

    def end(self, patience: float = OWN_END) -> None:
        """Let it end by itself for a moment, then end it and everything in its process group. Once is enough."""
        if self._process.returncode is not None:
            return  # its number may be another's by now
        with suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            if not self._await(patience):
                self._signal(signal.SIGTERM)
                self._await(_AFTER_TERM)
        finally:  # ^C while this waits ends the waiting
            self._signal(signal.SIGKILL)
            self._reap()
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe:
                    pipe.close()

    def _reap(self) -> None:
        from subprocess import TimeoutExpired

        with suppress(TimeoutExpired):  # it sleeps in the kernel: nobody can end it now, and nobody waits for it
            self._process.wait(_UNENDING)

    def _await(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.is_over:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_STEP)
        return True

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:  # it has no group of its own, or all of it ended
            if not self.is_over:
                os.kill(self._process.pid, number)
        except PermissionError:
            pass  # the group has only processes of another user
