"""How a rank finds rank 0: all ports at all addresses of its host, again and again, because rank 0 may start later."""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING

from ncheck.hook.meeting.attendance import UNSEEN, on_another_machine
from ncheck.hook.meeting.connection import Connection, Listener, reason_of
from ncheck.hook.meeting.messages import ENDED, FILTERED, FOREIGN, LOST, REFUSED, UNREACHABLE, NotMet
from ncheck.hook.meeting.peer_user import is_other
from ncheck.hook.meeting.ports import Address, Place, connecting, resolve
from ncheck.hook.meeting.wire import End
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

_FIRST_PAUSE = 0.1  # seconds between two tries; each pause is half as long again, up to the longest
_LONGEST_PAUSE = 0.5
_ALL_EVERY = 4  # tries: the others are of the first port, where the hub nearly always is
_TO_CONNECT = 2.0  # the kernel's own repetitions get rarer and rarer, so we begin anew
_MASTER_PORT_AFTER = 1.0  # the job's own store may hold it: it is not touched where there is no need
_RESOLVE_EVERY = 5.0  # a name may get its address while we wait, as pods do
_SILENT = "silent"  # connected, and not greeted: whoever holds the port waits for the first word
_SLOW_LOOKUP = 0.5  # it blocks this process, so a slow one is not repeated where it once succeeded


class Search:
    """Calls until one of those who answer proves that it is the hub: it is handed to `owner`, and `found` is called."""

    def __init__(  # noqa: PLR0913  the words of one call
        self,
        rank: Rank,
        token: bytes,
        place: Place,
        *,
        selector: selectors.BaseSelector,
        deadline: float,
        owner: Listener,
    ) -> None:
        self._rank, self._token, self._place = rank, token, place
        self._selector, self._deadline, self._owner = selector, deadline, owner
        self._started = time.monotonic()
        self._next = self._started
        self._tries = 0
        self._pause = _FIRST_PAUSE
        self._resolved = self._lookup = 0.0  # when the name was last looked up, and how long that took
        self._addresses: tuple[Address, ...] = ()
        self._problem = ""  # with the name
        self._calls: dict[tuple[Address, int], tuple[Connection, float]] = {}
        self._last: dict[tuple[Address, int], str] = {}  # how the last call there ended
        self._answered = False  # somebody was at the job's own port, or at one of ours and is no longer

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
        self._answered = True

    def extend(self, deadline: float) -> None:
        """Search longer."""
        self._deadline = deadline

    def proved(self, connection: Connection) -> None:
        """Hand over whoever knows the token, unless another user of this machine does who could guess it."""
        if not self._rank.secret and is_other(connection.user):
            connection.close()
            self.over(connection, FOREIGN)
        else:
            self._owner.proved(connection)

    def trusts(self, connection: Connection) -> bool:
        """Whether this is no stranger: what it says of processes that ended may stop the job."""
        return self._rank.secret or connection.user is not None

    def heard(self, connection: Connection, message: object) -> None:
        self._owner.heard(connection, message)

    def over(self, connection: Connection, reason: str) -> None:
        for door, (call, _) in list(self._calls.items()):
            if call is connection:
                del self._calls[door]
                self._note(door, reason)
                return
        self._owner.over(connection, reason)

    def may_start(self, now: float) -> bool:
        """Whether rank 0 may still start, and the job would be stopped without it."""
        failure = self.failure()
        return failure.kind == "refused" and failure.is_error and now - self._started < UNSEEN

    def failure(self) -> NotMet:
        """Return why there was no meeting, and whether the job could not meet there either."""
        place, host = self._place, printable(self._place.hosts[0], 100)
        named = f"{place.given}={host}" if place.jobs_own or place.given == "NCHECK_RENDEZVOUS" else host
        if not self._addresses:
            words = f"{named} does not resolve on this host: {self._problem}"
            return NotMet("unresolved", words, is_error=place.jobs_own)
        if all(address.loopback for address in self._addresses) and on_another_machine(self._rank):
            words = f"{named} is {self._addresses[0].text} on this host, but rank 0 is on another one"
            return NotMet("loopback", words, is_error=place.jobs_own)
        tried = {reason for (_, port), reason in self._last.items() if port == place.master_port}
        for door, (call, _) in self._calls.items():
            self._note(door, _SILENT if call.connected else FILTERED)
        own = {reason for (_, port), reason in self._last.items() if port != place.master_port}
        masters = {reason for (_, port), reason in self._last.items() if port == place.master_port}
        return self._failure(named, own, masters, cut_off=tried == masters and self._cut_off(masters))

    def _cut_off(self, masters: set[str]) -> bool:
        """Whether the job cannot meet either: its own port gives no answer, or there is no route to it."""
        return self._place.jobs_own and not self._answered and bool(masters) and masters <= {FILTERED, UNREACHABLE}

    def _failure(self, named: str, own: set[str], masters: set[str], *, cut_off: bool) -> NotMet:
        if addresses := ", ".join(address.text for address in self._addresses if address.text not in self._place.hosts):
            named = f"{named} ({addresses})"
        waited = f"rank 0 was not found at {named} within {self._deadline - self._started:.3g} s"
        if own - {FOREIGN} == {REFUSED}:
            both = masters == {REFUSED} and self._place.jobs_own and not self._answered
            also = f", and nothing listens on MASTER_PORT {self._place.master_port} either" if both else ""
            return NotMet("refused", f"{waited}: it refuses the connections{also}", is_error=both)
        others = len(self._place.ports) - 1
        ports = f"{self._place.ports[0]} and {others} others" if others else f"{self._place.ports[0]}"
        if own <= {FILTERED, REFUSED} and own:
            master = f" and from MASTER_PORT {self._place.master_port}" if cut_off else ""
            words = f"{waited}: no answer from its ports ({ports}){master}, perhaps because of a firewall"
            return NotMet("filtered", words, is_error=cut_off)
        if own <= {UNREACHABLE, FILTERED, REFUSED}:
            return NotMet("unreachable", f"{waited}: there is no route to it", is_error=cut_off)
        if own <= {UNREACHABLE, FILTERED, REFUSED, LOST}:
            return NotMet("unreachable", f"{waited}: the connections to it fail", is_error=cut_off)
        return NotMet("foreign", f"{waited}: other programs answer on its ports ({ports})")

    def _note(self, door: tuple[Address, int], reason: str) -> None:
        """Keep how a call ended."""
        self._last[door] = reason
        there = {ENDED, FOREIGN, _SILENT} if door[1] == self._place.master_port else {ENDED}
        self._answered = self._answered or reason in there

    def _resolve(self, now: float) -> None:
        """Look the name up, unless that would take longer than there is time."""
        if self._addresses and (now < self._resolved + _RESOLVE_EVERY or self._lookup > _SLOW_LOOKUP):
            return
        if now + self._lookup > self._deadline:
            return
        self._resolved = now
        found: list[Address] = []
        for host in self._place.hosts:
            try:
                found += resolve(host)
            except OSError as error:  # noqa: PERF203
                self._problem = self._problem or error.strerror or str(error)
        self._addresses = tuple(dict.fromkeys(found)) or self._addresses
        self._lookup = time.monotonic() - now

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
            sock = connecting(address.family, address.at(port))
        except OSError as error:
            self._last[address, port] = reason_of(error)
            return
        self._calls[address, port] = (Connection(self._selector, sock, End(self._token, hub=False), self), now)
