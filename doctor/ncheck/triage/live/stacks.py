"""The stacks of the ranks: where most of them are is the scene, and who is elsewhere is the lead."""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ncheck.expression import expression
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.job import Job, RankProcess
from ncheck.text import printable
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.stacks import FileLock, ProcessStacks, StacksFacts, Thread
from ncheck.triage.peers import Message, message_of
from ncheck.triage.positions import (
    A_FILE,
    BUILD,
    DESTROYS,
    OF_ALL,
    PATTERN,
    STORE,
    WAITS_FOR_RANKS,
    Kind,
    Position,
    in_worker,
    of_task,
    position_of,
)
from ncheck.triage.signature import Grade

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster

READS = (StacksFacts,)

# A thread that waits in one call sleeps once. One that looks again each second or so is still, too; one that went to
# sleep more often, or computed, may have done its work between two looks.
_POLLS = 8
_OFTEN = 50
_BUSY, _HALF, _SPINS = 0.05, 0.5, 0.9  # shares of the time that the main thread computed


@dataclass(frozen=True)
class _Rank:
    """What one rank is at. `moved`: it was at several places; `still`: it surely did nothing between the looks.

    `circles`: only the line of its innermost function changed, as in a loop. `works`: at no look it waited for others.
    `busy`: the share of the time that it computed. `stopped`: the letter of its state, if it is stopped or traced.
    `owner`: another thread, which holds the interpreter's lock all the time; `beside`: where one waits for a lock.
    `holds`: it holds that lock itself. `awake`: it ran, or wanted to, all the time, as on a busy machine. `woke`: it
    slept and woke up in between. `waited`: whether it waited for others, at each look. `endless`: the lines that it was
    at are those of a loop that calls nothing. `ended`: so many of its children ended between the looks. `held`: the
    lock files that it has open; `holder`: the rank that holds the lock that it waits for, and waits for it in turn.
    """

    rank: RankProcess
    position: Position
    moved: bool = False
    still: bool = False
    circles: bool = False
    works: bool = False
    busy: float | None = None
    stopped: str = ""
    owner: Thread | None = None
    holds: bool = False
    awake: bool = False
    woke: bool = False
    waited: tuple[bool, ...] = ()
    endless: bool = False
    lock: FileLock | None = None
    beside: Position | None = None
    children: tuple[ProcessStacks, ...] = ()
    ended: int = 0
    held: tuple[str, ...] = ()
    holder: _Rank | None = None

    @property
    def waits(self) -> bool:
        """Whether it waits for other ranks."""
        return self.position.kind in WAITS_FOR_RANKS and not self.owner and not self.moved

    @property
    def spins(self) -> bool:
        """Whether it computed all the time at one place, as far as there was a CPU for it."""
        return self.busy is not None and (self.busy >= _SPINS or self.awake)

    @property
    def loader_works(self) -> bool:
        """Whether it waits for its data loader, and that has not stopped."""
        return self.position.kind is Kind.LOADER and any(_works(child) for child in self.children)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what the stacks of all ranks say together."""
    facts = cluster.facts(StacksFacts)
    ranks = [one for rank in job.ranks if rank.node in facts and (one := _looked_at(rank, facts[rank.node]))]
    usual = 2 * sum(one.position.kind is Kind.CHILD for one in ranks) > len(job.ranks)
    ranks = [_inner(one, usual=usual) for one in ranks]
    ranks = [_with_holder(one, ranks) for one in ranks]
    for one in ranks:
        yield from _motion(one)
        if one.stopped:
            yield _stopped(one)
    judged = [one for one in ranks if not one.stopped]
    waiting = [one for one in judged if one.waits]
    leads = [one for one in judged if not (one.waits or one.moved or _says_nothing(one, waiting))]
    at_work = [one for one in judged if one.moved and one.works]
    if leads:
        yield from _leads(leads, waiting, job)
    elif len(waiting) == len(job.ranks):
        yield from _divergence(waiting, job)
    elif at_work and len(waiting) + len(at_work) == len(job.ranks):
        yield from _late(at_work, waiting)
    if any(one.still or one.spins for one in waiting):
        yield _scene(waiting, len(job.ranks))
    yield from _slow(judged, job)


def _says_nothing(one: _Rank, waiting: Sequence[_Rank]) -> bool:
    """Whether a rank may be where it is in a job that is well, as a server is, but not one that others wait for."""
    serves = one.position.kind is Kind.SERVICE and not (waiting and one.position.own and one.still)
    return serves or one.position.kind is Kind.BLOCKED


# One rank


def _looked_at(rank: RankProcess, facts: StacksFacts) -> _Rank | None:
    """Return what one rank is at; None if neither its stacks nor the kernel say it."""
    process = facts.of(rank.pid)
    if process is None or process.gone:
        return None
    children = tuple(child for it in rank.children if (child := facts.of(it.pid)) and not child.gone)
    ended = sum(bool(child and child.gone) for child in (facts.of(it.pid) for it in rank.children))
    one = _of_process(rank, process)
    if one is None:
        return None
    held = facts.held.get(rank.pid, ())
    return replace(one, children=children, ended=ended, lock=facts.locks.get(rank.pid), held=held)


def _inner(one: _Rank, *, usual: bool) -> _Rank:
    """Return the program that does the work, for a rank that only starts it, as is `usual` or the program shows it."""
    if one.position.kind is not Kind.CHILD:
        return one
    inner = (it for child in one.children if not _is_worker(child) and (it := _of_process(one.rank, child)))
    found = next((it for it in inner if it.position.own and (usual or it.waits)), None)
    return replace(found, children=one.children) if found else one


def _with_holder(one: _Rank, ranks: Sequence[_Rank]) -> _Rank:
    """Return a rank that waits for the lock on a file with the rank that holds it, and waits for others meanwhile."""
    if one.position.kind is not Kind.LOCK or not one.position.name:
        return one
    waiting = [it for it in ranks if it.waits and it.held]
    by_pid = [it for it in waiting if one.lock and it.rank.pid == one.lock.pid and it.rank.node == one.rank.node]
    by_file = [it for it in waiting if one.position.name in it.held]
    alone = waiting if one.position.name == A_FILE and len(waiting) == 1 else []
    return replace(one, holder=next(iter((*by_pid, *by_file, *alone)), None))


def _is_worker(child: ProcessStacks) -> bool:
    return isinstance(child.looks, tuple) and in_worker(_main(child, child.looks[-1]).frames)


def _of_process(rank: RankProcess, process: ProcessStacks) -> _Rank | None:
    states = {look[0].state for look in (process.before, process.after) if look}
    stopped = states.pop() if len(states) == 1 and states <= {"T", "t"} else ""
    looks = process.looks if isinstance(process.looks, tuple) else ()
    if len(looks) < 2:  # noqa: PLR2004  one look shows no motion
        return _by_kernel(rank, process, stopped)
    acting = _acting(process, looks[-1])
    watched = _watched(process, process.pid if acting is _main(process, looks[-1]) else acting.number)
    threads = [_same(acting, look, process) for look in looks]
    places = [position_of(thread.frames) for thread in threads]
    position = places[-1]
    if process.native:
        native = position_of(_same(acting, process.native, process).frames)
        position = replace(position, kind=native.kind, name=native.name) if native.kind in WAITS_FOR_RANKS else position
    if watched.blocked and position.kind not in (*WAITS_FOR_RANKS, Kind.PERSON):
        position = replace(position, kind=watched.blocked.kind, name=watched.blocked.name)
    works = not any(place.kind in WAITS_FOR_RANKS for place in places)
    moved = len({(place.kind, place.path) for place in places}) > 1
    circles = (
        moved and works and len({(*(step[:2] for step in place.path[:1]), *place.path[1:]) for place in places}) == 1
    )
    if position.kind is Kind.BACKWARD and (watched.busy is None or watched.busy >= _BUSY):
        position, works = replace(position, kind=Kind.CODE, name=""), True  # it computes
    # What waits at the same place at each look, and both computed and slept often, went on meanwhile and came back.
    came_back = not works and watched.asleep > _OFTEN and watched.busy is not None and _BUSY <= watched.busy < _SPINS
    still = not moved and watched.asleep <= _POLLS and watched.busy is not None and not watched.awake
    owner = _owner(looks)
    holds = owner is not None and (owner.name, owner.number) == (acting.name, acting.number)
    holds = holds or (circles and all(thread.gil for thread in threads))
    waited = tuple(
        place.kind in WAITS_FOR_RANKS and not (place.kind is Kind.BACKWARD and (watched.busy or 0.0) > _HALF)
        for place in places
    )
    lines = [thread.frames[0].source for thread in threads if thread.frames]
    return _Rank(
        rank, position, (moved and not circles) or came_back,
        still and watched.busy is not None and watched.busy < _BUSY, circles, works, watched.busy,
        stopped, None if holds else owner, holds, watched.awake, 1 < watched.asleep < math.inf, waited,
        _is_endless(lines), None,
        _other_lock(looks[-1], acting) if position.kind is Kind.LOCK else None,
    )  # fmt: skip


def _by_kernel(rank: RankProcess, process: ProcessStacks, stopped: str) -> _Rank | None:
    """Return what is known of a rank without its stacks: what its main thread is blocked in."""
    watched = _watched(process, process.pid)
    if not stopped and (watched.asleep != 0 or watched.busy is None or watched.busy >= _BUSY):
        return None
    call = process.after[0].call or process.after[0].wchan or "the kernel"
    return _Rank(rank, watched.blocked or Position(Kind.BLOCKED, call), still=True, stopped=stopped)


class _Watched(NamedTuple):
    """What the kernel says of one thread between the first and the last look. `asleep`: how often it went to sleep."""

    busy: float | None
    asleep: float
    blocked: Position | None
    awake: bool = False  # it computed, or was ready to, all the time


def _watched(process: ProcessStacks, number: int | None) -> _Watched:
    before, after = (next((it for it in look if it.number == number), None) for look in (process.before, process.after))
    if before is None or after is None or process.seconds <= 0 or before.sleeps is None or after.sleeps is None:
        return _Watched(None, math.inf, None)
    asleep = after.sleeps - before.sleeps
    same = (before.call, before.file) == (after.call, after.file) and asleep == 0
    busy = (after.cpu - before.cpu) / process.seconds
    if before.delay is None or after.delay is None:
        awake = before.state == after.state == "R" and (asleep == 0 or (asleep <= _POLLS and busy >= _BUSY))
    else:
        awake = asleep <= _POLLS and busy + (after.delay - before.delay) / process.seconds >= _SPINS
    return _Watched(busy, asleep, of_task(after) if same else None, awake)


# x = x @ x | f(x) | for sample in samples: | [x * x for x in numbers], but not: while not free: | tries += 1
_COMES_TO_AN_END = expression(r"[(@]|\bfor\b")


def _is_endless(lines: Sequence[str]) -> bool:
    """Return whether these lines call nothing and go through nothing that has an end."""
    return bool(lines) and all(line and not _COMES_TO_AN_END.search(line) for line in lines)


def _distinct(looks: Sequence[tuple[Thread, ...]]) -> Iterator[tuple[Thread, ...]]:
    """Yield the looks without those that are the same as the one before."""
    for at, look in enumerate(looks):
        if at == 0 or look is not looks[at - 1]:
            yield look


_NOBODY = Thread("", ())
_LEAVES_TO_OTHERS = frozenset({Kind.ENDING, Kind.SERVICE, Kind.BACKWARD, Kind.LOCK})


def _main(process: ProcessStacks, look: Sequence[Thread]) -> Thread:
    """Return the main thread: by its number, else by its name; the first that was started comes last."""
    by_number = (thread for thread in look if thread.number == process.pid)
    by_name = (thread for thread in look if thread.name == "MainThread")
    return next(by_number, None) or next(by_name, None) or (look[-1] if look else _NOBODY)


def _acting(process: ProcessStacks, look: Sequence[Thread]) -> Thread:
    """Return the thread that does the rank's work: the main thread, or the one that this waits for."""
    main = _main(process, look)
    kind = position_of(main.frames).kind
    joins = kind is not Kind.LOCK or (main.frames and main.frames[0].function.rpartition(".")[2] in _JOINS)
    if kind in _LEAVES_TO_OTHERS and joins:
        for thread in look:
            if thread is not main and position_of(thread.frames).kind in (Kind.COLLECTIVE, Kind.RENDEZVOUS):
                return thread
    return main


_JOINS = frozenset({"join", "_wait_for_tstate_lock"})


def _same(acting: Thread, look: Sequence[Thread], process: ProcessStacks) -> Thread:
    """Return the same thread in another look."""
    main = _main(process, look)
    if acting.number == process.pid or acting.name in ("MainThread", ""):
        return main
    return next((it for it in look if (it.name, it.number) == (acting.name, acting.number)), main)


def _owner(looks: Sequence[Sequence[Thread]]) -> Thread | None:
    """Return the thread that held the interpreter's lock at each look, at the same place."""
    owners = [next((it for it in look if it.gil), None) for look in looks]
    last = owners[-1]
    return last if last and all(it and (it.name, it.frames) == (last.name, last.frames) for it in owners) else None


def _other_lock(look: Sequence[Thread], acting: Thread) -> Position | None:
    """Return where another thread waits for a lock in the user's own code."""
    for thread in look:
        place = position_of(thread.frames)
        if thread is not acting and thread.name != acting.name and place.kind is Kind.LOCK and place.own:
            return place
    return None


def _motion(one: _Rank) -> Iterator[Motion]:
    rank, shown = one.rank, one.rank.shown
    if one.stopped:
        text = f"{shown} is stopped (state {one.stopped})"
        yield Motion("stacks", rank.rank, rank.node, moves=False, text=text, pid=rank.pid)
    elif one.moved:
        yield Motion(
            "stacks", rank.rank, rank.node, moves=True, text=f"{shown} was at several places of its code", pid=rank.pid
        )
    elif one.loader_works:
        yield Motion("stacks", rank.rank, rank.node, moves=True, text=f"the data loader of {shown} works", pid=rank.pid)
    elif one.still or (one.waits and one.spins) or _is_hung(one):
        text = f"{shown} {_doing(one)}"
        yield Motion("stacks", rank.rank, rank.node, moves=False, text=text, waits=one.waits, pid=rank.pid)
    elif one.waits and one.woke:  # perhaps for a step that takes next to no time
        text = f"{shown} wakes up again and again"
        yield Motion("stacks", rank.rank, rank.node, moves=True, text=text, waits=True, pid=rank.pid, aside=True)


# What is at fault


@dataclass(frozen=True)
class _Fault:
    """What a position means where others wait for that rank: the clue's cause, and the words for people."""

    cause: str
    grade: Grade = Grade.LIKELY
    others: tuple[str, ...] = ()
    meaning: str = ""
    fix: str = ""
    detail: str = ""
    works: bool = False


_LATE = "slow_rank"
_KNOWN = frozenset({  # work that takes its time, and ends
    Kind.CHECKPOINT, Kind.LOADING, Kind.COMPILING, Kind.DOWNLOADING, Kind.IMPORTING, Kind.EVALUATION,
})  # fmt: skip
_FAULTS: Mapping[Kind, _Fault] = {
    Kind.STORAGE: _Fault("storage_hang", others=("disk_full",)),
    Kind.CHECKPOINT: _Fault("checkpoint_write", others=("storage_hang", "disk_full")),
    Kind.LOCK: _Fault("deadlock", others=("software_bug",)),
    Kind.PERSON: _Fault(
        "rank_stopped", Grade.CERTAIN, meaning="a rank waits for a person, in a debugger or for input",
        fix="export PYTHONBREAKPOINT=0",
    ),
    Kind.OUTPUT: _Fault("deadlock", meaning="a rank cannot write its output: the program that reads it has stopped"),
    Kind.CHILD: _Fault(_LATE, meaning="a rank waits for a program that it started; the others wait for the rank"),
    Kind.SERVICE: _Fault(
        "deadlock", Grade.POSSIBLE, (_LATE,), "a rank waits in its event loop, and the others wait for the rank"
    ),
    Kind.SLEEP: _Fault(_LATE, others=("deadlock",), meaning="a rank sleeps, and the others wait for it"),
    Kind.ENDING: _Fault(
        "rank_crashed", others=("collective_mismatch",), meaning="a rank is ending, and the others still wait for it"
    ),
    Kind.COMPILING: _Fault(_LATE, meaning="a rank still compiles; the others wait for it"),
    Kind.LOADING: _Fault(_LATE, others=("storage_hang",), meaning="a rank still loads a checkpoint; the others wait"),
    Kind.DOWNLOADING: _Fault(
        _LATE, others=("firewall",), meaning="a rank waits for a server outside the job; the others wait for the rank"
    ),
    Kind.IMPORTING: _Fault(_LATE, others=("storage_hang",), meaning="a rank still imports modules; the others wait"),
    Kind.EVALUATION: _Fault(
        _LATE, others=("collective_mismatch",), meaning="a rank evaluates on its own; the others wait for it"
    ),
}  # fmt: skip
_WHEN_ALL_ARE_THERE = frozenset({Kind.LOADER, Kind.STORAGE, Kind.CHECKPOINT, Kind.LOCK, Kind.PERSON, Kind.OUTPUT})


def _fault(one: _Rank) -> _Fault:  # noqa: PLR0911  one for each kind
    if one.owner:
        return _Fault("deadlock", meaning="a thread of a rank keeps the interpreter's lock (GIL), so nothing else runs")
    if one.position.kind is Kind.LOADER:
        return _loader_fault(one)
    if one.position.kind is Kind.CODE:
        return _code_fault(one)
    fault = _FAULTS[one.position.kind]
    if one.position.kind is Kind.CHILD:
        return _child_fault(one, fault)
    if one.position.kind is Kind.ENDING and one.position.name == DESTROYS:
        meaning = "the ranks did different numbers of steps: a rank is done and ends, the others still wait for it"
        return _Fault("collective_mismatch", others=("rank_crashed",), meaning=meaning)
    if one.position.kind in _KNOWN and not (one.still and not one.spins):
        return _at_work(one, fault, "it " + one.position.kind.value.format(one.position.name))
    if one.position.kind is Kind.LOCK and one.position.name:
        return _file_lock(one)
    if one.position.kind is Kind.LOCK and one.beside:
        return replace(fault, detail=f"; another thread {one.beside.shown}")
    return fault


def _code_fault(one: _Rank) -> _Fault:
    """Return how sure it is that code comes to no end: it matches a pattern, or goes round and calls nothing."""
    if _is_hung(one):
        what = "a regular expression of a rank's does not come to an end"
        loop = "a rank loops in its own code, and the others wait for it"
        return _Fault("deadlock", others=(_LATE,), meaning=what if one.position.name == PATTERN else loop)
    if one.still or one.busy is None:
        return _Fault("deadlock", Grade.LIKELY if one.still else Grade.POSSIBLE, (_LATE,))
    return _at_work(one, _Fault(_LATE, others=("deadlock",)), "it runs its own code")


def _is_hung(one: _Rank) -> bool:
    """Return whether a rank computes, and it shows that this comes to no end."""
    in_pattern = one.position.name == PATTERN and not one.circles
    return one.position.kind is Kind.CODE and one.spins and (in_pattern or (one.holds and one.endless))


def _child_fault(one: _Rank, fault: _Fault) -> _Fault:
    """Return whether the program that a rank waits for works."""
    shares = ((_watched(it, it.pid), it.pid) for it in one.children)
    busy = [(at.busy or 0.0, pid) for at, pid in shares if at.awake or (at.busy or 0.0) >= _BUSY]
    names = {it.pid: printable(it.name) for it in one.rank.children}
    if not busy and not one.ended:
        waits = [it.pid for it in one.children]
        return replace(fault, detail=f": {names.get(waits[-1], '')} (pid {waits[-1]})" if waits else "")
    _, pid = max(busy, default=(0, 0))
    doing = f": {names.get(pid, '')} (pid {pid}) works" if pid else ": it starts others"
    return replace(_at_work(one, fault, "a program that it started computes"), detail=doing)


def _at_work(one: _Rank, fault: _Fault, doing: str) -> _Fault:
    """Return a fault as what it is where the rank works: what the others wait for."""
    who = "a process" if one.rank.rank is None else f"rank {one.rank.rank}"
    meaning = f"the others wait for {who}, which works: {doing}"
    return replace(fault, grade=Grade.POSSIBLE, meaning=meaning, works=True)


def _file_lock(one: _Rank) -> _Fault:
    """Return who holds the lock of a file that a rank waits for."""
    holder = one.lock
    if one.holder:
        file = one.position.name if one.position.name in one.holder.held else one.holder.held[0]
        whom = f"{one.holder.rank.shown} holds the lock on {printable(file, 200)} and {one.holder.position.shown}"
        return _Fault("deadlock", meaning=f"ranks wait for each other: {whom}, which another rank never reaches",
                      detail=f"; {whom}")  # fmt: skip
    if one.position.name == BUILD and not (holder and holder.file):
        return _at_work(one, _Fault(_LATE, others=("deadlock",)), "it waits for a build of torch's extensions")
    if holder and holder.file:
        return _Fault(
            "deadlock", meaning=f"a rank waits for the lock file {printable(holder.file, 200)}, which no process holds",
            fix=f"rm {shlex.quote(holder.file)}",
            detail=f": {printable(holder.file, 200)}, which no process of {one.rank.node} has open",
        )  # fmt: skip
    named = f"process {holder.pid} ({printable(holder.name, 80)}) on {one.rank.node}" if holder and holder.pid else ""
    return _Fault(
        "deadlock", meaning=f"a rank waits for the lock on a file, which {named or 'another process'} holds",
        fix=f"ps -o pid,user,etime,args -p {holder.pid}" if holder and holder.pid else "cat /proc/locks",
        detail=f", which {named} holds" if named else ", which another process holds: on this node or another one",
    )  # fmt: skip


def _loader_fault(one: _Rank) -> _Fault:
    """Return why a data loader brings nothing: what its workers are at."""
    fault = _Fault("data_loader", others=("storage_hang",))
    for it in one.children:
        named = f"; its worker (pid {it.pid})"
        if it.after and it.after[0].state in "Tt":
            state = it.after[0].state
            return _Fault(
                "data_loader", Grade.CERTAIN, fix=f"kill -CONT {it.pid}", detail=f"{named} is stopped (state {state})"
            )
        blocked = _watched(it, it.pid).blocked
        if blocked and blocked.kind is Kind.STORAGE:
            return _Fault("storage_hang", others=("data_loader",), detail=f"{named} {_on_file(blocked)}")
    if dead := [it.pid for it in one.rank.children if it.state == "Z"]:
        return replace(fault, others=("host_memory",), detail=f"; its worker (pid {dead[0]}) is dead")
    workers = [it for it in one.children if _is_worker(it)]
    for it in workers:
        place = position_of(_main(it, it.looks[-1]).frames) if isinstance(it.looks, tuple) else Position(Kind.CODE)
        if place.own and place.frame:
            does = "works" if _works(it) else "is"
            return replace(fault, detail=f"; its worker (pid {it.pid}) {does} at {place.where}{_source(place)}")
    if workers:
        return replace(fault, others=("software_bug",), detail=f"; its {len(workers)} workers wait for work themselves")
    return fault


def _works(process: ProcessStacks) -> bool:
    """Whether a worker of a data loader was seen to do something between the looks."""
    if not isinstance(process.looks, tuple) or not _is_worker(process):
        return False
    places = {position_of(_main(process, look).frames).path for look in _distinct(process.looks)}
    watched = _watched(process, process.pid)
    return len(places) > 1 or (watched.busy or 0.0) >= _BUSY or _OFTEN < watched.asleep < math.inf


def _doing(one: _Rank) -> str:
    """Return what a rank does, for people: it follows the rank's name."""
    if one.owner:
        place = position_of(one.owner.frames)
        return f"does not release the GIL: its thread {one.owner.name or 'without a name'} is at {place.where}"
    position = one.position
    if position.kind is Kind.STORAGE:
        at = f" at {position.where}" if position.where else ""
        return _on_file(position) + at
    if position.kind is Kind.CODE and (one.circles or one.spins or one.holds):
        holds = ", and does not release the GIL" if one.holds else ""
        return f"{'loops' if one.circles else 'computes'} at {position.where}{_source(position)}{holds}"
    return position.shown + (_source(position) if position.kind in _SHOW_SOURCE else "")


def _source(position: Position) -> str:
    """Return the line of code in brackets, if it could be read."""
    line = position.frame.source if position.frame else ""
    return f' ("{printable(line, 80)}")' if line else ""


_SHOW_SOURCE = frozenset({Kind.CODE, Kind.SLEEP, Kind.LOCK, Kind.CHILD})


def _on_file(position: Position) -> str:
    return f"waits for a file system{', in ' + position.name if position.name else ''}"


def _stopped(one: _Rank) -> Clue:
    rank, traced = one.rank, one.stopped == "t"
    return Clue(
        "stacks", "rank_stopped", Grade.CERTAIN, f"{rank.shown} is stopped (state {one.stopped})", _numbers([one]),
        (rank.node,), still=False, fix="" if traced else "kill -CONT PID",
        next=("grep TracerPid /proc/PID/status",) if traced else (),
    )  # fmt: skip


# All ranks


def _leads(leads: Sequence[_Rank], waiting: Sequence[_Rank], job: Job) -> Iterator[Clue]:
    """Yield a clue for each place where ranks are that others wait for."""
    waited_for = any(one.still or one.spins for one in waiting)
    all_wait = waited_for and len(waiting) + len(leads) == len(job.ranks)
    groups = sorted(_by_place(leads), key=len)
    usual = groups[-1] if not waiting and 2 * len(groups[-1]) > len(job.ranks) else None
    for group in groups:
        first, slow = group[0], False
        if not (all_wait or all(one.still and not one.spins for one in group)):
            continue
        if any(one.loader_works for one in group) and not all_wait:
            slow = len(group) == len(job.ranks)
            if not slow:
                continue
        by_itself = not waiting and (group is usual or not usual)
        if by_itself and first.position.kind not in _WHEN_ALL_ARE_THERE and not first.owner:
            continue
        fault = _fault(first)
        grade = fault.grade if waited_for or first.position.kind in _SURE else min(fault.grade, Grade.POSSIBLE)
        text = f"{_named(group)} {_doing(first)}{fault.detail}{_while(waiting)}"
        blamed = [*group, *(one.holder for one in group[:1] if one.holder)]
        yield Clue(
            "stacks", fault.cause, grade, text, _numbers(blamed), _nodes(blamed), still=not slow, slow=slow,
            works=fault.works, others=fault.others, meaning=fault.meaning, fix=fault.fix,
            next=(f"py-spy dump --pid {first.rank.pid}",),
        )  # fmt: skip


def _late(at_work: Sequence[_Rank], waiting: Sequence[_Rank]) -> Iterator[Clue]:
    """Yield a clue for ranks that work while all others wait for them: what they do may be right, and take its time."""
    if len(at_work) <= len(waiting) and all(one.still or one.spins for one in waiting):
        for one in at_work:
            text = f"{one.rank.shown} works, last seen at {one.position.where}{_while(waiting)}"
            known = one.position.kind in _KNOWN
            doing = "it " + (one.position.kind.value.format(one.position.name) if known else "runs its own code")
            fault = _at_work(one, _FAULTS[one.position.kind] if known else _Fault(_LATE), doing)
            yield Clue(
                "stacks", fault.cause, fault.grade, text, _numbers([one]), _nodes([one]), works=True,
                meaning=fault.meaning, next=(f"py-spy dump --pid {one.rank.pid}",),
            )  # fmt: skip


_MANY, _MOST_ODD = 6, 2  # looks


def _slow(judged: Sequence[_Rank], job: Job) -> Iterator[Clue]:
    """Yield the rank that was at work at nearly each look, while the others nearly each time waited."""
    if len(judged) < max(2, len(job.ranks)) or min(len(one.waited) for one in judged) < _MANY:
        return
    late = [one for one in judged if sum(one.waited) <= 1]
    odd = max((sum(not waits for waits in one.waited) for one in judged if one not in late), default=_MANY)
    # All went through a step meanwhile: else it may have begun something that is done once, such as an evaluation.
    steps = all(one.woke or one.moved for one in judged)
    if len(late) == 1 and sum(late[0].waited) + odd <= _MOST_ODD and steps and late[0].position.kind not in _KNOWN:
        one, looks = late[0], len(late[0].waited)
        text = (
            f"{one.rank.shown} was at work at {looks - sum(one.waited)} of {looks} looks, last seen at"
            f" {one.position.where}{_source(one.position)}, while each of the others waited at {looks - odd} or more"
        )
        loads = one.position.kind is Kind.LOADER
        yield Clue(
            "stacks", "data_loader" if loads else _LATE, Grade.LIKELY, text, _numbers([one]), _nodes([one]),
            still=False, slow=True, others=(_LATE,) if loads else (), next=(f"py-spy dump --pid {one.rank.pid}",),
        )  # fmt: skip


def _while(waiting: Sequence[_Rank]) -> str:
    return f", while {len(waiting)} other rank{'s wait' if len(waiting) > 1 else ' waits'}" if waiting else ""


_SURE = frozenset({Kind.STORAGE, Kind.PERSON, Kind.OUTPUT})
_BETWEEN_TWO = frozenset(
    {"send", "recv", "isend", "irecv", "batch_isend_irecv", "wait", "wait()", "FSDP", "a collective"}
)
_SENDS, _RECEIVES = frozenset({"send", "ssend", "bsend", "rsend"}), frozenset({"recv"})
_LATER = frozenset({"DDP's broadcast of buffers"})  # of the next step, where one rank is through with the last one


def _divergence(waiting: Sequence[_Rank], job: Job) -> Iterator[Clue]:
    """Yield a clue where all ranks wait for others, and not all in the same collective."""
    groups = sorted(_by_place([one for one in waiting if one.position.kind is not Kind.GPU]), key=len)
    if len(groups) < 2 or not all(one.still or one.spins for one in waiting):  # noqa: PLR2004  nothing differs
        if groups and all(one.still or one.spins for one in waiting):
            yield from _between_two(waiting, job)
        return
    if found := [*_in_store(waiting), *_between_two(waiting, job), *_in_ring(waiting)]:
        yield from found
        return
    operations = {"backward()" if one.position.kind is Kind.BACKWARD else one.position.name for one in waiting}
    names = {one.position.name.lower() for one in waiting}
    others, meaning = ("network_stalled", _LATE), ""
    odd = [one for group in groups[:-1] for one in group]
    blamed = odd if 2 * len(groups[-1]) > len(waiting) else []
    communicators = {_communicator(one) for one in waiting} - {""}
    if operations <= _BETWEEN_TWO or names & _BETWEEN_TWO:
        grade = Grade.POSSIBLE  # pipelines: each stage waits in another call
    elif len(operations) > 1 and not operations <= _LATER | {"backward()"}:
        grade = Grade.LIKELY
        meaning = "the ranks did different numbers of steps, or took different branches: they wait in other collectives"
        if called := OF_ALL & operations:
            meaning = f"not all ranks called {min(called)}, as all ranks of the job have to"
    elif len(operations) == 1 and len(communicators) > 1:
        grade = Grade.LIKELY
        meaning = f"the ranks wait in {min(operations)} of different communicators: {', '.join(sorted(communicators))}"
    else:
        grade = Grade.POSSIBLE
    places = "; ".join(
        f"{_named(group)} {group[0].position.shown}{_source(group[0].position) if communicators else ''}"
        for group in reversed(groups[-_MOST_PLACES:])
    )
    rendezvous = any(one.position.kind is Kind.RENDEZVOUS for one in waiting)
    yield Clue(
        "stacks", "rendezvous_misconfig" if rendezvous else "collective_mismatch",
        Grade.POSSIBLE if rendezvous else grade, f"the ranks wait in different places: {places}",
        _numbers(blamed), _nodes(blamed), others=others, meaning="" if rendezvous else meaning,
    )  # fmt: skip


def _in_store(waiting: Sequence[_Rank]) -> Iterator[Clue]:
    """Yield a clue for ranks that wait for a key in the store, while the others are in a collective with them."""
    group = [one for one in waiting if one.position.name == STORE]
    rest = [one for one in waiting if one not in group]
    if group and rest and all(one.position.kind in (Kind.COLLECTIVE, Kind.BACKWARD) for one in rest):
        text = f"{_named(group)} waits for a key in the store at {group[0].position.where}{_source(group[0].position)}"
        yield Clue(
            "stacks", "deadlock", Grade.LIKELY, text + _while(rest), _numbers(group), _nodes(group),
            meaning="a rank waits for a key in the store that no rank has set; the others wait for the rank",
        )  # fmt: skip


# dist.all_reduce(x, group=self.groups[0]) | dist.barrier(pair_ab)
_OF_GROUP = expression(r"\bgroup=([\w.\[\]]{1,80})|\bbarrier\(([\w.\[\]]{1,80})\)")


def _in_ring(waiting: Sequence[_Rank]) -> Iterator[Clue]:
    """Yield a clue where each rank waits in a collective of another group, so that no group is complete."""
    names: dict[str, _Rank] = {}
    for one in waiting:
        hit = _OF_GROUP.search(one.position.frame.source) if one.position.frame else None
        if hit and one.position.kind is Kind.COLLECTIVE:
            names.setdefault(hit[1] or hit[2], one)
    if len(names) == len(waiting) > 2:  # noqa: PLR2004  two groups need not be a ring
        where = ", ".join(f"{one.rank.shown} in that of {name}" for name, one in list(names.items())[:_MOST_PLACES])
        yield Clue(
            "stacks", "deadlock", Grade.LIKELY, f"each rank waits in a collective of another group: {where}",
            _numbers(waiting), _nodes(waiting), others=("collective_mismatch",),
            meaning="ranks wait for each other in a ring: each is in a collective of another group, and none is whole",
        )  # fmt: skip


def _between_two(waiting: Sequence[_Rank], job: Job) -> Iterator[Clue]:
    """Yield a clue where ranks send to or receive from each other, and what one does is not what another waits for."""
    sends, receives = ([one for one in waiting if one.position.name.lower() in names] for names in (_SENDS, _RECEIVES))
    two = [*sends, *receives]
    sure = all(one.position.kind in (Kind.COLLECTIVE, Kind.BACKWARD) for one in waiting)
    sure = sure and not any(one.position.name in _BETWEEN_TWO for one in waiting if one not in two)
    if len(two) < 2 or not sure:  # noqa: PLR2004  it takes two
        return
    messages = {one.rank.rank: _message(one, job) for one in two if one.rank.rank is not None}
    cause, blamed, meaning = "collective_mismatch", two, _unlike(sends, receives, messages)
    if not sends or not receives:
        circle = _circle({rank: message.peer for rank, message in messages.items()})
        # Where it is all ranks of the job there is nobody else, whomever they wait for.
        alone = len(two) == len(job.ranks) and not circle
        blamed = two if alone else [one for one in two if one.rank.rank in circle]
        does, lacks = ("receive", "sends") if receives else ("send", "receives")
        cause = "deadlock"
        meaning = f"ranks wait for each other: each waits to {does}, and none {lacks}" if blamed else ""
    if meaning:
        places = (f"{one.rank.shown} {one.position.shown}{_source(one.position)}" for one in blamed[:_MOST_PLACES])
        yield Clue(
            "stacks", cause, Grade.LIKELY, "; ".join(places), _numbers(blamed), _nodes(blamed),
            others=("network_stalled",), meaning=meaning,
        )  # fmt: skip


def _message(one: _Rank, job: Job) -> Message:
    line = one.position.frame.source if one.position.frame else ""
    return message_of(line, one.position.name, one.rank.rank, job.size)


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


def _unlike(sends: Sequence[_Rank], receives: Sequence[_Rank], messages: Mapping[int, Message]) -> str:
    """Return in what a send and the receive that waits for it differ, as far as their code says it."""
    for sender, receiver in ((one.rank.rank, other.rank.rank) for one in sends for other in receives):
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


def _communicator(one: _Rank) -> str:
    """Return how the code names the communicator of an MPI call, such as "PAIR"; "" where it names none."""
    if one.position.kind is not Kind.COLLECTIVE or not one.position.frame:
        return ""
    for name, function in _OF_COMMUNICATOR.findall(one.position.frame.source):
        if function == one.position.name and (function[0].isupper() or re.search(r"(?i)(?:comm|world)$", name)):
            return str(name)
    return ""


_MOST_PLACES = 4


def _scene(waiting: Sequence[_Rank], of: int) -> Clue:
    """Return the echo: where the ranks are that wait for others."""
    group = max(_by_place(waiting), key=len)
    text = f"{len(waiting)} of {of} ranks wait for others: {_named(group)} {group[0].position.shown}"
    return Clue("stacks", "slow_rank_timeout", Grade.ECHO, text, others=("network_stalled", "rank_crashed"))


def _by_place(ranks: Iterable[_Rank]) -> list[list[_Rank]]:
    """Return the ranks that do the same at the same place, together."""
    groups: dict[object, list[_Rank]] = defaultdict(list)
    for one in ranks:
        position = one.position
        name = "" if position.kind is Kind.STORAGE else position.name
        groups[(position.kind, name, position.where, bool(one.owner))].append(one)
    return list(groups.values())


def _numbers(ranks: Iterable[_Rank]) -> tuple[int, ...]:
    return tuple(one.rank.rank for one in ranks if one.rank.rank is not None)


def _nodes(ranks: Iterable[_Rank]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.rank.node for one in ranks))


def _named(ranks: Sequence[_Rank]) -> str:
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
