"""The rules of a meeting, as functions of what is known: no socket and no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ncheck.hook.meeting.attendance import Attendance, Member, Trouble
from ncheck.launchers import BARE
from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

SIZE, TWICE = "world-size", "duplicate-rank"  # kinds of trouble: a rank imports no facts
UNSEEN = 75.0  # seconds for ranks of which no process was seen, where the job would be stopped without them


@dataclass(frozen=True)
class Double:
    """Two processes that came as the same rank. `sure`: neither of them may be a stranger."""

    first: Member
    later: Member
    sure: bool

    @property
    def text(self) -> str:
        return f"rank {self.later.rank} came twice: {self.first.shown} and {self.later.shown}"


def missing_ranks_stop(select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether rank-missing is judged and stops a job, by the words of --select and --ignore: no check is imported."""

    def names(words: Sequence[str]) -> bool:
        return any("NC801".startswith(word.upper()) or word.lower() in {"rank-missing", "ranks"} for word in words)

    return (not select or names(select)) and not names(ignore)


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
    doubles: Sequence[Double], doubts: Iterable[Trouble], meets_at: str, *, incomplete: bool
) -> list[Trouble]:
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
        found = [Trouble(TWICE, ranks, text)]
    else:
        found = [Trouble(TWICE, (one.later.rank,), one.text) for one in counted]
    rest = [Trouble(TWICE, (one.later.rank,), one.text) for one in doubles if one not in counted]
    return [
        *found,
        *(one if counts else doubted(one, meets_at) for one in doubts),
        *(doubted(one, meets_at) for one in rest),
    ]


def other_job(pids: Iterable[int], meets_at: str, why: str) -> str:
    numbers = [str(pid) for pid in pids]
    return f"another job ({'pid' if len(numbers) == 1 else 'pids'} {', '.join(numbers)}) meets at {meets_at}: {why}"


def doubted(trouble: Trouble, meets_at: str) -> Trouble:
    """Return a problem that may be made up: the job can run without the peer that reported it."""
    remark = f"perhaps another job meets at {meets_at}: NCHECK_TOKEN, a secret of this job, keeps its ranks out"
    return Trouble("doubted", trouble.ranks, f"{trouble.text}; {remark}")


def certain(problems: Iterable[Trouble]) -> list[str]:
    """Return what stops a job whether or not its nodes were checked: it cannot be one job."""
    return [one.text for one in problems if one.kind in {SIZE, TWICE}]
