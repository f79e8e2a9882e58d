"""Streams that other agents of this run opened to this one, kept until the probe takes them."""

import threading
import time

from ncheck.agent.dial import hang_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Callable, Dict, Iterable, List, Sequence, Set

MOST = 64  # streams that are not taken yet
_STRIDE = 0.2  # seconds between two looks at whether it still makes sense to wait


class Arrived:
    """Each stream by its ticket, until the step that it is for takes it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.streams: "Dict[bytes, socket.socket]" = {}
        self.unwanted: "Set[bytes]" = set()

    def put(self, ticket: bytes, sock: "socket.socket") -> None:
        """Keep a stream. One that nobody wants any more, or a second one of a ticket, is hung up on."""
        with self.changed:
            extra = [sock] if ticket in self.unwanted or ticket in self.streams else []
            if not extra:
                self.streams[ticket] = sock
            if len(self.streams) > MOST:
                extra.append(self.streams.pop(next(iter(self.streams))))
            self.changed.notify_all()
        for one in extra:
            hang_up(one)

    def take(self, tickets: "Sequence[bytes]", ends: float, vain: "Callable[[], bool]") -> "List[socket.socket]":
        """Return the streams of these tickets once all are there; [] when the time is over, or where `vain()`."""
        with self.changed:
            while not all(ticket in self.streams for ticket in tickets):
                left = ends - time.monotonic()
                if left <= 0 or vain():
                    return []
                self.changed.wait(min(left, _STRIDE))
            return [self.streams.pop(ticket) for ticket in tickets]

    def refuse(self, tickets: "Iterable[bytes]") -> None:
        """Hang up on these streams, and on those of them that are still to come."""
        with self.changed:
            self.unwanted.update(tickets)
            refused = [self.streams.pop(ticket) for ticket in tickets if ticket in self.streams]
        for sock in refused:
            hang_up(sock)


ARRIVED = Arrived()
