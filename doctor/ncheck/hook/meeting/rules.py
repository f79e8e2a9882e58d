"""The rules of a meeting on rank 0, as steps from one Meeting to the next: no socket, no clock, no thread.

A step gets what happened and when, and returns the next Meeting with what is to be done: sockets.py does that.
A peer is a connection that has proved that it knows the job's token; it is known by its number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from ncheck.hook.meeting.attendance import (
    TWICE,
    Attendance,
    BadRanks,
    Claims,
    Double,
    certain,
    contradictions,
    may_come,
    one_machine,
    other_job,
)  # fmt: skip
from ncheck.hook.meeting.messages import ENDED, MISUSE, Look, Member, Message, NotMet, Told, Wait, Welcome
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ncheck.rank_variables import Rank

LONGER = 30.0  # seconds at a time, for ranks that are on their way
OTHER_FILES = 24  # for rank 0 and its children, in addition to one for each rank
_LEAST_ATTENDANCE = 2.0  # seconds, even if the first ranks have less time left: ranks try twice a second
_MASTER_PORT_AFTER = 3.0  # seconds: ranks that started together and can use our port have connected by then
_TO_OPEN_CHANNELS = 5.0
_TO_HANG_UP = 1.0
_TO_SETTLE = 2.0  # as many processes as ranks connected, but not one of each rank: wait for others
_TO_LOOK = 1.0
_MOST_LOOKED_FOR = 1000  # ranks in a message
_MORE_ENTRIES = 64
_MOST_STRANGERS = 16  # addresses that are remembered
_SHOWN = 8  # ranks in a message

Result = dict[str, Any] | NotMet  # of the examination


class MeetingStage(IntEnum):
    """What rank 0 waits for: ranks; connections to their nodes; the examiner; that the ranks have the outcome."""

    ATTENDANCE, CHANNELS, EXAMINATION, SENDING, DONE = range(5)


@dataclass(frozen=True)
class Peer:
    """A process that came as a rank."""

    number: int
    member: Member
    sure: bool  # no stranger: the token is secret, or it is a process of this user on this machine
    ended: bool = False
    continues: bool = False  # without a verdict: it sent a message about that
    connected: bool = True


@dataclass(frozen=True)
class OtherJob:
    """The owner of a port that is ours by the token: another job with the same id, or any other process.

    Where it is rank 0 of another job of this user, this rank 0 comes to it as a rank, and all ranks of both jobs get
    its verdict.
    """

    member: Member | None = None  # rank 0 of another job of this user, since it sent a welcome
    leads: bool = False  # it is there, and a verdict is to come
    is_stranger: bool = False  # it knows the token, and belongs to another user


# What is to be done.


@dataclass(frozen=True)
class Say:
    """Send a message to these peers."""

    peers: tuple[int, ...]
    message: Message


@dataclass(frozen=True)
class HangUp:
    """Close the connection to a peer."""

    peer: int


@dataclass(frozen=True)
class AskForChannel:
    """Ask a peer to connect the agent of its node."""

    peer: int
    machine: str


@dataclass(frozen=True)
class OpenPort:
    """Open the first free port, or the job's own MASTER_PORT."""

    port: int | None = None


@dataclass(frozen=True)
class Examine:
    """Start the examiner, with the attendance as it is and the channels that are open."""

    until: float


@dataclass(frozen=True)
class Show:
    """Show this on rank 0."""

    verdict: Mapping[str, Any]


Action = Say | HangUp | AskForChannel | OpenPort | Examine | Show


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One meeting, as rank 0 knows it. Times are of one clock, in seconds."""

    rank: Rank
    own: Member
    begun: float
    timeout: float
    deadline: float  # the earliest of all connected ranks
    master_port: int | None = None  # the job's own port, if ranks may come there too
    patient_until: float = 0.0  # missing ranks that have a process are waited for
    room: int = 1 << 20  # how many more files this process may open
    inherited: bool = False  # this process may be none of the job's: a rank has started it

    stage: MeetingStage = MeetingStage.ATTENDANCE
    ends: float = 0.0  # the stage, from the second one on
    ports: tuple[int, ...] = ()  # that are open
    master_port_tried: bool = False
    strangers: tuple[str, ...] = ()  # addresses of peers that did not prove to be of this job: perhaps of a rank
    others: Mapping[int, OtherJob] = field(default_factory=dict)  # that meet here, by their port
    peers: Mapping[int, Peer] = field(default_factory=dict)  # all that came
    connected: int = 0  # how many of them are
    ranks: Mapping[int, int] = field(default_factory=dict)  # the attendance: which peer is which rank
    duplicates: int = 0  # peers that have no place in it
    entries: int = 0  # how many ranks connected
    entered: float = 0.0  # when the last one did
    reached_at: str = ""  # this host's address that ranks of other machines have reached
    looked: float | None = None  # until when the nodes look for processes of missing ranks
    looking: frozenset[int] = frozenset()  # peers that have not answered
    alive: frozenset[int] = frozenset()  # missing ranks that have a process
    claims: Claims = Claims()
    shortened: bool = False  # a process that may be a stranger made the attendance shorter
    machines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # the connected ranks, the lowest last
    asked: Mapping[str, int] = field(default_factory=dict)  # who is asked for the channel of its node

    taken: bool = False  # the attendance: the examination has begun, and what comes now is late
    late: Claims = Claims()
    ended_later: tuple[Member, ...] = ()
    result: Result | None = None  # of the examination
    followed: bool = False  # the verdict is another job's
    news: Told | NotMet | None = None  # what every rank gets
    todo: tuple[Action, ...] = ()  # of the step in progress

    @property
    def done(self) -> bool:
        return self.stage is MeetingStage.DONE

    @property
    def wake(self) -> float:
        """When the next `tick` is due if nothing happens."""
        if self.stage is MeetingStage.ATTENDANCE:
            ends = self.attendance_ends if self.looked is None else self.looked
            return min(ends, self.master_port_at) if self.wants_master_port else ends
        if self.stage is MeetingStage.EXAMINATION and self.result is not None:
            return 0.0
        if self.stage is MeetingStage.SENDING and not self.connected:
            return self.attendance_ends
        return self.ends

    @property
    def wants_master_port(self) -> bool:
        """Whether to open the job's own port too: a firewall may allow only that one.

        Also, ranks with another token know no other port of this job: so they are noticed.
        """
        return self.master_port is not None and not one_machine(self.rank) and not self.master_port_tried

    @property
    def master_port_at(self) -> float:
        return self.begun + min(_MASTER_PORT_AFTER, self.timeout / 6)

    @property
    def invalid_ranks(self) -> int:
        """How many ranks have a process that ended or has another size, and may be a stranger."""
        peers = (self.peers[number] for number in self.ranks.values())
        return sum(not peer.sure and not _is_valid(self, peer) for peer in peers)

    @property
    def all_came(self) -> bool:
        """Whether all ranks are there. A rank whose place a stranger may have may still connect."""
        return len(self.ranks) == self.rank.size and not self.invalid_ranks

    @property
    def is_led(self) -> bool:
        """Whether another job meets here, whose rank 0 gives the verdict."""
        return any(other.leads for other in self.others.values())

    @property
    def verdict_due(self) -> float:
        return self.deadline - min(1.0, self.timeout / 10)

    @property
    def attendance_ends(self) -> float:
        if self.is_led:
            return self.verdict_due
        spare = min(5.0, self.timeout / 4)
        ends = max(self.begun + min(_LEAST_ATTENDANCE, self.timeout / 2), self.deadline - spare)
        size, came = self.rank.size, len(self.ranks)
        if came + self.duplicates >= size and came - self.invalid_ranks + self.duplicates >= size:
            return min(ends, self.entered + _TO_SETTLE)  # one has the place of another
        if came == size:  # perhaps a stranger has the place of one, which still has some time
            return min(ends, max(self.entered + _TO_SETTLE, self.begun + self.timeout / 3))
        return ends

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(number for number in range(self.rank.size) if number not in self.ranks)

    @property
    def doubted(self) -> frozenset[int]:
        """Ranks that several processes claim, one of which may be a stranger."""
        return frozenset(double.later.rank for double in self.claims.doubles if not double.sure)

    @property
    def remote_came(self) -> bool:
        """Whether a rank of another machine is here, or was and is known to be no stranger."""
        return any(self.peers[number].member.machine != self.own.machine for number in self.ranks.values())

    @property
    def meets_at(self) -> str:
        port = self.rank.master_port
        return f"{self.rank.master}:{port}" if self.rank.master and port else "the same place"

    @property
    def evidence(self) -> str:
        """Why the missing ranks could have come; "" is none: see Attendance."""
        if self.inherited:
            return ""
        if self.strangers or any(other.is_stranger for other in self.others.values()):
            return ""  # these may be the missing ranks, with another NCHECK_TOKEN or user, which the job tolerates
        if self.shortened:
            return ""  # they could still have connected
        if one_machine(self.rank):
            return "one-machine"
        if self.remote_came:
            return "remote-came"
        return "master-port-open" if self.master_port in self.ports else ""

    def attendance(self, port_owner: str = "") -> Attendance:
        """Return who came. `port_owner` is who else has MASTER_PORT on this host."""
        present = [(number, self.peers[peer]) for number, peer in sorted(self.ranks.items())]
        complete = len(present) == self.rank.size and all(_is_valid(self, peer) for _, peer in present)
        incomplete = not complete and bool(self.evidence)
        pids = [other.member.pid for other in self.others.values() if other.member]
        text = other_job(pids, self.meets_at, "its rank 0 waits on this host too")
        taken = f"MASTER_PORT {self.rank.master_port} is taken on this host by {port_owner}"
        return Attendance(
            members=tuple(self._with_address(peer.member) for _, peer in present),
            missing=self.missing,
            ended=tuple(number for number, peer in present if peer.ended and peer.sure),
            problems=(
                *self.claims.troubles,
                *([BadRanks("port-taken", (0,), taken)] if port_owner else ()),
                *contradictions(self.claims.doubles, self.claims.doubts, self.meets_at, incomplete=incomplete),
                *([BadRanks(TWICE, (0,), text)] if pids else ()),
            ),
            remote_came=self.remote_came,
            ports=self.ports,
            evidence=self.evidence,
            strangers=self.strangers,
        )

    def _with_address(self, member: Member) -> Member:
        """Give the ranks of this host the address that other machines have reached."""
        local = member.machine == self.own.machine
        return replace(member, address=self.reached_at) if local and self.reached_at else member

    def of_rank(self, rank: int) -> Peer | None:
        return self.peers[self.ranks[rank]] if rank in self.ranks else None


Step = tuple[Meeting, tuple[Action, ...]]


# The steps


def came(  # noqa: PLR0913  what is known of one connection
    meeting: Meeting, number: int, member: Member, seconds: float, now: float, *, sure: bool, reached_at: str = ""
) -> Step:
    """Let a peer come as a rank that has so many seconds left. Rank 0 itself is the first, and has no address."""
    entries, earlier = meeting.entries + 1, meeting.of_rank(member.rank)
    same = earlier is not None and (earlier.member.pid, earlier.member.machine) == (member.pid, member.machine)
    ending = meeting.stage >= MeetingStage.SENDING
    # It has the verdict and has started a program since, or is of another job: both meet later.
    refused = earlier is not None and ending and (same or member.rank != 0)
    if refused or entries > 2 * meeting.rank.size + _MORE_ENTRIES:
        return _step(replace(meeting, entries=entries), HangUp(number))
    peer, connected = Peer(number, member, sure), meeting.connected + 1
    peers = {**meeting.peers, number: peer}
    meeting = replace(meeting, entries=entries, entered=now, peers=peers, connected=connected)
    if meeting.taken:
        meeting = replace(meeting, late=_claimed(meeting, meeting.late, peer, None if same else earlier))
    else:
        meeting = _shortened(_registered(meeting, peer), now + seconds, sure=sure)
    meeting = _with(meeting, Say((number,), Welcome(meeting.own)))
    if ending and member.rank == 0:  # of another job, which meets alone, and says so
        meeting = _with(_disconnected(meeting, peer), HangUp(number))
    elif ending:
        meeting = _sent(meeting, (number,), now)
    if not member.address:
        meeting = _opened_to_others(meeting, now)
    elif member.machine != meeting.own.machine or not meeting.reached_at:
        meeting = replace(meeting, reached_at=reached_at)
    return _step(meeting)


def opened(meeting: Meeting, port: int) -> Step:
    """Note a port that is open."""
    return _step(replace(meeting, ports=(*meeting.ports, port)))


def turned_away(meeting: Meeting, address: str) -> Step:
    """Note that somebody came who did not prove to be of this job."""
    if address in meeting.strangers or len(meeting.strangers) >= _MOST_STRANGERS:
        return _step(meeting)
    return _step(replace(meeting, strangers=(*meeting.strangers, address)))


def met_other(meeting: Meeting, port: int, other: OtherJob) -> Step:
    """Note what is known of the owner of a port."""
    return _step(replace(meeting, others={**meeting.others, port: other}))


def followed(meeting: Meeting, news: Told | NotMet, now: float) -> Step:
    """Take over the verdict of another job that meets here, for the ranks that are here."""
    result = dict(news.verdict) if isinstance(news, Told) else news
    return _step(_concluded(replace(meeting, followed=True), result, now))


def answered(meeting: Meeting, number: int, living: Iterable[int]) -> Step:
    """Note which of the missing ranks have a process on the node of a peer."""
    if meeting.looked is None:
        return _step(meeting)
    return _step(replace(meeting, alive=meeting.alive.union(living), looking=meeting.looking - {number}))


def continues(meeting: Meeting, number: int, kind: str, now: float) -> Step:
    """Note that a rank continues without a verdict. If its time was over, all do."""
    peer = replace(meeting.peers[number], continues=True)
    meeting = _changed(meeting, peer)
    if kind == "overran" and peer.sure:
        text = f"the time of {peer.member.shown} was over before there was a verdict"
        meeting = _concluded(meeting, NotMet("overran", text), now)
    return _step(meeting)


def left(meeting: Meeting, number: int, reason: str) -> Step:
    """Note that a connection is over."""
    peer = meeting.peers[number]
    meeting = _disconnected(meeting, peer)
    if meeting.asked.get(peer.member.machine) == number:
        meeting = _asked_for_channel(meeting, peer.member.machine)
    if peer.continues or meeting.stage >= MeetingStage.SENDING:
        return _step(meeting)
    if reason == ENDED:
        meeting = _changed(meeting, replace(peer, ended=True, connected=False))
        if meeting.taken and peer.sure:
            meeting = replace(meeting, ended_later=(*meeting.ended_later, peer.member))
        elif not meeting.taken and not peer.sure:
            meeting = _promote_other(meeting, peer)
        return _step(meeting)
    text = "sent what ncheck does not send" if reason == MISUSE else "lost its connection to rank 0"
    kind = "misuse" if reason == MISUSE else "lost"
    trouble = BadRanks(kind, (peer.member.rank,), f"{peer.member.shown} {text}")
    claims = replace(meeting.claims, troubles=(*meeting.claims.troubles, trouble))
    return _step(replace(meeting, claims=claims))


def channel_opened(meeting: Meeting, machine: str) -> Step:
    """Note that the agent of a node is connected."""
    return _step(replace(meeting, asked={name: peer for name, peer in meeting.asked.items() if name != machine}))


def examined(meeting: Meeting, result: Result) -> Step:
    """Take the result of the examination. The next tick concludes: ranks that ended before it are known by then."""
    return _step(replace(meeting, result=result))


def broken_off(meeting: Meeting, outcome: NotMet, now: float) -> Step:
    """Send the ranks why there will be no verdict."""
    return _step(_concluded(meeting, outcome, now))


def tick(meeting: Meeting, now: float, *, unsent: bool = False, channels: Collection[str] = ()) -> Step:
    """Do what is due. `unsent`: something waits to be sent to a peer. `channels`: machines whose agent is connected."""
    if meeting.stage is MeetingStage.ATTENDANCE:
        if meeting.wants_master_port and now >= meeting.master_port_at:
            meeting = _with(replace(meeting, master_port_tried=True), OpenPort(meeting.master_port))
        if meeting.all_came and not meeting.is_led:
            meeting = _attendance_taken(meeting, now, channels)
        elif now >= meeting.attendance_ends:
            meeting = _waited_longer(meeting, now, channels)
    if meeting.stage is MeetingStage.CHANNELS and (not meeting.asked or now >= meeting.ends):
        until = meeting.verdict_due
        meeting = replace(meeting, stage=MeetingStage.EXAMINATION, ends=until, taken=True, asked={})
        return _step(meeting, Examine(until))
    if meeting.stage is MeetingStage.EXAMINATION and meeting.result is not None:
        meeting = _concluded(meeting, meeting.result, now)
    if meeting.stage is MeetingStage.SENDING:
        meeting = _seen_out(meeting, now, unsent=unsent)
    return _step(meeting)


# The attendance


def _opened_to_others(meeting: Meeting, now: float) -> Meeting:
    """Open a port, now that rank 0 itself has come: so it is always the first."""
    size, room = meeting.rank.size, meeting.room
    if size == 1:
        return meeting
    if room < size + OTHER_FILES:
        text = f"rank 0 can open {room} more files, too few for {size} ranks: raise ulimit -n"
        meeting = _concluded(meeting, NotMet("files", text), now)
    return _with(meeting, OpenPort())


def _registered(meeting: Meeting, peer: Peer) -> Meeting:
    rank = peer.member.rank
    first = meeting.of_rank(rank)
    claims = _claimed(meeting, meeting.claims, peer, first)
    if rank < meeting.rank.size and (first is None or _is_replaced_by(meeting, first, peer)):
        return replace(meeting, claims=claims, ranks={**meeting.ranks, rank: peer.number})
    return replace(meeting, claims=claims, duplicates=meeting.duplicates + peer.sure)


def _claimed(meeting: Meeting, claims: Claims, peer: Peer, first: Peer | None) -> Claims:
    """Note what is wrong with a rank that comes. `first`: another process of that rank was here before."""
    is_double = first is not None and not first.ended
    double = Double(first.member, peer.member, peer.sure and first.sure) if first and is_double else None
    return claims.made(meeting.own, peer.member, peer.sure, double)


def _is_valid(meeting: Meeting, peer: Peer) -> bool:
    return not peer.ended and peer.member.size == meeting.rank.size


def _is_replaced_by(meeting: Meeting, first: Peer, later: Peer) -> bool:
    """Whether the later process of a rank takes its place: the first one ended, or may be a stranger."""
    better = later.sure or (_is_valid(meeting, later) and not _is_valid(meeting, first))
    return first.ended or (not first.sure and better)


def _promote_other(meeting: Meeting, gone: Peer) -> Meeting:
    """Replace a process that left and may have been a stranger by another one of the same rank, connected or yet to
    connect: what it said counts no more. If one process remains, that is the rank.
    """
    rank = gone.member.rank
    others = [peer for peer in meeting.peers.values() if peer.connected and peer.member.rank == rank]
    if len(others) <= 1:
        doubles = tuple(double for double in meeting.claims.doubles if double.sure or double.later.rank != rank)
        meeting = replace(meeting, claims=replace(meeting.claims, doubles=doubles))
    if meeting.ranks.get(rank) != gone.number:
        return meeting
    ranks = {number: peer for number, peer in meeting.ranks.items() if number != rank}
    if others:
        meeting = replace(meeting, ranks={**ranks, rank: others[0].number})
    else:
        doubts = tuple(doubt for doubt in meeting.claims.doubts if doubt.ranks != (rank,))
        meeting = replace(meeting, ranks=ranks, claims=replace(meeting.claims, doubts=doubts))
    if meeting.stage is MeetingStage.CHANNELS:  # the attendance was taken with the one that left
        meeting = replace(meeting, stage=MeetingStage.ATTENDANCE)
    return meeting


def _shortened(meeting: Meeting, deadline: float, *, sure: bool) -> Meeting:
    """End in time for a rank. One that may be a stranger leaves the others enough time to connect."""
    shortened = meeting.shortened
    if not sure:
        deadline = max(deadline, meeting.begun + meeting.timeout / 3)
        shortened = shortened or deadline < meeting.begun + meeting.timeout * 2 / 3
    if deadline >= meeting.deadline and shortened == meeting.shortened:
        return meeting
    return replace(meeting, deadline=min(meeting.deadline, deadline), shortened=shortened)


def _waited_longer(meeting: Meeting, now: float, channels: Collection[str]) -> Meeting:
    """Take the attendance, unless the missing ranks may still connect: the nodes of the others look for processes."""
    if now >= meeting.patient_until or meeting.is_led:
        return _attendance_taken(meeting, now, channels)
    connected = [peer for peer in meeting.peers.values() if peer.connected]
    if meeting.looked is None:
        leaders = dict[str, int]()
        for peer in connected:
            leaders.setdefault(peer.member.machine, peer.number)
        asked = tuple(leaders.values())
        meeting = replace(meeting, looked=now + _TO_LOOK, looking=frozenset(asked), alive=frozenset())
        return _with(meeting, Say(asked, Look(meeting.missing[:_MOST_LOOKED_FOR])))
    if meeting.looking and now < meeting.looked:
        return meeting
    meeting, missing, waited = replace(meeting, looked=None, looking=frozenset()), meeting.missing, now - meeting.begun
    if not may_come(meeting.rank, meeting.attendance(), meeting.alive, waited):
        return _attendance_taken(meeting, now, channels)
    ranks = ", ".join(f"rank {number}{_where(meeting, number)}" for number in missing[:_SHOWN])
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    note = f"still waiting for {ranks}{more}, since {waited:.0f} s: NCHECK_TIMEOUT=SECONDS limits this"
    meeting = replace(meeting, deadline=meeting.deadline + LONGER)
    return _with(meeting, Say(tuple(peer.number for peer in connected), Wait()), Show({"note": note}))


def _attendance_taken(meeting: Meeting, now: float, channels: Collection[str]) -> Meeting:
    """Ask for the channels to the agents of the nodes. It may be the second time: some may be open."""
    ends = now + min(_TO_OPEN_CHANNELS, max(0.0, meeting.verdict_due - now) / 3)
    machines: dict[str, tuple[int, ...]] = {}
    doubted = meeting.doubted
    for rank, number in sorted(meeting.ranks.items(), reverse=True):
        peer = meeting.peers[number]
        if rank in doubted and not peer.sure:
            continue  # it may be a stranger, so its machine is not used
        machines[peer.member.machine] = (*machines.get(peer.member.machine, ()), number)
    meeting = replace(meeting, stage=MeetingStage.CHANNELS, ends=ends, machines=machines, asked={})
    for machine in [name for name in machines if name not in channels]:
        meeting = _asked_for_channel(meeting, machine)
    return meeting


def _asked_for_channel(meeting: Meeting, machine: str) -> Meeting:
    """Ask the lowest connected rank of a machine for a channel to its node's agent."""
    ranks = meeting.machines.get(machine, ())
    while ranks and not meeting.peers[ranks[-1]].connected:
        ranks = ranks[:-1]
    asked = {name: peer for name, peer in meeting.asked.items() if name != machine}
    meeting = replace(meeting, machines={**meeting.machines, machine: ranks[:-1]}, asked=asked)
    if not ranks:
        return meeting
    return _with(replace(meeting, asked={**asked, machine: ranks[-1]}), AskForChannel(ranks[-1], machine))


# The verdict


def _concluded(meeting: Meeting, result: Result, now: float) -> Meeting:
    if meeting.stage >= MeetingStage.SENDING:
        return meeting
    if meeting.taken:
        result = _with_late_ranks(meeting, result)
    meeting = replace(meeting, stage=MeetingStage.SENDING)
    if isinstance(result, NotMet):
        meeting = replace(meeting, news=result)
    else:
        meeting = _with(replace(meeting, news=Told(result, meeting.ended_later)), Show(result))
    return _sent(meeting, tuple(peer.number for peer in meeting.peers.values() if peer.connected), now)


def _with_late_ranks(meeting: Meeting, result: Result) -> Result:
    """Correct the result by the missing ranks: those that connected meanwhile are not missing, and others stop the job
    whatever the result of the checks.
    """
    problems = _late_problems(meeting)
    if problems and not isinstance(result, NotMet):
        apart = certain(problems)
        late = {**result, "late": printable("; ".join(apart), 1000)}
        return late if apart else NotMet("doubted", problems[-1].text)
    attendance = meeting.attendance()
    present = {peer.member.rank for peer in meeting.peers.values() if peer.connected}
    missing = [number for number in attendance.missing if number not in present]
    if isinstance(result, NotMet):
        return _even_unchecked(meeting, result, attendance, missing)
    if attendance.missing and not missing:
        names = ", ".join(f"rank {number}" for number in attendance.missing[:_SHOWN])
        return NotMet("late", f"{names} came too late to be checked: set NCHECK_TIMEOUT to more seconds")
    return result


def _even_unchecked(meeting: Meeting, outcome: NotMet, attendance: Attendance, missing: list[int]) -> NotMet:
    """Return the outcome with the ranks that are of no one job, have ended or are missing: the job cannot run."""
    present = (meeting.peers[number] for number in meeting.ranks.values())
    ended = [*(peer.member for peer in present if peer.ended and peer.sure), *meeting.ended_later]
    apart = certain((*attendance.problems, *_late_problems(meeting)))
    ranks = [*apart[:_SHOWN], *(f"{member.shown} ended" for member in ended[:_SHOWN])]
    ranks += [f"rank {number} did not come{_where(meeting, number)}" for number in missing[:_SHOWN]]
    if not ranks:
        return outcome
    more = len(apart[_SHOWN:]) + len(ended[_SHOWN:]) + len(missing[_SHOWN:])
    ranks += [f"and {more} more"] if more else []
    text = printable(f"{', '.join(ranks)}; {outcome.text}", 1000)
    return NotMet("ranks", text, is_error=attendance.missing_is_error or bool(ended or apart))


def _late_problems(meeting: Meeting) -> list[BadRanks]:
    late = meeting.late
    return [*late.troubles, *contradictions(late.doubles, late.doubts, meeting.meets_at, incomplete=False)]


def _where(meeting: Meeting, number: int) -> str:
    host = meeting.attendance().host_of(meeting.rank, number)
    return f" (it should be on {host})" if host else ""


def _sent(meeting: Meeting, peers: tuple[int, ...], now: float) -> Meeting:
    assert meeting.news  # noqa: S101  it is set before it is sent
    return _with(replace(meeting, ends=now + _TO_HANG_UP), Say(peers, meeting.news))


def _seen_out(meeting: Meeting, now: float, *, unsent: bool) -> Meeting:
    """End when all ranks have hung up. Ranks that connect late, after an early end, get the verdict as well."""
    if meeting.connected:
        if unsent and meeting.ends < meeting.deadline:
            meeting = replace(meeting, ends=meeting.deadline)
        over = now >= meeting.ends
    else:
        over = meeting.all_came or meeting.followed or not meeting.ports or now >= meeting.attendance_ends
    return replace(meeting, stage=MeetingStage.DONE) if over else meeting


# Parts of a step


def _step(meeting: Meeting, *actions: Action) -> Step:
    return replace(meeting, todo=()) if meeting.todo else meeting, (*meeting.todo, *actions)


def _with(meeting: Meeting, *actions: Action) -> Meeting:
    return replace(meeting, todo=(*meeting.todo, *actions))


def _disconnected(meeting: Meeting, peer: Peer) -> Meeting:
    peers = {**meeting.peers, peer.number: replace(peer, connected=False)}
    looking = meeting.looking - {peer.number}
    return replace(meeting, peers=peers, looking=looking, connected=meeting.connected - 1)


def _changed(meeting: Meeting, peer: Peer) -> Meeting:
    return replace(meeting, peers={**meeting.peers, peer.number: peer})
