"""Who came to a meeting: whom to wait for, and which ranks cannot be of one job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ncheck.hook.meeting.messages import Member
from ncheck.launchers import BARE
from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

SIZE, TWICE = "world-size", "duplicate-rank"  # kinds of trouble: a rank imports no facts
UNSEEN = 75.0  # seconds for ranks of which no process was seen, where the job would be stopped without them


@dataclass(frozen=True)
class BadRanks:
    """What is wrong with the ranks themselves. `kind`: "duplicate-rank", "world-size", "misuse", "lost", "port-taken",
    or "doubted": one of the first two, by the word of somebody who may be a stranger.
    """

    kind: str
    ranks: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Attendance:
    """What the hub knows when the examination begins."""

    members: tuple[Member, ...]  # by rank; those that ended are among them
    missing: tuple[int, ...]
    ended: tuple[int, ...]  # came, and their process ended
    problems: tuple[BadRanks, ...]
    remote_came: bool  # a rank of another machine came: the port can be reached
    ports: tuple[int, ...]  # ports that were open; the job's own MASTER_PORT among them or not
    evidence: str  # why the missing could have come: "one-machine", "remote-came", "master-port-open"; "" is none
    strangers: tuple[str, ...] = ()  # addresses from which ranks with another token came: perhaps the missing ones

    @property
    def missing_is_error(self) -> bool:
        """Whether a missing rank is an error: without evidence that it could have come, it is a warning."""
        return bool(self.evidence)

    def host_of(self, own: Rank, number: int) -> str:
        """Return the host of a rank by the variables of the rank `own`, or by the ranks that came; "" unknown.

        Where each node has as many ranks as this one, and those that came are so many in a row on each node, the rest
        are too.
        """
        if host := own.host_of(number):
            return host
        size = own.size if self.evidence == "one-machine" else own.local_size
        machines: dict[int, set[str]] = {}
        for member in self.members:
            if size and member.local_rank in {None, member.rank % size}:
                machines.setdefault(member.rank // size, set()).add(member.machine)
        known = [next(iter(names)) for names in machines.values() if len(names) == 1]
        if not size or len(set(known)) < len(machines) or number // size not in machines:
            return ""
        (machine,) = machines[number // size]
        return next(one.node_name or one.host_name for one in self.members if one.machine == machine)


@dataclass(frozen=True)
class Double:
    """Two processes that came as the same rank. `sure`: neither of them may be a stranger."""

    first: Member
    later: Member
    sure: bool

    @property
    def text(self) -> str:
        return f"rank {self.later.rank} came twice: {self.first.shown} and {self.later.shown}"


@dataclass(frozen=True)
class Claims:
    """What is wrong with ranks, by what they say of themselves. `doubts` come from peers that may be strangers."""

    troubles: tuple[BadRanks, ...] = ()
    doubts: tuple[BadRanks, ...] = ()
    doubles: tuple[Double, ...] = ()

    def made(self, own: Member, member: Member, sure: bool, double: Double | None) -> Claims:  # noqa: FBT001
        """Return them with those of one more peer."""
        doubles = (*self.doubles, double) if double else self.doubles
        if member.size == own.size:
            return Claims(self.troubles, self.doubts, doubles)
        other = (BadRanks(SIZE, (member.rank,), size_text(member, own)),)
        return Claims(self.troubles + other * sure, self.doubts + other * (not sure), doubles)


def may_come(own: Rank, attendance: Attendance, alive: Collection[int], waited: float) -> bool:
    """Whether to wait longer for the missing ranks: each has a process, or it would stop the job and may still start.

    A launcher starts all ranks of a node at once, so on a node from which others came it would have a process by now.
    Ranks that are started by hand, one by one, may start at any time.
    """
    if set(attendance.missing) <= set(alive):
        return bool(attendance.missing)
    if waited >= UNSEEN or not attendance.missing_is_error:
        return False
    names = {name for one in attendance.members for name in (one.node_name, one.host_name) if name}
    unseen = (number for number in attendance.missing if number not in alive)
    return own.launcher == BARE.name or all(attendance.host_of(own, number) not in names for number in unseen)


def size_text(member: Member, own: Member) -> str:
    """Return how the number of ranks differs: by node, or by rank where both are on one."""
    if member.machine == own.machine:
        return f"{member.shown} has WORLD_SIZE {member.size}, {own.shown} {own.size}"
    return f"{member.place} has WORLD_SIZE {member.size}, {own.place} {own.size} ({member.shown}, {own.shown})"


def contradictions(
    doubles: Sequence[Double], doubts: Iterable[BadRanks], meets_at: str, *, incomplete: bool
) -> list[BadRanks]:
    """Return the problems of ranks that cannot be of one job. `doubts` are by the word of peers that may be strangers.

    Such a word counts where the job is `incomplete` without them; and where a second rank 0, of this user and on this
    host, shows that another job is there. Else it is only worth a warning.
    """
    counts = incomplete or any(one.sure and one.later.rank == 0 for one in doubles)
    counted = [one for one in doubles if one.sure or counts]
    if any(one.later.rank == 0 for one in counted):
        pids = dict.fromkeys(one.later.pid for one in counted)
        ranks = tuple(dict.fromkeys(one.later.rank for one in counted))
        text = other_job(pids, meets_at, "; ".join(dict.fromkeys(one.text for one in counted)))
        found = [BadRanks(TWICE, ranks, text)]
    else:
        found = [BadRanks(TWICE, (one.later.rank,), one.text) for one in counted]
    rest = [BadRanks(TWICE, (one.later.rank,), one.text) for one in doubles if one not in counted]
    return [
        *found,
        *(one if counts else doubted(one, meets_at) for one in doubts),
        *(doubted(one, meets_at) for one in rest),
    ]


def other_job(pids: Iterable[int], meets_at: str, why: str) -> str:
    numbers = [str(pid) for pid in pids]
    return f"another job ({'pid' if len(numbers) == 1 else 'pids'} {', '.join(numbers)}) meets at {meets_at}: {why}"


def doubted(trouble: BadRanks, meets_at: str) -> BadRanks:
    """Return a problem that may be made up: the job can run without the peer that reported it."""
    remark = f"perhaps another job meets at {meets_at}: NCHECK_TOKEN, a secret of this job, keeps its ranks out"
    return BadRanks("doubted", trouble.ranks, f"{trouble.text}; {remark}")


def certain(problems: Iterable[BadRanks]) -> list[str]:
    """Return what stops a job whether or not its nodes were checked: it cannot be one job."""
    return [one.text for one in problems if one.kind in {SIZE, TWICE}]


def one_machine(rank: Rank) -> bool:
    """Tell whether the launcher's variables show that all ranks are on one machine."""
    return rank.local_size == rank.size or rank.nodes == 1


def on_another_machine(rank: Rank) -> bool:
    """Tell whether the launcher's variables show that this process is on another machine than rank 0."""
    if rank.node:  # neither unknown nor the first
        return True
    first = rank.host_of(0)
    if first and rank.node_name:  # both in the launcher's own words
        return first != rank.node_name
    return rank.rank > 0 and rank.local_rank == 0  # the lowest rank of its machine, and not rank 0
