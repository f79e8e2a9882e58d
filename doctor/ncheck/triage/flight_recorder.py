"""The flight recorder dumps of a job's ranks, side by side: where they part, and whom the others wait for.

No rank is the measure of the others. A collective has the same number on all ranks of its group, so for each group the
first one that somebody waits in shows who came, who did not, and whose dump is not there. A rank that did not come may
itself wait in another group: the ranks to look at are those that wait for nobody.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from ncheck.facts.ranks import ranks_text
from ncheck.lazy_dataclass import dataclass
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.parse.flight_recorder import ENDED, Call, Dump, DumpGroup

_NEVER_CAME = ("collective_mismatch", "rank_crashed", "data_loader", "checkpoint_write", "deadlock")
_STUCK = ("ib_fabric", "gpu_fault", "firewall", "software_bug")


def analyse(
    dumps: Mapping[int, Dump], size: int | None = None, unread: Collection[int] = (), alive: Collection[int] = ()
) -> Iterator[Clue]:
    """Yield what the dumps of a job say, by rank.

    `unread` are ranks that may have a dump that could not be read: nothing follows from it. Every other rank of a group
    that has none wrote none. `alive` are ranks whose process is known to run.
    """
    groups = _groups(dumps, size)
    meetings = [one for group in groups if (one := _meeting(group, dumps, unread))]
    gaps = _Gaps(dumps, groups, unread)
    parted = {group.key: clue for group in groups if (clue := _parting(group, meetings))}
    clues = list(parted.values())
    busy = {rank for one in meetings for rank in one.waiting} | {gap.rank for gap in gaps.waiting}
    for one in meetings:
        if one.group.key not in parted:
            clues += _not_come(one, busy, alive)
    clues += [_unmet(gap, dumps, alive) for gap in gaps.unmet if gap.peer not in busy]
    yield from clues or _nobody_behind(meetings, gaps)
    cut = [rank for rank, dump in dumps.items() if dump.cut == ENDED]
    if cut:
        text = f"the dump of {_few(cut)} ends in the middle: the rank ended, or the disk was full, while it was written"
        yield _clue("rank_crashed", Grade.ECHO, text, (), ("disk_full",))


def _nobody_behind(meetings: Sequence[_Meeting], gaps: _Gaps) -> Iterator[Clue]:
    """Yield what holds up ranks of which none has been left behind by the others."""
    complete = [one for one in meetings if not one.absent and not one.silent]
    for one in complete:
        yield from _all_came(one)
    for gap in gaps.met:
        text = f"{_side(gap)}, both have called it, and it does not end"
        yield _clue("network_stalled", Grade.POSSIBLE, text, (), _STUCK)
    if not complete and not gaps.met:
        yield from _circle(meetings, gaps)


# Groups


@dataclass(frozen=True)
class _JobGroup:
    """A process group as all its ranks see it. `members` are its ranks, as far as anything says so.

    `known`: all members are known. `order` are the global ranks by their number in the group; () if not recorded.
    """

    key: tuple[str, str, str]
    members: frozenset[int]
    known: bool
    order: tuple[int, ...]
    views: Mapping[int, DumpGroup]

    @property
    def shown(self) -> str:
        name, about, _ = self.key
        if about == _DEFAULT:
            return "the default group"
        return f"group {name}" if about in ("", "undefined") else f"group {name} ({about})"

    def rank_of(self, number: int) -> int | None:
        """Return the global rank of a member; groups whose order is not recorded are taken to be the whole job."""
        if self.order:
            return self.order[number] if number < len(self.order) else None
        return number if self.key[1] == _DEFAULT else None


_DEFAULT = "default_pg"
_MOST_RANKS = 65536


def _groups(dumps: Mapping[int, Dump], size: int | None) -> list[_JobGroup]:
    views: dict[tuple[str, str, str], dict[int, DumpGroup]] = {}
    for rank, dump in sorted(dumps.items()):
        for group in dump.groups:
            views.setdefault((group.name, group.about, group.ranks), {})[rank] = group
    whole = range(min(max([size or 0, *(rank + 1 for rank in dumps)]), _MOST_RANKS))
    found = []
    for key, held in views.items():
        order = _numbers(key[2])
        members = order or (tuple(whole) if key[1] == _DEFAULT else ())
        found.append(_JobGroup(key, frozenset(members) | set(held), bool(members), order, held))
    return found


@lru_cache(maxsize=64)
def _numbers(ranks: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d{1,9}", ranks)[:_MOST_RANKS])


# Meetings


@dataclass(frozen=True)
class _Meeting:
    """The first collective of a group that somebody waits in.

    `waiting` by rank; `passed` have completed it; `ahead` have called it and wait in a later one. `absent` never called
    it. `silent` are members that wrote no dump, `unsure` those whose dump is cut before it or could not be read.
    """

    group: _JobGroup
    number: int
    waiting: Mapping[int, Call]
    passed: frozenset[int]
    absent: frozenset[int]
    silent: frozenset[int]
    unsure: frozenset[int]

    @property
    def what(self) -> str:
        """Name the collective for people: "all_reduce of 4 Float (number 12 of the default group)"."""
        name = Counter(call.what for call in self.waiting.values()).most_common(1)[0][0] or "a collective"
        return f"{name} (number {self.number} of {self.group.shown})"

    @property
    def place(self) -> str:
        """Name where the program calls it."""
        return _place(next(iter(self.waiting.values())))


def _place(call: Call | None) -> str:
    return f", called at {call.frames[0]}" if call and call.frames else ""


def _meeting(group: _JobGroup, dumps: Mapping[int, Dump], unread: Collection[int]) -> _Meeting | None:
    firsts = {rank: view.waiting for rank, view in group.views.items() if view.waiting}
    if not firsts:
        return None
    number = min(call.number for call in firsts.values())
    waiting = {rank: call for rank, call in firsts.items() if call.number == number}
    behind = {rank for rank, view in group.views.items() if view.last < number}
    behind |= {rank for rank in group.members if rank in dumps and rank not in group.views}
    cut = {rank for rank in behind if dumps[rank].cut}
    silent = {rank for rank in group.members if rank not in dumps}
    passed = set(group.views) - behind - set(waiting)
    return _Meeting(
        group, number, waiting, frozenset(passed), frozenset(behind - cut), frozenset(silent - set(unread)),
        frozenset(cut | silent & set(unread)),
    )  # fmt: skip


def _not_come(one: _Meeting, busy: Collection[int], alive: Collection[int]) -> Iterator[Clue]:
    """Yield who did not come to a meeting, where they wait nowhere else."""
    idle, came, everyone = one.absent - set(busy), len(one.waiting) + len(one.passed), len(one.group.members)
    others = f"{_of_all(one)} {_wait(one)} in {one.what}{one.place}"
    if idle and len(idle) > everyone / 2:
        text = f"{others}; the other ranks never called it: {_few(idle)}"
        yield _clue("collective_mismatch", Grade.POSSIBLE, text, tuple(sorted(one.waiting)), ("slow_rank_timeout",))
    elif idle:
        grade = Grade.POSSIBLE if one.silent else Grade.LIKELY
        text = f"{_few(idle)} never called it, and {others}{_last_of(idle, one)}"
        yield _clue("slow_rank_timeout", grade, text, tuple(sorted(idle)), _NEVER_CAME)
    if one.silent and len(one.silent) > everyone / 2:
        text = f"{others}; {_few(one.silent)} wrote no dump, so the missing rank is unknown"
        yield _clue("slow_rank_timeout", Grade.ECHO, text, (), _NEVER_CAME)
    elif one.silent:
        running = [rank for rank in sorted(one.silent) if rank in alive]
        ended = [rank for rank in sorted(one.silent) if rank not in alive]
        grade = Grade.POSSIBLE if idle or one.absent else Grade.LIKELY
        if running:
            text = f"{_few(running)} wrote no dump: it hangs where torch cannot answer, or holds the GIL; {others}"
            yield _clue("slow_rank_timeout", grade, text, tuple(running), ("deadlock", "rank_stopped", "gpu_fault"))
        if ended:
            text = f"{_few(ended)} wrote no dump: it ended, or hangs where torch cannot answer; {others}"
            yield _clue("rank_crashed", grade, text, tuple(ended), ("slow_rank_timeout", "rank_missing"))
    if one.unsure and not idle and not one.silent and not one.absent and came < everyone:
        text = f"{others}; the dump of {_few(one.unsure)} is not whole, so it may not have come"
        yield _clue("slow_rank_timeout", Grade.ECHO, text, (), _NEVER_CAME)
    if not one.group.known and not idle and not one.absent:
        text = f"{others}; which other ranks belong to the group is not recorded"
        yield _clue("slow_rank_timeout", Grade.ECHO, text, (), _NEVER_CAME)


def _of_all(one: _Meeting) -> str:
    return _few(one.waiting) if len(one.waiting) < len(one.group.members) else f"all {len(one.waiting)} ranks"


def _wait(one: _Meeting) -> str:
    return "waits" if len(one.waiting) == 1 else "wait"


def _last_of(ranks: Collection[int], one: _Meeting) -> str:
    """Say what the first of these ranks called last, in this group."""
    rank = min(ranks)
    view = one.group.views.get(rank)
    if not view or not view.latest:
        return ""
    return f"; the last call of rank {rank} is {view.latest.what} (number {view.last}){_place(view.latest)}"


def _all_came(one: _Meeting) -> Iterator[Clue]:
    """Yield what hinders a collective that all have called."""
    states = {rank: call.state for rank, call in one.waiting.items()}
    idle = {rank for rank, state in states.items() if state == "scheduled"}
    places = Counter(call.frames[0] for call in one.waiting.values() if call.frames)
    if len(places) > 1 and not one.passed:
        (usual, count), *_ = places.most_common()
        odd = [rank for rank, call in one.waiting.items() if call.frames and call.frames[0] != usual]
        blamed = tuple(sorted(odd)) if count > len(odd) else ()
        text = f"the ranks call {one.what} from different lines: {'; '.join(_by_place(one))}"
        yield _clue("collective_mismatch", Grade.POSSIBLE, text, blamed, ("network_stalled",))
    if one.passed:
        fewer = tuple(sorted(one.waiting)) if len(one.waiting) < len(one.passed) else ()
        text = f"{_few(one.passed)} completed {one.what}, and {_few(one.waiting)} did not"
        yield _clue("network_stalled", Grade.POSSIBLE, text, fewer, _STUCK)
    elif idle and len(idle) < len(states):
        fewer = tuple(sorted(idle)) if len(idle) < len(states) / 2 else ()
        text = f"all ranks called {one.what}, and on {_few(idle)} the GPU has not begun it: it still does earlier work"
        yield _clue("slow_rank_timeout", Grade.POSSIBLE, text, fewer, ("gpu_fault", "slow_rank", "collective_mismatch"))
    else:
        begun = "started" if set(states.values()) == {"started"} else "called"
        text = f"all {len(states)} ranks {begun} {one.what}{one.place}, and none completed it"
        grade = Grade.LIKELY if begun == "started" else Grade.POSSIBLE
        yield _clue("network_stalled", grade, text, (), _STUCK)


def _by_place(one: _Meeting) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    for rank, call in one.waiting.items():
        places.setdefault(call.frames[0] if call.frames else "?", []).append(rank)
    for place, ranks in sorted(places.items(), key=lambda it: -len(it[1]))[:_MOST_SHOWN]:
        yield f"{_few(ranks)} at {place}"


_MOST_SHOWN = 4


# Different collectives


def _parting(group: _JobGroup, meetings: Sequence[_Meeting]) -> Clue | None:
    """Return the first number at which the ranks of a group called different collectives; None if there is none."""
    low = min((view.first for view in group.views.values()), default=0)
    high = max((view.last for view in group.views.values()), default=-1)
    for number in range(low, high + 1):
        called: dict[str, list[int]] = {}
        for rank, view in group.views.items():
            if what := view.what(number):
                called.setdefault(what, []).append(rank)
        if len(called) > 1:
            waits = any(one.group is group for one in meetings)
            return _different(group, number, called, Grade.CERTAIN if waits else Grade.LIKELY)
    return None


def _different(group: _JobGroup, number: int, called: Mapping[str, Sequence[int]], grade: Grade) -> Clue:
    (usual, many), *rest = sorted(called.items(), key=lambda it: -len(it[1]))
    fewer = sorted(rank for _, ranks in rest for rank in ranks)
    decided = len(many) > len(fewer)
    listed = "; ".join(
        f"{_few(ranks)} called {what}{_place_of(group, ranks[0], number)}"
        for what, ranks in [(usual, many), *rest][:_MOST_SHOWN]
    )
    text = f"number {number} of {group.shown} is not the same on all ranks: {listed}"
    if decided and (skipped := _skipped(group, many[0], fewer, number)):
        text += f"; {skipped}"
    return _clue("collective_mismatch", grade, text, tuple(fewer) if decided else ())


def _place_of(group: _JobGroup, rank: int, number: int) -> str:
    view = group.views[rank]
    return next((_place(call) for call in (view.waiting, view.latest) if call and call.number == number), "")


def _skipped(group: _JobGroup, usual: int, fewer: Sequence[int], number: int) -> str:
    """Say whether the few have left out one call, or made one more than the many."""
    many = group.views[usual]
    few = [group.views[rank] for rank in fewer]
    if all(view.what(number) == many.what(number + 1) for view in few):
        return f"as if {_few(fewer)} had left out one call"
    if all(view.what(number + 1) == many.what(number) for view in few):
        return f"as if {_few(fewer)} had made one call more"
    return ""


# Sends and receives


@dataclass(frozen=True)
class _Gap:
    """A send or receive that is not completed, of a rank with another one."""

    group: _JobGroup
    rank: int
    peer: int
    call: Call


@dataclass
class _Gaps:
    """The transfers that ranks wait for: those that the other side has called, too, and those that it has not."""

    dumps: Mapping[int, Dump]
    groups: Sequence[_JobGroup]
    unread: Collection[int]
    met: list[_Gap] = field(default_factory=list)
    unmet: list[_Gap] = field(default_factory=list)

    def __post_init__(self) -> None:
        for group in self.groups:
            for rank, view in group.views.items():
                first = min((call.number for call in view.transfers), default=None)
                for call in view.transfers:
                    peer = group.rank_of(call.peer) if call.peer is not None else None
                    if call.number == first and peer is not None and peer != rank:
                        self._sort(_Gap(group, rank, peer, call))

    def _sort(self, gap: _Gap) -> None:
        if gap.peer in self.unread or (gap.peer in self.dumps and self.dumps[gap.peer].cut):
            return
        other = gap.group.views.get(gap.peer)
        back = [call for call in other.transfers if call.sends != gap.call.sends] if other else []
        if all(call.peer is None or gap.group.rank_of(call.peer) != gap.rank for call in back):
            self.unmet.append(gap)
        elif gap.call.sends:
            self.met.append(gap)

    @property
    def waiting(self) -> list[_Gap]:
        return [*self.met, *self.unmet]


def _side(gap: _Gap) -> str:
    verb = f"sends to rank {gap.peer}" if gap.call.sends else f"waits to receive from rank {gap.peer}"
    return f"rank {gap.rank} {verb} ({gap.call.what}, number {gap.call.number} of {gap.group.shown}{_place(gap.call)})"


def _unmet(gap: _Gap, dumps: Mapping[int, Dump], alive: Collection[int]) -> Clue:
    if gap.peer in dumps:
        text = f"{_side(gap)}, and rank {gap.peer} has not called the other side of it"
        return _clue("slow_rank_timeout", Grade.LIKELY, text, (gap.peer,), _NEVER_CAME)
    text = f"{_side(gap)}, and rank {gap.peer} wrote no dump"
    cause = "slow_rank_timeout" if gap.peer in alive else "rank_crashed"
    return _clue(cause, Grade.POSSIBLE, text, (gap.peer,), ("slow_rank_timeout", "rank_missing", "deadlock"))


def _circle(meetings: Sequence[_Meeting], gaps: _Gaps) -> Iterator[Clue]:
    """Yield ranks that wait for each other in different groups: nobody is ahead of the others."""
    parts = [f"{_few(one.waiting)} {_wait(one)} in {one.what}{one.place}" for one in meetings if one.absent]
    parts += [_side(gap) for gap in gaps.unmet]
    if len(parts) > 1:
        text = f"the ranks wait for each other: {'; '.join(parts[:_MOST_SHOWN])}"
        yield _clue("collective_mismatch", Grade.LIKELY, text, (), ("deadlock",))


# Words


def _few(ranks: Collection[int]) -> str:
    return ranks_text(ranks)


def _clue(cause: str, grade: Grade, text: str, ranks: tuple[int, ...] = (), others: Sequence[str] = ()) -> Clue:
    return Clue("flight-recorder", cause, grade, text, ranks, others=tuple(one for one in others if one != cause))
