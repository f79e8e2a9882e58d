"""What one rank is doing: where its code was at each look, and what the kernel says of its thread meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.model.job import RankProcess
from ncheck.triage.facts.stacks import FileLock, ProcessStacks, PythonThread, StacksFacts, Task
from ncheck.triage.positions import (
    A_FILE,
    PATTERN,
    WAITS_FOR_RANKS,
    Kind,
    Position,
    in_worker,
    of_task,
    position_of,
)

# A thread that waits in one call sleeps once. One that looks again each second or so is still, too; one that went to
# sleep more often, or computed, may have done its work between two looks.
_POLLS = 8
_OFTEN = 50
_BUSY, _HALF, _SPINS = 0.05, 0.5, 0.9  # shares of the time that the thread computed


@dataclass(frozen=True)
class Activity:
    """What the kernel says of one thread between the first and the last look.

    busy     the share of the time that it computed; None where the kernel does not say it
    sleeps   how often it went to sleep
    blocked  what it waits for, if it waited for that all the time
    awake    it computed, or was ready to, all the time, as on a busy machine
    """

    busy: float | None = None
    sleeps: float = math.inf
    blocked: Position | None = None
    awake: bool = False

    @property
    def computes(self) -> bool:
        return (self.busy or 0.0) >= _BUSY

    @property
    def spins(self) -> bool:
        """Whether it computed all the time, as far as there was a CPU for it."""
        return self.busy is not None and (self.busy >= _SPINS or self.awake)


class ThreadChange(Enum):
    """What changed between the looks at a thread."""

    UNKNOWN = "it was at the same place, and may have done its work in between"
    STILL = "it did nothing"
    LOOPS = "only the line of its innermost function changed"
    MOVED = "it was at several places, or went on and came back"


@dataclass(frozen=True)
class RankState:
    """What one rank is doing.

    process   whose stacks these are: the rank's own, or those of the program that it started to do the work
    facts     the stacks of its node
    position  what the thread that does its work is at
    change    what changed between the looks
    activity  what the kernel says of that thread
    acting    the thread itself; None where only the kernel says what the rank is at
    threads   its main thread, or that one, at each look
    at_work   it waited for other ranks at no look
    holder    the rank that holds the file lock that it waits for, and waits for it in turn
    """

    rank: RankProcess
    process: ProcessStacks
    facts: StacksFacts
    position: Position
    change: ThreadChange = ThreadChange.STILL
    activity: Activity = Activity()
    acting: PythonThread | None = None
    threads: tuple[PythonThread, ...] = ()
    at_work: bool = False
    holder: RankState | None = None

    @property
    def shown(self) -> str:
        return self.rank.shown

    @property
    def still(self) -> bool:
        return self.change is ThreadChange.STILL

    @property
    def moved(self) -> bool:
        return self.change is ThreadChange.MOVED

    @property
    def spins(self) -> bool:
        return self.activity.spins

    @property
    def stands(self) -> bool:
        """Whether it goes on with nothing: it sleeps, or computes at one place."""
        return self.still or self.spins

    @property
    def woke(self) -> bool:
        """Whether it slept and woke up between the looks."""
        return 1 < self.activity.sleeps < math.inf

    @property
    def waits(self) -> bool:
        """Whether it waits for other ranks."""
        return self.position.kind in WAITS_FOR_RANKS and not self.gil_owner and not self.moved

    @cached_property
    def waited(self) -> tuple[bool, ...]:
        """Whether it waited for other ranks, at each look."""
        computes = (self.activity.busy or 0.0) > _HALF
        kinds = (position_of(thread.frames).kind for thread in self.threads)
        return tuple(kind in WAITS_FOR_RANKS and not (kind is Kind.BACKWARD and computes) for kind in kinds)

    @property
    def never_ends(self) -> bool:
        """Whether it computes, and its code shows that this comes to no end: it matches a pattern, or loops and calls
        nothing.
        """
        if self.position.kind is not Kind.CODE or not self.spins:
            return False
        in_pattern = self.position.name == PATTERN and self.change is not ThreadChange.LOOPS
        lines = [thread.frames[0].source for thread in self.threads if thread.frames]
        return in_pattern or (self.holds_gil and _is_endless(lines))

    @property
    def stopped(self) -> str:
        """The letter of its state, if it is stopped or traced, else ""."""
        states = {tasks[0].state for tasks in (self.process.before, self.process.after) if tasks}
        return states.pop() if len(states) == 1 and states <= {"T", "t"} else ""

    @cached_property
    def gil_owner(self) -> PythonThread | None:
        """The other thread that holds the interpreter's lock (GIL) all the time."""
        return None if self.holds_gil else self._gil

    @cached_property
    def holds_gil(self) -> bool:
        """Whether it holds the interpreter's lock itself."""
        if self._gil and self.acting and (self._gil.name, self._gil.number) == (self.acting.name, self.acting.number):
            return True
        return self.change is ThreadChange.LOOPS and all(thread.gil for thread in self.threads)

    @cached_property
    def _gil(self) -> PythonThread | None:
        """The thread that held the interpreter's lock at each look, at the same place."""
        if not self.threads or not isinstance(self.process.looks, tuple):
            return None
        owners = [next((thread for thread in look if thread.gil), None) for look in self.process.looks]
        last = owners[-1]
        same = last and all(one and (one.name, one.frames) == (last.name, last.frames) for one in owners)
        return last if same else None

    # What it waits for

    @property
    def lock(self) -> FileLock | None:
        """Who holds the lock on a file that it waits for."""
        return self.facts.locks.get(self.process.pid)

    @property
    def held(self) -> tuple[str, ...]:
        """The lock files that it has open."""
        return self.facts.held.get(self.process.pid, ())

    @property
    def other_lock(self) -> Position | None:
        """Where another of its threads waits for a lock in the user's own code."""
        if not self.acting or not isinstance(self.process.looks, tuple):
            return None
        others = (thread for thread in self.process.looks[-1] if thread.name != self.acting.name)
        places = (position_of(thread.frames) for thread in others)
        return next((place for place in places if place.kind is Kind.LOCK and place.own), None)

    @property
    def children(self) -> tuple[ProcessStacks, ...]:
        found = (self.facts.of(child.pid) for child in self.rank.children)
        return tuple(child for child in found if child and not child.gone)

    @property
    def lost_children(self) -> bool:
        """Whether children of the rank itself ended between the looks."""
        found = (self.facts.of(child.pid) for child in self.rank.children)
        return self.process.pid == self.rank.pid and any(child and child.gone for child in found)

    @property
    def loader_works(self) -> bool:
        """Whether it waits for its data loader, and that has not stopped."""
        return self.position.kind is Kind.LOADER and any(map(worker_works, self.children))

    @property
    def doing(self) -> str:
        """What it does, for people: this follows the rank's name."""
        if self.gil_owner:
            place = position_of(self.gil_owner.frames)
            return f"does not release the GIL: its thread {self.gil_owner.name or 'without a name'} is at {place.where}"
        position, loops = self.position, self.change is ThreadChange.LOOPS
        if position.kind is Kind.CODE and (loops or self.spins or self.holds_gil):
            holds = ", and does not release the GIL" if self.holds_gil else ""
            return f"{'loops' if loops else 'computes'} at {position.where}{position.source}{holds}"
        return position.shown + (position.source if position.kind in _SHOW_SOURCE else "")


_SHOW_SOURCE = frozenset({Kind.CODE, Kind.SLEEP, Kind.LOCK, Kind.CHILD})


def states_of(ranks: Sequence[RankProcess], facts: Mapping[str, StacksFacts]) -> list[RankState]:
    """Return the state of each rank of which the stacks or the kernel say it. `facts` by node."""
    states = [state for rank in ranks if rank.node in facts and (state := _state_of(rank, facts[rank.node]))]
    usual = 2 * sum(state.position.kind is Kind.CHILD for state in states) > len(ranks)
    states = [_inner(state, usual=usual) for state in states]
    return [_with_holder(state, states) for state in states]


def _state_of(rank: RankProcess, facts: StacksFacts) -> RankState | None:
    process = facts.of(rank.pid)
    return _state(rank, process, facts) if process and not process.gone else None


def _inner(state: RankState, *, usual: bool) -> RankState:
    """Return the program that does the work, for a rank that only starts it, as is `usual` or the program shows it."""
    if state.position.kind is not Kind.CHILD:
        return state
    programs = (child for child in state.children if not worker_place(child))
    inner = (found for child in programs if (found := _state(state.rank, child, state.facts)))
    return next((found for found in inner if found.position.own and (usual or found.waits)), state)


def _with_holder(state: RankState, states: Sequence[RankState]) -> RankState:
    """Return a rank that waits for the lock on a file with the rank that holds it, and waits for others meanwhile."""
    if state.position.kind is not Kind.LOCK or not state.position.name:
        return state
    lock, waiting = state.lock, [other for other in states if other.waits and other.held]
    node = state.rank.node
    by_pid = [other for other in waiting if lock and (other.rank.node, other.rank.pid) == (node, lock.pid)]
    by_file = [other for other in waiting if state.position.name in other.held]
    alone = waiting if state.position.name == A_FILE and len(waiting) == 1 else []
    return replace(state, holder=next(iter((*by_pid, *by_file, *alone)), None))


def _state(rank: RankProcess, process: ProcessStacks, facts: StacksFacts) -> RankState | None:
    """Return the state of a rank by the stacks of this process, or as far as the kernel says it."""
    looks = process.looks if isinstance(process.looks, tuple) else ()
    if len(looks) < 2:  # noqa: PLR2004  one look shows no motion
        return _by_kernel(rank, process, facts)
    acting = _acting(process, looks[-1])
    activity = activity_of(process, process.pid if acting is main_thread(process, looks[-1]) else acting.number)
    threads = tuple(_same(acting, look, process) for look in looks)
    places = [position_of(thread.frames) for thread in threads]
    position = places[-1]
    if process.native:
        native = position_of(_same(acting, process.native, process).frames)
        position = replace(position, kind=native.kind, name=native.name) if native.kind in WAITS_FOR_RANKS else position
    if activity.blocked and position.kind not in (*WAITS_FOR_RANKS, Kind.PERSON):
        position = replace(position, kind=activity.blocked.kind, name=activity.blocked.name)
    at_work = not any(place.kind in WAITS_FOR_RANKS for place in places)
    if position.kind is Kind.BACKWARD and (activity.busy is None or activity.computes):
        position, at_work = replace(position, kind=Kind.CODE, name=""), True
    change = _change(places, activity, at_work=at_work)
    return RankState(rank, process, facts, position, change, activity, acting, threads, at_work)


def _change(places: Sequence[Position], activity: Activity, *, at_work: bool) -> ThreadChange:
    if len({(place.kind, place.path) for place in places}) > 1:
        waited = any(place.kind in WAITS_FOR_RANKS for place in places)
        functions = {(*(step[:2] for step in place.path[:1]), *place.path[1:]) for place in places}
        return ThreadChange.LOOPS if not waited and len(functions) == 1 else ThreadChange.MOVED
    # What waits at the same place at each look, and both computed and slept often, went on meanwhile and came back.
    if not at_work and activity.sleeps > _OFTEN and activity.computes and (activity.busy or 0.0) < _SPINS:
        return ThreadChange.MOVED
    idle = activity.busy is not None and not activity.computes and not activity.awake
    return ThreadChange.STILL if idle and activity.sleeps <= _POLLS else ThreadChange.UNKNOWN


def _by_kernel(rank: RankProcess, process: ProcessStacks, facts: StacksFacts) -> RankState | None:
    """Return what is known of a rank without its stacks: what its main thread is blocked in."""
    activity = activity_of(process, process.pid)
    idle = activity.sleeps == 0 and activity.busy is not None and not activity.computes
    call = (process.after[0].call or process.after[0].wchan) if process.after else ""
    state = RankState(rank, process, facts, activity.blocked or Position(Kind.BLOCKED, call or "the kernel"))
    return state if idle or state.stopped else None


def activity_of(process: ProcessStacks, number: int | None) -> Activity:
    """Return what the kernel says of the thread with this number."""
    before, after = (_task(tasks, number) for tasks in (process.before, process.after))
    if before is None or after is None or process.seconds <= 0 or before.sleeps is None or after.sleeps is None:
        return Activity()
    sleeps = after.sleeps - before.sleeps
    same = (before.call, before.file) == (after.call, after.file) and sleeps == 0
    busy = (after.cpu - before.cpu) / process.seconds
    if before.delay is None or after.delay is None:
        awake = before.state == after.state == "R" and (sleeps == 0 or (sleeps <= _POLLS and busy >= _BUSY))
    else:
        awake = sleeps <= _POLLS and busy + (after.delay - before.delay) / process.seconds >= _SPINS
    return Activity(busy, sleeps, of_task(after) if same else None, awake)


def _task(tasks: Sequence[Task], number: int | None) -> Task | None:
    return next((task for task in tasks if task.number == number), None)


# x = x @ x | f(x) | for sample in samples: | [x * x for x in numbers], but not: while not free: | tries += 1
_COMES_TO_AN_END = expression(r"[(@]|\bfor\b")


def _is_endless(lines: Sequence[str]) -> bool:
    """Return whether these lines call nothing and go through nothing that has an end."""
    return bool(lines) and all(line and not _COMES_TO_AN_END.search(line) for line in lines)


# Threads

_NO_THREAD = PythonThread("", ())
_LEAVES_TO_OTHERS = frozenset({Kind.ENDING, Kind.SERVICE, Kind.BACKWARD, Kind.LOCK})
_JOINS = frozenset({"join", "_wait_for_tstate_lock"})


def main_thread(process: ProcessStacks, look: Sequence[PythonThread]) -> PythonThread:
    """Return the main thread: by its number, else by its name; the first that was started comes last."""
    by_number = (thread for thread in look if thread.number == process.pid)
    by_name = (thread for thread in look if thread.name == "MainThread")
    return next(by_number, None) or next(by_name, None) or (look[-1] if look else _NO_THREAD)


def _acting(process: ProcessStacks, look: Sequence[PythonThread]) -> PythonThread:
    """Return the thread that does the rank's work: the main thread, or the one that this waits for."""
    main = main_thread(process, look)
    kind = position_of(main.frames).kind
    joins = kind is not Kind.LOCK or (main.frames and main.frames[0].function.rpartition(".")[2] in _JOINS)
    if kind in _LEAVES_TO_OTHERS and joins:
        for thread in look:
            if thread is not main and position_of(thread.frames).kind in (Kind.COLLECTIVE, Kind.RENDEZVOUS):
                return thread
    return main


def _same(acting: PythonThread, look: Sequence[PythonThread], process: ProcessStacks) -> PythonThread:
    """Return the same thread in another look."""
    main = main_thread(process, look)
    if acting.number == process.pid or acting.name in ("MainThread", ""):
        return main
    return next((it for it in look if (it.name, it.number) == (acting.name, acting.number)), main)


# Workers of a data loader


def worker_place(process: ProcessStacks) -> Position | None:
    """Return what a worker of a data loader is at; None for any other process."""
    if not isinstance(process.looks, tuple):
        return None
    frames = main_thread(process, process.looks[-1]).frames
    return position_of(frames) if in_worker(frames) else None


def worker_works(process: ProcessStacks) -> bool:
    """Whether a worker of a data loader was seen to do something between the looks."""
    if not isinstance(process.looks, tuple) or not worker_place(process):
        return False
    places = {position_of(main_thread(process, look).frames).path for look in process.looks}
    activity = activity_of(process, process.pid)
    return len(places) > 1 or activity.computes or _OFTEN < activity.sleeps < math.inf
