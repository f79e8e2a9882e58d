"""The nodes of a job as a fleet: by the connections that its ranks have opened, to the part of ncheck on each node.

In a watch a connection is used by one session after the other: ncheck.hook.sessions has the other end.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from ncheck.agent.frames import packed
from ncheck.fleet.bootstrap import parse_script
from ncheck.fleet.engine import NotConnectedError
from ncheck.fleet.session import SessionEndedError
from ncheck.hook.sessions import READY
from ncheck.model.evidence import Cause, Login

if TYPE_CHECKING:
    from ncheck.model.node import Node

_BYE: bytes = packed({"do": "bye"})
_TO_SAY_BYE = 1.0  # seconds
_BLINK = 0.2  # seconds between two looks whether a stream has been closed
_CHUNK = 1 << 16
_NO_MORE = "its connection to the watch has ended"


class RanksEngine:
    """Nodes by the connections that ranks of the job have opened; `why` a node has none, by name.

    `kept`: a stream that is closed leaves its connection for the next one. `used`: nodes that had a session before.
    """

    name = "ranks"

    def __init__(
        self,
        sockets: Mapping[str, socket.socket],
        why: Mapping[str, str],
        *,
        kept: bool = False,
        used: Collection[str] = (),
    ) -> None:
        self.sockets, self.why, self.kept, self.used = dict(sockets), dict(why), kept, set(used)

    def connect(self, node: Node, timeout: float) -> SocketStream:
        """Return the stream of a node. Raises NotConnectedError where no rank of it came, or its part has ended."""
        connection = self.sockets.get(node.name)
        if connection and node.name in self.used and not _is_ready(connection, timeout):
            self.lose(node.name, "ncheck's part on this node has ended, or no rank there was started with NCHECK_WATCH")
            connection = None
        if connection is None:
            why = self.why.get(node.name, "ncheck could not start its part on this node")
            raise NotConnectedError(Login(reached=False, cause=Cause.DEADLINE, detail=why, transport=self.name))
        return SocketStream(connection, self, node.name)

    def lose(self, name: str, why: str) -> None:
        """End the connection to a node for good."""
        connection = self.sockets.pop(name, None)
        if connection:
            self.why[name] = why
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


class SocketStream:
    """One node's connection. That it breaks is ncheck's own trouble: the rank itself is watched by the meeting."""

    def __init__(self, connection: socket.socket, engine: RanksEngine, name: str) -> None:
        self.connection, self.engine, self.name = connection, engine, name
        self.login = Login(reached=True, transport=RanksEngine.name, address=_peer(connection))
        self.lock = threading.Lock()  # what reads must not do so when the next stream may
        self.closed = False
        self.sends = 0
        self.last = b""  # what was sent
        self.agent_wanted = False
        self.half_sent = False

    def send(self, data: bytes, timeout: float) -> None:
        with self.lock:
            if self.closed:
                raise self._ended("the stream was closed")
            self.half_sent = True
        self.connection.settimeout(max(timeout, 0.001))
        self.connection.sendall(data)
        if not self.sends:
            self.agent_wanted = parse_script(data.decode("utf-8", "replace"))[1] is not None
        self.sends += 1
        self.last, self.half_sent = data, False

    def receive(self, timeout: float) -> bytes:
        until = time.monotonic() + timeout
        while True:
            left = max(until - time.monotonic(), 0.001)
            arrived = _arrived(self.connection, min(left, _BLINK) if self.engine.kept else left)
            with self.lock:
                if self.closed:
                    raise self._ended("the stream was closed")
                if arrived:
                    return self._received()
            if time.monotonic() >= until:
                raise TimeoutError

    def stderr(self) -> bytes:
        return b""

    def exit_status(self, timeout: float) -> int | None:  # noqa: ARG002
        return None

    def close(self) -> None:
        """End the session. Its connection is kept for the next one where nothing of this one is left on the way."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
        if not (self.engine.kept and self._said_bye()):
            self.engine.lose(self.name, _NO_MORE)

    def _received(self) -> bytes:
        try:
            data = self.connection.recv(_CHUNK)
        except OSError as error:
            raise self._ended(str(error)) from None
        if not data:
            raise self._ended("the connection ended")
        return data

    def _said_bye(self) -> bool:
        """Let the session end on the other side too; False if that is not possible there."""
        if self.half_sent or (self.sends == 1 and self.agent_wanted):  # it waits for the rest
            return False
        if self.sends:
            self.engine.used.add(self.name)
        if self.sends and self.last != _BYE:
            try:
                self.connection.settimeout(_TO_SAY_BYE)
                self.connection.sendall(_BYE)
            except OSError:
                return False
        return True

    def _ended(self, why: str) -> Exception:
        return SessionEndedError(Cause.TRANSPORT, f"ncheck's part on this node ended: {why}")


def _is_ready(connection: socket.socket, seconds: float) -> bool:
    """Wait for the other side to be ready for a session. What is left of the last one is dropped."""
    until, seen = time.monotonic() + seconds, b""
    with suppress(OSError):
        while not seen.endswith(READY):
            connection.settimeout(max(until - time.monotonic(), 0.001))
            data = connection.recv(_CHUNK)
            if not data:
                return False
            seen = (seen + data)[-len(READY) :]
        return True
    return False


def _arrived(connection: socket.socket, seconds: float) -> bool:
    """Wait until something can be read, or the connection has ended."""
    with suppress(ValueError):  # it was closed
        poller = select.poll()
        poller.register(connection, select.POLLIN)
        return bool(poller.poll(1000 * seconds))
    return False


def _peer(connection: socket.socket) -> str:
    try:
        address = connection.getpeername()
    except OSError:
        return ""
    return str(address[0]) if isinstance(address, tuple) else ""
