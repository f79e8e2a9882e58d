"""What the stacks of all ranks say together: most ranks wait at one place; a rank that is elsewhere is the suspect."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ncheck.expression import expression
from ncheck.hostlist import fold
from ncheck.model.job import Job
from ncheck.text import printable
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.stacks import StacksFacts
from ncheck.triage.peers import Message, message_of
from ncheck.triage.positions import OF_ALL, STORE, Kind
from ncheck.triage.rank_fault import LONG_WORK, SLOW_RANK, fault_of, work_of
from ncheck.triage.rank_state import RankState, states_of

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster

READS = (StacksFacts,)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what the stacks of all ranks say together."""
    states = states_of(job.ranks, cluster.facts(StacksFacts))
    for state in states:
        if motion := _motion(state):
            yield motion
        if state.stopped:
            yield _stopped(state)
    judged = [state for state in states if not state.stopped]
    waiting = [state for state in judged if state.waits]
    suspects = [state for state in judged if not (state.waits or state.moved or _is_usual(state, waiting))]
    working = [state for state in judged if state.moved and state.at_work]
    if suspects:
        yield from _suspected(suspects, waiting, job)
    elif len(waiting) == len(job.ranks):
        yield from _divergence(waiting, job)
    elif working and len(waiting) + len(working) == len(job.ranks):
        yield from _working(working, waiting)
    if any(state.stands for state in waiting):
        yield _most_wait(waiting, len(job.ranks))
    yield from _slow(judged, job)


def _is_usual(state: RankState, waiting: Sequence[RankState]) -> bool:
    """Whether a rank may be where it is in a healthy job, as a server is, but not one that others wait for."""
    serves = state.position.kind is Kind.SERVICE and not (waiting and state.position.own and state.still)
    return serves or state.position.kind is Kind.BLOCKED


def _motion(state: RankState) -> Motion | None:
    """Return whether a rank gets on; None where its stacks do not show it."""
    rank, shown = state.rank, state.shown
    motion = partial(Motion, "stacks", rank.rank, rank.node, pid=rank.pid)
    if state.stopped:
        return motion(moves=False, text=f"{shown} is stopped (state {state.stopped})")
    if state.moved:
        return motion(moves=True, text=f"{shown} was at several places of its code")
    if state.loader_works:
        return motion(moves=True, text=f"the data loader of {shown} works")
    if state.still or (state.waits and state.spins) or state.never_ends:
        return motion(moves=False, text=f"{shown} {state.doing}", waits=state.waits)
    if state.waits and state.woke:  # perhaps for a step that takes next to no time
        return motion(moves=True, text=f"{shown} wakes up again and again", waits=True, aside=True)
    return None


def _clue(cause: str, grade: Grade, text: str, ranks: Sequence[RankState], **more: object) -> Clue:
    return Clue("stacks", cause, grade, text, _numbers(ranks), _nodes(ranks), **more)  # type: ignore[arg-type]


def _stopped(state: RankState) -> Clue:
    traced = state.stopped == "t"
    return _clue(
        "rank_stopped", Grade.CERTAIN, f"{state.shown} is stopped (state {state.stopped})", [state], still=False,
        fix="" if traced else "kill -CONT PID", looks=("grep TracerPid /proc/PID/status",) if traced else (),
    )  # fmt: skip


def _dump(state: RankState) -> tuple[str, ...]:
    return (f"py-spy dump --pid {state.rank.pid}",)


# Ranks that are elsewhere

_COUNTS_ALONE = frozenset({Kind.LOADER, Kind.STORAGE, Kind.CHECKPOINT, Kind.LOCK, Kind.PERSON, Kind.OUTPUT})
_SURE = frozenset({Kind.STORAGE, Kind.PERSON, Kind.OUTPUT})  # also where no rank is seen to wait


def _suspected(suspects: Sequence[RankState], waiting: Sequence[RankState], job: Job) -> Iterator[Clue]:
    """Yield a clue for each place where ranks are that others wait for."""
    waited_for = any(state.stands for state in waiting)
    all_wait = waited_for and len(waiting) + len(suspects) == len(job.ranks)
    groups = sorted(_by_place(suspects), key=len)
    most = groups[-1] if not waiting and 2 * len(groups[-1]) > len(job.ranks) else None
    for group in groups:
        first = group[0]
        if not (all_wait or all(state.still and not state.spins for state in group)):
            continue
        slow = not all_wait and any(state.loader_works for state in group)
        if slow and len(group) < len(job.ranks):
            continue
        nobody_waits = not waiting and (group is most or not most)
        if nobody_waits and first.position.kind not in _COUNTS_ALONE and not first.gil_owner:
            continue
        fault = fault_of(first)
        sure = waited_for or first.position.kind in _SURE
        yield _clue(
            fault.cause, fault.grade if sure else min(fault.grade, Grade.POSSIBLE),
            f"{_named(group)} {first.doing}{fault.detail}{_while(waiting)}",
            [*group, first.holder] if first.holder else group, still=not slow, slow=slow,
            works=fault.works, others=fault.others, meaning=fault.meaning, fix=fault.fix, looks=_dump(first),
        )  # fmt: skip


def _working(working: Sequence[RankState], waiting: Sequence[RankState]) -> Iterator[Clue]:
    """Yield a clue for ranks that work while all others wait for them: what they do may be right, and take its time."""
    if len(working) <= len(waiting) and all(state.stands for state in waiting):
        for state in working:
            fault, text = work_of(state), f"{state.shown} works, last seen at {state.position.where}{_while(waiting)}"
            yield _clue(
                fault.cause, fault.grade, text, [state], works=True, meaning=fault.meaning, looks=_dump(state)
            )  # fmt: skip


_MANY, _MOST_ODD = 6, 2  # looks


def _slow(judged: Sequence[RankState], job: Job) -> Iterator[Clue]:
    """Yield the rank that was at work at nearly each look, while the others nearly each time waited."""
    if len(judged) < max(2, len(job.ranks)) or min(len(state.waited) for state in judged) < _MANY:
        return
    late = [state for state in judged if sum(state.waited) <= 1]
    # All went through a step meanwhile: else it may have begun something that is done once, such as an evaluation.
    if len(late) != 1 or late[0].position.kind in LONG_WORK or not all(one.woke or one.moved for one in judged):
        return
    state, looks = late[0], len(late[0].waited)
    odd = max(sum(not waits for waits in other.waited) for other in judged if other is not state)
    if sum(state.waited) + odd <= _MOST_ODD:
        text = (
            f"{state.shown} was at work at {looks - sum(state.waited)} of {looks} looks, last seen at"
            f" {state.position.where}{state.position.source}, while each of the others waited at"
            f" {looks - odd} or more"
        )
        loads = state.position.kind is Kind.LOADER
        yield _clue(
            "data_loader" if loads else SLOW_RANK, Grade.LIKELY, text, [state], still=False, slow=True,
            others=(SLOW_RANK,) if loads else (), looks=_dump(state),
        )  # fmt: skip


def _while(waiting: Sequence[RankState]) -> str:
    return f", while {len(waiting)} other rank{'s wait' if len(waiting) > 1 else ' waits'}" if waiting else ""


# Ranks that all wait, but not for the same

_BETWEEN_TWO = frozenset(
    {"send", "recv", "isend", "irecv", "batch_isend_irecv", "wait", "wait()", "FSDP", "a collective"}
)
_SENDS, _RECEIVES = frozenset({"send", "ssend", "bsend", "rsend"}), frozenset({"recv"})
_OF_NEXT_STEP = frozenset({"DDP's broadcast of buffers"})  # of a rank that is through with the last step


def _divergence(waiting: Sequence[RankState], job: Job) -> Iterator[Clue]:
    """Yield a clue where all ranks wait for others, and not all in the same collective."""
    if not all(state.stands for state in waiting):
        return
    groups = sorted(_by_place([state for state in waiting if state.position.kind is not Kind.GPU]), key=len)
    if len(groups) < 2:  # noqa: PLR2004  nothing differs
        if groups:
            yield from _between_two(waiting, job)
        return
    if found := [*_in_store(waiting), *_between_two(waiting, job), *_in_ring(waiting)]:
        yield from found
        return
    odd = [state for group in groups[:-1] for state in group]
    named = any(map(_communicator, waiting))
    places = "; ".join(
        f"{_named(group)} {group[0].position.shown}{group[0].position.source if named else ''}"
        for group in reversed(groups[-_MOST_PLACES:])
    )
    grade, meaning = _mismatch(waiting)
    cause = "collective_mismatch"
    if any(state.position.kind is Kind.RENDEZVOUS for state in waiting):
        cause, grade, meaning = "rendezvous_misconfig", Grade.POSSIBLE, ""
    yield _clue(
        cause, grade, f"the ranks wait in different places: {places}",
        odd if 2 * len(groups[-1]) > len(waiting) else [], others=("network_stalled", SLOW_RANK), meaning=meaning,
    )  # fmt: skip


def _mismatch(waiting: Sequence[RankState]) -> tuple[Grade, str]:
    """Return how sure it is that ranks at different places wait in different collectives, and what that means."""
    operations = {
        "backward()" if state.position.kind is Kind.BACKWARD else state.position.name for state in waiting
    }  # fmt: skip
    names = {state.position.name.lower() for state in waiting}
    communicators = sorted({*map(_communicator, waiting)} - {""})
    if operations <= _BETWEEN_TWO or names & _BETWEEN_TWO:
        return Grade.POSSIBLE, ""  # pipelines: each stage waits in another call
    if len(operations) > 1 and not operations <= _OF_NEXT_STEP | {"backward()"}:
        if called := OF_ALL & operations:
            return Grade.LIKELY, f"not all ranks called {min(called)}, as all ranks of the job have to"
        steps = "the ranks did different numbers of steps, or took different branches: they wait in other collectives"
        return Grade.LIKELY, steps
    if len(operations) == 1 and len(communicators) > 1:
        where = f"{min(operations)} of different communicators: {', '.join(communicators)}"
        return Grade.LIKELY, f"the ranks wait in {where}"
    return Grade.POSSIBLE, ""


def _in_store(waiting: Sequence[RankState]) -> Iterator[Clue]:
    """Yield a clue for ranks that wait for a key in the store, while the others are in a collective with them."""
    group = [state for state in waiting if state.position.name == STORE]
    rest = [state for state in waiting if state.position.name != STORE]
    if group and rest and all(state.position.kind in (Kind.COLLECTIVE, Kind.BACKWARD) for state in rest):
        place = group[0].position
        yield _clue(
            "deadlock", Grade.LIKELY,
            f"{_named(group)} waits for a key in the store at {place.where}{place.source}{_while(rest)}", group,
            meaning="a rank waits for a key in the store that no rank has set; the others wait for the rank",
        )  # fmt: skip


# dist.all_reduce(x, group=self.groups[0]) | dist.barrier(pair_ab)
_OF_GROUP = expression(r"\bgroup=([\w.\[\]]{1,80})|\bbarrier\(([\w.\[\]]{1,80})\)")


def _in_ring(waiting: Sequence[RankState]) -> Iterator[Clue]:
    """Yield a clue where each rank waits in a collective of another group, so that no group is complete."""
    names: dict[str, RankState] = {}
    for state in waiting:
        hit = _OF_GROUP.search(state.position.frame.source) if state.position.frame else None
        if hit and state.position.kind is Kind.COLLECTIVE:
            names.setdefault(hit[1] or hit[2], state)
    if len(names) == len(waiting) > 2:  # noqa: PLR2004  two groups need not be a ring
        where = ", ".join(f"{state.shown} in that of {name}" for name, state in list(names.items())[:_MOST_PLACES])
        yield _clue(
            "deadlock", Grade.LIKELY, f"each rank waits in a collective of another group: {where}", waiting,
            others=("collective_mismatch",),
            meaning="ranks wait for each other in a ring: each is in a collective of another group, and none is whole",
        )  # fmt: skip


def _between_two(waiting: Sequence[RankState], job: Job) -> Iterator[Clue]:
    """Yield a clue where ranks send to or receive from each other, and what one does is not what another waits for."""
    sends, receives = (
        [state for state in waiting if state.position.name.lower() in names] for names in (_SENDS, _RECEIVES)
    )
    two = [*sends, *receives]
    sure = all(state.position.kind in (Kind.COLLECTIVE, Kind.BACKWARD) for state in waiting)
    sure = sure and not any(state.position.name in _BETWEEN_TWO for state in waiting if state not in two)
    if len(two) < 2 or not sure:  # noqa: PLR2004  it takes two
        return
    messages = {state.rank.rank: _message(state, job) for state in two if state.rank.rank is not None}
    cause, blamed, meaning = "collective_mismatch", two, _unlike(sends, receives, messages)
    if not sends or not receives:
        circle = _circle({rank: message.peer for rank, message in messages.items()})
        # Where it is all ranks of the job there is nobody else, whomever they wait for.
        alone = len(two) == len(job.ranks) and not circle
        blamed = two if alone else [state for state in two if state.rank.rank in circle]
        does, lacks = ("receive", "sends") if receives else ("send", "receives")
        cause = "deadlock"
        meaning = f"ranks wait for each other: each waits to {does}, and none {lacks}" if blamed else ""
    if meaning:
        places = (f"{state.shown} {state.position.shown}{state.position.source}" for state in blamed[:_MOST_PLACES])
        yield _clue(
            cause, Grade.LIKELY, "; ".join(places), blamed, others=("network_stalled",), meaning=meaning
        )  # fmt: skip


def _message(state: RankState, job: Job) -> Message:
    line = state.position.frame.source if state.position.frame else ""
    return message_of(line, state.position.name, state.rank.rank, job.size)


def _circle(peers: Mapping[int, int | None]) -> frozenset[int]:
    """Return the ranks that wait for each other in a circle."""
    for first in peers:
        path: list[int] = []
        at: int | None = first
        while at is not None and at in peers and at not in path:
            path.append(at)
            at = peers[at]
        if at in path:
            return frozenset(path[path.index(at) :])
    return frozenset()


def _unlike(sends: Sequence[RankState], receives: Sequence[RankState], messages: Mapping[int, Message]) -> str:
    """Return in what a send and the receive that waits for it differ, as far as their code says it."""
    for sender, receiver in ((state.rank.rank, other.rank.rank) for state in sends for other in receives):
        sent, wanted = messages.get(sender or 0, Message()), messages.get(receiver or 0, Message())
        if sent.peer == receiver and wanted.peer in (sender, None) and None not in (sent.tag, wanted.tag):
            if sent.tag != wanted.tag:
                tags = f"{sent.tag} and {wanted.tag}"
                return f"rank {receiver} waits for another message than rank {sender} sends: the tags are {tags}"
        elif sent.peer == receiver and wanted.peer not in (sender, None):
            return f"rank {sender} sends to rank {receiver}, which waits to receive from rank {wanted.peer}"
    return ""


# PAIR.Barrier() | self.rows.Allreduce(mine, sums) | self.comm.barrier(), but not dist.barrier() nor hvd.allreduce(x)
_OF_COMMUNICATOR = expression(r"([\w.\[\]]{1,80})\.([A-Za-z]\w{0,40})\(")


def _communicator(state: RankState) -> str:
    """Return how the code names the communicator of an MPI call, such as "PAIR"; "" where it names none."""
    if state.position.kind is not Kind.COLLECTIVE or not state.position.frame:
        return ""
    for name, function in _OF_COMMUNICATOR.findall(state.position.frame.source):
        if function == state.position.name and (function[0].isupper() or re.search(r"(?i)(?:comm|world)$", name)):
            return str(name)
    return ""


_MOST_PLACES = 4


def _most_wait(waiting: Sequence[RankState], of: int) -> Clue:
    """Return the echo: where most of the ranks are that wait for others."""
    group = max(_by_place(waiting), key=len)
    text = f"{len(waiting)} of {of} ranks wait for others: {_named(group)} {group[0].position.shown}"
    return _clue("slow_rank_timeout", Grade.ECHO, text, [], others=("network_stalled", "rank_crashed"))


def _by_place(ranks: Iterable[RankState]) -> list[list[RankState]]:
    """Return the ranks that do the same at the same place, together."""
    groups: dict[object, list[RankState]] = defaultdict(list)
    for state in ranks:
        position = state.position
        name = "" if position.kind is Kind.STORAGE else position.name
        groups[(position.kind, name, position.where, bool(state.gil_owner))].append(state)
    return list(groups.values())


def _numbers(ranks: Iterable[RankState]) -> tuple[int, ...]:
    return tuple(state.rank.rank for state in ranks if state.rank.rank is not None)


def _nodes(ranks: Iterable[RankState]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(state.rank.node for state in ranks))


def _named(ranks: Sequence[RankState]) -> str:
    """Return the subject of a sentence: "rank 3 (pid 4711 on gpu02)" or "each of the ranks 0-2, 4-7"."""
    if len(ranks) == 1:
        return ranks[0].rank.shown
    numbers = _numbers(ranks)
    if len(numbers) == len(ranks):
        return f"each of the ranks {_folded(numbers)}"
    return f"each of {len(ranks)} processes on {printable(fold(_nodes(ranks)))}"


def _folded(numbers: Iterable[int]) -> str:
    """Return numbers for people: 0-2, 4, 6-7."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{first}-{last}" if last > first else str(first) for first, last in runs]
    return ", ".join(shown[:_MOST_RUNS]) + (", ..." if len(shown) > _MOST_RUNS else "")


_MOST_RUNS = 8
