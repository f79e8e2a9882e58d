"""Streams that other agents of this run opened to this one, kept until the probe takes them."""

import threading
import time

from ncheck.agent.dial import hang_up

MOST = 64  # streams that are not taken yet
_STRIDE = 0.2  # seconds between two looks at whether it still makes sense to wait


class Arrived:
    """Each stream by its ticket, until the turn that it is for takes it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.held, self.unwanted = {}, set()

    def put(self, ticket, sock):
        """Keep a stream. One that nobody wants any more, or a second one of a ticket, is hung up on."""
        with self.changed:
            extra = [sock] if ticket in self.unwanted or ticket in self.held else []
            if not extra:
                self.held[ticket] = sock
            if len(self.held) > MOST:
                extra.append(self.held.pop(next(iter(self.held))))
            self.changed.notify_all()
        for one in extra:
            hang_up(one)

    def take(self, tickets, ends, vain):
        """Return the streams of these tickets once all are there; [] when the time is over, or where `vain()`."""
        with self.changed:
            while not all(ticket in self.held for ticket in tickets):
                left = ends - time.monotonic()
                if left <= 0 or vain():
                    return []
                self.changed.wait(min(left, _STRIDE))
            return [self.held.pop(ticket) for ticket in tickets]

    def refuse(self, tickets):
        """Hang up on these streams, and on those of them that are still to come."""
        with self.changed:
            self.unwanted.update(tickets)
            held = [self.held.pop(ticket) for ticket in tickets if ticket in self.held]
        for sock in held:
            hang_up(sock)


ARRIVED = Arrived()
