"""The side of every rank, rank 0 too: it finds the hub, says who it is, starts its node's agent when asked to, and
waits for the verdict.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from ncheck.hook.attendance import Member, NotMet, Outcome, Told, member_from, not_met_from
from ncheck.hook.connection import ENDED, FILTERED, FOREIGN, REFUSED, UNREACHABLE, Child, Connection
from ncheck.hook.doors import Address, Place, on_another_machine, resolve
from ncheck.hook.wire import End
from ncheck.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

    from ncheck.hook.launchers import Rank

    StartNodePart = Callable[[socket.socket], Popen[bytes]]

_FIRST_PAUSE = 0.1  # seconds between two tries; each pause is half as long again, up to the longest
_LONGEST_PAUSE = 0.5
_ALL_EVERY = 4  # tries: the others are of the first port, where the hub nearly always is
_TO_CONNECT = 2.0  # the kernel's own repetitions get rarer and rarer, so we begin anew
_MASTER_PORT_AFTER = 1.0  # the job's own store may hold it: it is not touched where there is no need
_RESOLVE_EVERY = 5.0  # a name may get its address while we wait, as pods do


class Link:
    """One rank's part in the meeting. `outcome` is set at the end."""

    def __init__(
        self, own: Member, selector: selectors.BaseSelector, timeout: float, start_node_part: StartNodePart
    ) -> None:
        self._own, self._selector, self._start_node_part = own, selector, start_node_part
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        self._hub: Connection | None = None
        self._hub_member: Member | None = None  # since it said welcome
        self._channel: tuple[Connection, str] | None = None
        self._child: Child | None = None
        self._token = b""
        self._search: Search | None = None
        self._call_again: Callable[[], socket.socket] | None = None
        self.outcome: Outcome | None = None

    def call(self, sock: socket.socket, token: bytes, call_again: Callable[[], socket.socket]) -> None:
        """Meet the hub of this process."""
        self._token, self._call_again = token, call_again
        Connection(self._selector, sock, End(token, hub=False), self)

    def search(self, rank: Rank, token: bytes, place: Place) -> None:
        """Meet the hub of another process."""
        self._token = token
        self._search = Search(rank, token, place, self._selector, self)

    @property
    def wake(self) -> float:
        return min(self._deadline, self._search.wake) if self._searching and self._search else self._deadline

    @property
    def _searching(self) -> bool:
        return self._search is not None and self._hub is None

    def tick(self) -> None:
        if self.outcome is None and time.monotonic() >= self._deadline:
            self._give_up()
        elif self.outcome is None and self._searching and self._search:
            self._search.tick()

    def close(self) -> None:
        """Close everything and end the node's agent."""
        try:
            for connection in (self._hub, self._channel[0] if self._channel else None):
                if connection:
                    connection.close()
            if self._search:
                self._search.close()
        finally:
            if self._child:
                self._child.end()

    def hang_up(self) -> None:
        """Close the connection to the hub; the node's agent may go on."""
        if self._hub:
            self._hub.close()

    def leave(self, kind: str) -> None:
        """Say that this process lives, and goes on without a verdict."""
        if self._hub:
            self._hub.say({"what": "leave", "kind": kind})

    def _give_up(self) -> None:
        if self._hub_member:
            self.leave("overran")
            self._finish(NotMet("overran", f"rank 0 sent no verdict within {self._timeout:.3g} s"))
        elif self._search:
            self._finish(self._search.failure())
        else:
            self._finish(NotMet("overran", f"no verdict within {self._timeout:.3g} s"))

    def _finish(self, outcome: Outcome) -> None:
        """Hang up: the hub waits for that, so that the port is free when it goes on."""
        self.outcome = outcome
        if self._hub:
            self._hub.close()

    # What a Connection calls.

    def proved(self, connection: Connection) -> None:
        if self._channel and connection is self._channel[0]:
            self._start(connection, self._channel[1])
            self._channel = None
        elif self._hub is None:
            self._hub = connection
            if self._search:
                self._search.found(connection)
            remaining = max(0.0, self._deadline - time.monotonic())
            connection.say({"what": "rank", "member": asdict(self._own), "seconds": remaining})
        else:
            connection.close()

    def heard(self, connection: Connection, message: object) -> None:
        try:
            if not isinstance(message, dict):
                raise ValueError("no message")  # noqa: TRY004, TRY301
            what = message.get("what")
            if what == "welcome":
                self._hub_member = member_from(message.get("member"), "")
            elif what == "open":
                self._open_channel(str(message.get("ticket")))
            elif what == "verdict":
                self._take_verdict(message)
            elif what == "no verdict":
                self._finish(not_met_from(message))
        except ValueError:
            connection.close()
            self.over(connection, FOREIGN)

    def over(self, connection: Connection, reason: str) -> None:
        if self._channel and connection is self._channel[0]:
            self._channel = None
        elif connection is self._hub and self.outcome is None:
            if self._hub_member is None and self._search:
                self._hub = None  # it turned us away, perhaps for want of room: the search goes on
            elif reason == ENDED:
                who = self._hub_member.shown if self._hub_member else "rank 0"
                self._finish(NotMet("ended", f"{who} ended before there was a verdict", is_error=True))
            else:
                self._finish(NotMet("lost", "the connection to rank 0 broke"))

    def _take_verdict(self, message: dict[str, object]) -> None:
        verdict, ended = message.get("verdict"), message.get("ended")
        if not isinstance(verdict, dict) or not isinstance(ended, list):
            raise ValueError("no verdict")  # noqa: TRY004
        self._finish(Told(verdict, tuple(member_from(one, "") for one in ended)))

    # The channel of this node's agent.

    def _open_channel(self, ticket: str) -> None:
        if self._channel or self._child or not self._hub:
            return
        try:
            sock = self._call_again() if self._call_again else _connecting(*self._hub.peer)
        except OSError:
            return  # the hub goes on without this node's agent, and says so
        self._channel = (Connection(self._selector, sock, End(self._token, hub=False), self), ticket)

    def _start(self, connection: Connection, ticket: str) -> None:
        connection.say({"what": "channel", "ticket": ticket})
        if connection.unsent:
            connection.close()
            return
        with connection.detach() as sock, suppress(Exception):  # the examiner sees the end of the channel
            self._child = Child(self._start_node_part(sock))


class Search:
    """Tries all ports at all addresses of rank 0's host, again and again: rank 0 may start later."""

    def __init__(self, rank: Rank, token: bytes, place: Place, selector: selectors.BaseSelector, link: Link) -> None:
        self._rank, self._token, self._place, self._selector, self._link = rank, token, place, selector, link
        self._started = time.monotonic()
        self._next = self._started
        self._tries = 0
        self._pause = _FIRST_PAUSE
        self._resolved = 0.0
        self._addresses: tuple[Address, ...] = ()
        self._problem = ""  # with the name
        self._calls: dict[tuple[Address, int], tuple[Connection, float]] = {}
        self._last: dict[tuple[Address, int], str] = {}  # how the last call there ended

    @property
    def wake(self) -> float:
        return self._next

    def tick(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._resolve(now)
        self._give_up_old(now)
        for address in self._addresses:
            for port in self._ports(now):
                if (address, port) not in self._calls:
                    self._call(address, port, now)
        self._tries += 1
        self._next, self._pause = now + self._pause, min(_LONGEST_PAUSE, self._pause * 1.5)

    def close(self) -> None:
        for connection, _ in self._calls.values():
            connection.close()
        self._calls.clear()

    def found(self, hub: Connection) -> None:
        """Hang up everywhere but there."""
        self._calls = {door: call for door, call in self._calls.items() if call[0] is not hub}
        self.close()

    def proved(self, connection: Connection) -> None:
        self._link.proved(connection)

    def heard(self, connection: Connection, message: object) -> None:
        self._link.heard(connection, message)

    def over(self, connection: Connection, reason: str) -> None:
        for door, (call, _) in list(self._calls.items()):
            if call is connection:
                del self._calls[door]
                self._last[door] = reason
                return
        self._link.over(connection, reason)

    def failure(self) -> NotMet:
        """Return why there was no meeting, and whether the job could not meet there either."""
        host, place = printable(self._place.host, 100), self._place
        named = f"{place.given}={host}" if place.given else host
        if not self._addresses:
            return NotMet("unresolved", f"{named} does not resolve on this host: {self._problem}", is_error=True)
        if all(address.loopback for address in self._addresses) and on_another_machine(self._rank):
            words = f"{named} is {self._addresses[0].text} on this host, but rank 0 is on another one"
            return NotMet("loopback", words, is_error=True)
        for door, (call, _) in self._calls.items():
            self._last[door] = FOREIGN if call.connected else FILTERED
        own = {reason for (_, port), reason in self._last.items() if port != place.master_port}
        masters = {reason for (_, port), reason in self._last.items() if port == place.master_port}
        return self._failure(named, own, masters)

    def _failure(self, named: str, own: set[str], masters: set[str]) -> NotMet:
        waited = f"rank 0 was not found at {named} within {time.monotonic() - self._started:.0f} s"
        if own == {REFUSED}:
            both = masters == {REFUSED} and self._place.given == "MASTER_ADDR"
            also = f", and nothing listens on MASTER_PORT {self._place.master_port} either" if both else ""
            return NotMet("refused", f"{waited}: it refuses the connections{also}", is_error=both)
        ports = f"{self._place.ports[0]}" + (
            f" and {len(self._place.ports) - 1} others" if self._place.ports[1:] else ""
        )
        if own <= {FILTERED, REFUSED} and own:
            return NotMet("filtered", f"{waited}: no answer from its ports ({ports}), perhaps because of a firewall")
        if own <= {UNREACHABLE, FILTERED, REFUSED}:
            return NotMet("unreachable", f"{waited}: there is no route to it")
        return NotMet("foreign", f"{waited}: other programs answer on its ports ({ports})")

    def _resolve(self, now: float) -> None:
        if self._addresses and now < self._resolved + _RESOLVE_EVERY:
            return
        self._resolved = now
        try:
            self._addresses = resolve(self._place.host)
        except OSError as error:
            self._problem = error.strerror or str(error)

    def _give_up_old(self, now: float) -> None:
        for door, (call, since) in list(self._calls.items()):
            if now >= since + _TO_CONNECT and not call.connected:
                call.close()
                del self._calls[door]
                self._last[door] = FILTERED

    def _ports(self, now: float) -> tuple[int, ...]:
        ports = self._place.ports if self._tries % _ALL_EVERY == 0 else self._place.ports[:1]
        master = self._place.master_port
        return (*ports, master) if master is not None and now >= self._started + _MASTER_PORT_AFTER else ports

    def _call(self, address: Address, port: int, now: float) -> None:
        try:
            sock = _connecting(address.family, address.at(port))
        except OSError:
            self._last[address, port] = UNREACHABLE
            return
        self._calls[address, port] = (Connection(self._selector, sock, End(self._token, hub=False), self), now)


def _connecting(family: int, address: tuple[str | int, ...]) -> socket.socket:
    """Begin to connect. Raises OSError where that is known to fail at once."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect_ex(address)  # how it ends is read from the socket
    except BaseException:
        sock.close()
        raise
    return sock
