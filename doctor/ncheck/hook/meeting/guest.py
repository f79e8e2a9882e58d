"""The rules of a meeting on every rank, rank 0 too: how it finds rank 0, what it answers, and what the outcome is.

They are steps from one Guest to the next, as in rules.py: no socket, no clock. All ports at all addresses of rank 0's
host are called again and again, because rank 0 may start later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from ncheck.hook.meeting.attendance import UNSEEN, on_another_machine
from ncheck.hook.meeting.messages import (
    ENDED,
    FILTERED,
    FOREIGN,
    LOST,
    REFUSED,
    UNREACHABLE,
    Came,
    Leave,
    Look,
    Member,
    Message,
    NotMet,
    Open,
    Outcome,
    Told,
    Wait,
    Welcome,
)  # fmt: skip
from ncheck.hook.meeting.ports import HubAddress, Place
from ncheck.hook.meeting.rules import LONGER, Show
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

_FIRST_PAUSE = 0.1  # seconds between two tries; each pause is half as long again, up to the longest
_LONGEST_PAUSE = 0.5
_ALL_EVERY = 4  # tries: the others are of the first port, where rank 0 nearly always is
_TO_CONNECT = 2.0  # the kernel's own repetitions get rarer and rarer, so we begin anew
_MASTER_PORT_AFTER = 1.0  # the job's own store may hold it: it is not touched where there is no need
_RESOLVE_EVERY = 5.0  # a name may get its address while we wait, as pods do
_SLOW_LOOKUP = 0.5  # it blocks this process, so a slow one is not repeated where it once succeeded
_SILENT = "silent"  # connected, and not greeted: whoever holds the port waits for the first word

Target: TypeAlias = tuple[HubAddress, int]  # a port of rank 0's host


# What is to be done: send rank 0 a message of a rank, do what a message of rank 0 wants, or:


@dataclass(frozen=True)
class Resolve:
    """Look up the addresses of these names, and go on with `resolved`."""

    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """Close these connections, and connect there."""

    ended: tuple[Target, ...]
    begun: tuple[Target, ...] = ()


@dataclass(frozen=True)
class LookForHost:
    """Look for a process of rank 0 on this machine, and go on with `looked`."""


Action = Came | Leave | Look | Open | Resolve | Calls | LookForHost | Show


@dataclass(frozen=True, kw_only=True)
class Guest:
    """The meeting as one rank knows it. Times are of one clock, in seconds."""

    rank: Rank
    own: Member
    place: Place | None  # where rank 0 is to be found; None in its own process
    begun: float
    timeout: float
    deadline: float
    patient_until: float = 0.0  # a rank 0 that may still come is waited for

    addresses: tuple[HubAddress, ...] = ()  # of rank 0's host
    problem: str = ""  # with its name
    resolved: float = 0.0  # when the name was last looked up
    took: float = 0.0  # to look it up
    tries: int = 0
    pause: float = _FIRST_PAUSE
    due: float = 0.0  # the next try
    calls: Mapping[Target, float] = field(default_factory=dict)  # connections of nobody known, and since when
    last: Mapping[Target, str] = field(default_factory=dict)  # how the last call there ended
    has_answered: bool = False  # somebody was at the job's own port, or at one of ours and is no longer
    met: bool = False  # rank 0 has proved that it is
    sure: bool = False  # it is no stranger: the token is secret, or it is a process of this user here
    host: Member | None = None  # rank 0, since it sent a welcome
    outcome: Outcome | None = None
    todo: tuple[Action, ...] = ()  # of the step in progress

    @property
    def searching(self) -> bool:
        return self.place is not None and not self.met

    @property
    def wake(self) -> float:
        """When the next `tick` is due if nothing happens."""
        return min(self.deadline, self.due) if self.searching else self.deadline


Step = tuple[Guest, tuple[Action, ...]]


# The steps. `connected`: the calls that somebody has accepted.


def tick(guest: Guest, now: float, connected: Collection[Target] = ()) -> Step:
    """Do what is due."""
    if guest.outcome is not None:
        return _step(guest)
    if now >= guest.deadline:
        if guest.searching and now < guest.patient_until:
            return _step(guest, LookForHost())
        return _step(_given_up(guest, connected))
    if not guest.searching or guest.place is None or now < guest.due:
        return _step(guest)
    known = guest.addresses and (now < guest.resolved + _RESOLVE_EVERY or guest.took > _SLOW_LOOKUP)
    if known or now + guest.took > guest.deadline:  # or it would take longer than there is time
        return _step(_tried(guest, now, connected))
    return _step(guest, Resolve(guest.place.hosts))


def resolved(  # noqa: PLR0913, PLR0917  what is known of one look-up
    guest: Guest,
    found: Collection[HubAddress],
    problem: str,
    now: float,
    took: float,
    connected: Collection[Target] = (),
) -> Step:
    """Take the addresses of rank 0's host, and call it. `now` is when the look-up began."""
    addresses = tuple(dict.fromkeys(found)) or guest.addresses
    guest = replace(guest, addresses=addresses, problem=guest.problem or problem, resolved=now, took=took)
    return _step(_tried(guest, now, connected))


def looked(guest: Guest, now: float, connected: Collection[Target] = (), *, lives: bool) -> Step:
    """Wait longer for a rank 0 that was not found: it has a process on this machine, or the job would be stopped
    because nobody listens where it should be, and it may still start there.
    """
    failure = _failure(guest, connected)
    may_start = failure.kind == "refused" and failure.is_error and now - guest.begun < UNSEEN
    if not lives and not may_start:
        return _step(_given_up(guest, connected))
    guest = replace(guest, deadline=guest.deadline + LONGER)
    process = ", which has a process on this host" if lives else ""
    note = f"still waiting for rank 0{process}: NCHECK_TIMEOUT=SECONDS limits this"
    return _step(guest, Show({"note": note})) if guest.own.rank == 1 else _step(guest)  # one of those that wait


def call_ended(guest: Guest, target: Target, reason: str) -> Step:
    """Note how a call ended that found no rank 0."""
    calls = dict(guest.calls)
    calls.pop(target, None)
    last, answered = {**guest.last, target: reason}, guest.has_answered or _answers(guest, target, reason)
    return _step(replace(guest, calls=calls, last=last, has_answered=answered))


def found(guest: Guest, now: float, *, sure: bool) -> Step:
    """Enter: somebody has proved to be rank 0. All other calls end."""
    others, came = Calls(tuple(guest.calls)), Came(guest.own, max(0.0, guest.deadline - now))
    return _step(replace(guest, calls={}, met=True, sure=sure, has_answered=True), others, came)


def heard(guest: Guest, message: Message | None) -> Step:
    """Do what rank 0 wants."""
    match message:
        case Look() | Open():
            return _step(guest, message)
        case Welcome():
            guest = replace(guest, host=message.member)
        case Wait():
            guest = replace(guest, deadline=min(guest.deadline + LONGER, guest.patient_until + guest.timeout))
        case Told():
            guest = replace(guest, outcome=message if guest.sure else replace(message, ended=()))
        case NotMet():
            guest = replace(guest, outcome=replace(message, is_error=message.is_error and guest.sure))
    return _step(guest)


def host_left(guest: Guest, reason: str) -> Step:
    """Note that the connection to rank 0 is over."""
    if guest.outcome is not None:
        return _step(guest)
    if guest.host is None and guest.place is not None:  # it closed the connection: it may have no room for one more
        return _step(replace(guest, met=False))
    if reason != ENDED:
        return _step(replace(guest, outcome=NotMet("lost", "the connection to rank 0 broke")))
    name = guest.host.shown if guest.host else "rank 0"
    return _step(replace(guest, outcome=NotMet("ended", f"{name} ended before there was a verdict", guest.sure)))


# The search


def _tried(guest: Guest, now: float, connected: Collection[Target]) -> Guest:
    """Call rank 0 wherever no call is under way. A call that nobody accepts begins anew."""
    assert guest.place  # noqa: S101  there is a search
    old = tuple(one for one, since in guest.calls.items() if now >= since + _TO_CONNECT and one not in connected)
    calls = {target: since for target, since in guest.calls.items() if target not in old} if old else guest.calls
    ports = guest.place.ports if guest.tries % _ALL_EVERY == 0 else guest.place.ports[:1]
    if guest.place.master_port is not None and now >= guest.begun + _MASTER_PORT_AFTER:
        ports = (*ports, guest.place.master_port)
    new = tuple(target for at in guest.addresses for port in ports if (target := (at, port)) not in calls)
    return replace(
        guest,
        calls={**calls, **dict.fromkeys(new, now)},
        last={**guest.last, **dict.fromkeys(old, FILTERED)},
        tries=guest.tries + 1,
        due=now + guest.pause,
        pause=min(_LONGEST_PAUSE, guest.pause * 1.5),
        todo=(Calls(old, new),) if old or new else (),
    )


def _answers(guest: Guest, target: Target, reason: str) -> bool:
    """Whether somebody was at the job's own port, or at one of ours and is no longer."""
    master = guest.place is not None and target[1] == guest.place.master_port
    return reason in {ENDED, FOREIGN, _SILENT} if master else reason == ENDED


def _given_up(guest: Guest, connected: Collection[Target]) -> Guest:
    if guest.host:
        outcome = NotMet("overran", f"rank 0 sent no verdict within {guest.timeout:.3g} s")
        return replace(guest, outcome=outcome, todo=(Leave("overran"),))
    if guest.place:
        return replace(guest, outcome=_failure(guest, connected))
    return replace(guest, outcome=NotMet("overran", f"no verdict within {guest.timeout:.3g} s"))


def _failure(guest: Guest, connected: Collection[Target]) -> NotMet:  # noqa: PLR0911  one for each kind
    """Return why there was no meeting, and whether the job could not meet there either."""
    place = guest.place
    assert place  # noqa: S101  there is a search
    host = printable(place.hosts[0], 100)
    named = f"{place.given}={host}" if place.jobs_own or place.given == "NCHECK_RENDEZVOUS" else host
    if not guest.addresses:
        words = f"{named} does not resolve on this host: {guest.problem}"
        return NotMet("unresolved", words, is_error=place.jobs_own)
    if all(address.loopback for address in guest.addresses) and on_another_machine(guest.rank):
        words = f"{named} is {guest.addresses[0].text} on this host, but rank 0 is on another one"
        return NotMet("loopback", words, is_error=place.jobs_own)
    before = {reason for (_, port), reason in guest.last.items() if port == place.master_port}
    still = {target: _SILENT if target in connected else FILTERED for target in guest.calls}
    last = {**guest.last, **still}
    own = {reason for (_, port), reason in last.items() if port != place.master_port}
    masters = {reason for (_, port), reason in last.items() if port == place.master_port}
    if addresses := ", ".join(address.text for address in guest.addresses if address.text not in place.hosts):
        named = f"{named} ({addresses})"
    waited = f"rank 0 was not found at {named} within {guest.deadline - guest.begun:.3g} s"
    has_answered = guest.has_answered or any(_answers(guest, target, reason) for target, reason in still.items())
    jobs_own = place.jobs_own and not has_answered  # the job itself would have to meet there
    if own - {FOREIGN} == {REFUSED}:
        both = masters == {REFUSED} and jobs_own
        also = f", and nothing listens on MASTER_PORT {place.master_port} either" if both else ""
        return NotMet("refused", f"{waited}: it refuses the connections{also}", is_error=both)
    # The job cannot meet either: its own port gives no answer, or there is no route to it.
    cut_off = jobs_own and before == masters and bool(masters) and masters <= {FILTERED, UNREACHABLE}
    others = len(place.ports) - 1
    ports = f"{place.ports[0]} and {others} others" if others else f"{place.ports[0]}"
    if own <= {FILTERED, REFUSED} and own:
        master = f" and from MASTER_PORT {place.master_port}" if cut_off else ""
        words = f"{waited}: no answer from its ports ({ports}){master}, perhaps because of a firewall"
        return NotMet("filtered", words, is_error=cut_off)
    if own <= {UNREACHABLE, FILTERED, REFUSED}:
        return NotMet("unreachable", f"{waited}: there is no route to it", is_error=cut_off)
    if own <= {UNREACHABLE, FILTERED, REFUSED, LOST}:
        return NotMet("unreachable", f"{waited}: the connections to it fail", is_error=cut_off)
    return NotMet("foreign", f"{waited}: other programs answer on its ports ({ports})")


def _step(guest: Guest, *actions: Action) -> Step:
    return replace(guest, todo=()) if guest.todo else guest, (*guest.todo, *actions)
