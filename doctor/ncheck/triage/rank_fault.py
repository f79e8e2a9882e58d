"""What is wrong with one rank that others wait for: the cause, how sure it is, and the words for people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable
from ncheck.triage.certainty import Grade
from ncheck.triage.positions import BUILD, DESTROYS, PATTERN, Kind
from ncheck.triage.rank_state import RankState, activity_of, worker_place, worker_works


@dataclass(frozen=True)
class Fault:
    """What is wrong with a rank. `detail` follows the words for what it does; `works`: it works, which takes its time.

    The rest is as in Clue.
    """

    cause: str
    grade: Grade = Grade.LIKELY
    others: tuple[str, ...] = ()
    meaning: str = ""
    fix: str = ""
    detail: str = ""
    works: bool = False


SLOW_RANK = "slow_rank"
# Work that takes its time, and ends.
LONG_WORK = frozenset({
    Kind.CHECKPOINT, Kind.LOADING, Kind.COMPILING, Kind.DOWNLOADING, Kind.IMPORTING, Kind.EVALUATION,
})  # fmt: skip
_FAULTS: Mapping[Kind, Fault] = {
    Kind.STORAGE: Fault("storage_hang", others=("disk_full",)),
    Kind.CHECKPOINT: Fault("checkpoint_write", others=("storage_hang", "disk_full")),
    Kind.LOCK: Fault("deadlock", others=("software_bug",)),
    Kind.PERSON: Fault(
        "rank_stopped", Grade.CERTAIN, meaning="a rank waits for a person, in a debugger or for input",
        fix="export PYTHONBREAKPOINT=0",
    ),
    Kind.OUTPUT: Fault("deadlock", meaning="a rank cannot write its output: the program that reads it has stopped"),
    Kind.CHILD: Fault(SLOW_RANK, meaning="a rank waits for a program that it started; the others wait for the rank"),
    Kind.SERVICE: Fault(
        "deadlock", Grade.POSSIBLE, (SLOW_RANK,), "a rank waits in its event loop, and the others wait for the rank"
    ),
    Kind.SLEEP: Fault(SLOW_RANK, others=("deadlock",), meaning="a rank sleeps, and the others wait for it"),
    Kind.ENDING: Fault(
        "rank_crashed", others=("collective_mismatch",), meaning="a rank is ending, and the others still wait for it"
    ),
    Kind.COMPILING: Fault(SLOW_RANK, meaning="a rank still compiles; the others wait for it"),
    Kind.LOADING: Fault(
        SLOW_RANK, others=("storage_hang",), meaning="a rank still loads a checkpoint; the others wait"
    ),
    Kind.DOWNLOADING: Fault(
        SLOW_RANK, others=("firewall",),
        meaning="a rank waits for a server outside the job; the others wait for the rank",
    ),
    Kind.IMPORTING: Fault(
        SLOW_RANK, others=("storage_hang",), meaning="a rank still imports modules; the others wait"
    ),
    Kind.EVALUATION: Fault(
        SLOW_RANK, others=("collective_mismatch",), meaning="a rank evaluates on its own; the others wait for it"
    ),
}  # fmt: skip


def fault_of(state: RankState) -> Fault:  # noqa: PLR0911  one for each kind
    """Return what is wrong with a rank that is where others wait for it."""
    kind = state.position.kind
    if state.gil_owner:
        return Fault("deadlock", meaning="a thread of a rank keeps the interpreter's lock (GIL), so nothing else runs")
    if kind is Kind.LOADER:
        return _loader_fault(state)
    if kind is Kind.CODE:
        return _code_fault(state)
    if kind is Kind.CHILD:
        return _child_fault(state)
    if kind is Kind.ENDING and state.position.name == DESTROYS:
        meaning = "the ranks did different numbers of steps: a rank is done and ends, the others still wait for it"
        return Fault("collective_mismatch", others=("rank_crashed",), meaning=meaning)
    if kind in LONG_WORK and (state.spins or not state.still):
        return work_of(state)
    if kind is Kind.LOCK and state.position.name:
        return _file_lock_fault(state)
    if kind is Kind.LOCK and (other := state.other_lock):
        return replace(_FAULTS[kind], detail=f"; another thread {other.shown}")
    return _FAULTS[kind]


def work_of(state: RankState) -> Fault:
    """Return what a rank works at that the others wait for: this may be right, and take its time."""
    position = state.position
    if position.kind in LONG_WORK:
        return _at_work(state, _FAULTS[position.kind], f"it {position.kind.value.format(position.name)}")
    return _at_work(state, Fault(SLOW_RANK, others=("deadlock",)), "it runs its own code")


def _at_work(state: RankState, fault: Fault, doing: str) -> Fault:
    name = "a process" if state.rank.rank is None else f"rank {state.rank.rank}"
    meaning = f"the others wait for {name}, which works: {doing}"
    return replace(fault, grade=Grade.POSSIBLE, meaning=meaning, works=True)


def _code_fault(state: RankState) -> Fault:
    """Return how sure it is that code comes to no end."""
    if state.never_ends:
        in_pattern = "a regular expression of a rank's does not come to an end"
        in_loop = "a rank loops in its own code, and the others wait for it"
        meaning = in_pattern if state.position.name == PATTERN else in_loop
        return Fault("deadlock", others=(SLOW_RANK,), meaning=meaning)
    if state.still or state.activity.busy is None:
        return Fault("deadlock", Grade.LIKELY if state.still else Grade.POSSIBLE, (SLOW_RANK,))
    return work_of(state)


def _child_fault(state: RankState) -> Fault:
    """Return whether the program that a rank waits for works."""
    fault, children = _FAULTS[Kind.CHILD], state.children
    names = {child.pid: printable(child.name) for child in state.rank.children}
    activities = [(child.pid, activity_of(child, child.pid)) for child in children]
    working = [(one.busy or 0.0, pid) for pid, one in activities if one.awake or one.computes]
    if not working and not state.lost_children:
        last = children[-1].pid if children else 0
        return replace(fault, detail=f": {names.get(last, '')} (pid {last})" if last else "")
    _, pid = max(working, default=(0.0, 0))
    detail = f": {names.get(pid, '')} (pid {pid}) works" if pid else ": it starts others"
    return replace(_at_work(state, fault, "a program that it started computes"), detail=detail)


def _file_lock_fault(state: RankState) -> Fault:
    """Return who holds the lock of a file that a rank waits for."""
    lock, holder, name, node = state.lock, state.holder, state.position.name, state.rank.node
    if holder:
        file = printable(name if name in holder.held else holder.held[0], 200)
        holds = f"{holder.shown} holds the lock on {file} and {holder.position.shown}"
        meaning = f"ranks wait for each other: {holds}, which another rank never reaches"
        return Fault("deadlock", meaning=meaning, detail=f"; {holds}")
    if lock and lock.file:
        file = printable(lock.file, 200)
        return Fault(
            "deadlock", meaning=f"a rank waits for the lock file {file}, which no process holds",
            fix=f"rm {shlex.quote(lock.file)}", detail=f": {file}, which no process of {node} has open",
        )  # fmt: skip
    if name == BUILD:
        return _at_work(
            state, Fault(SLOW_RANK, others=("deadlock",)), "it waits for a build of torch's extensions"
        )  # fmt: skip
    owner = f"process {lock.pid} ({printable(lock.name, 80)}) on {node}" if lock and lock.pid else ""
    return Fault(
        "deadlock", meaning=f"a rank waits for the lock on a file, which {owner or 'another process'} holds",
        fix=f"ps -o pid,user,etime,args -p {lock.pid}" if lock and lock.pid else "cat /proc/locks",
        detail=f", which {owner} holds" if owner else ", which another process holds: on this node or another one",
    )  # fmt: skip


def _loader_fault(state: RankState) -> Fault:
    """Return why a data loader brings nothing: what its workers are at."""
    fault, children = Fault("data_loader", others=("storage_hang",)), state.children
    for child in children:
        named = f"; its worker (pid {child.pid})"
        if child.after and (letter := child.after[0].state) in "Tt":
            detail = f"{named} is stopped (state {letter})"
            return Fault("data_loader", Grade.CERTAIN, fix=f"kill -CONT {child.pid}", detail=detail)
        blocked = activity_of(child, child.pid).blocked
        if blocked and blocked.kind is Kind.STORAGE:
            return Fault("storage_hang", others=("data_loader",), detail=f"{named} {blocked.shown}")
    if dead := [child.pid for child in state.rank.children if child.state == "Z"]:
        return replace(fault, others=("host_memory",), detail=f"; its worker (pid {dead[0]}) is dead")
    workers = [(child, place) for child in children if (place := worker_place(child))]
    for child, place in workers:
        if place.own and place.frame:
            does = "works" if worker_works(child) else "is"
            return replace(fault, detail=f"; its worker (pid {child.pid}) {does} at {place.where}{place.source}")
    if workers:
        return replace(fault, others=("software_bug",), detail=f"; its {len(workers)} workers wait for work themselves")
    return fault
