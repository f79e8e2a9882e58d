"""What one node's part in a step tells of its failure: whether it failed by itself, and whether it stood still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ncheck.facts.probe import Failure, Turn
from ncheck.triage import Confidence, Diagnosis, diagnose

# Seconds in which ranks are started and through with their first size, on a healthy cluster; more by so many ranks that
# must meet, and on CPUs, where a busy machine takes long to load a library.
ENOUGH, ENOUGH_ON_CPUS = 15.0, 60.0


_RANKS_A_SECOND = 20


_REPEATS = 10  # all-reduces of one size, at most


_SLOWER = 3.0  # so many times slower than its size makes it, a size has not stood still


# How far a rank had come, by the words of its step.
_COURSE = ("", "start", "libcuda", "libnccl", "init", "first all-reduce")


_ENDED_BY_OTHERS = frozenset({6, 15})  # SIGABRT and SIGTERM come after what ended another rank


_BUS_ERROR = 7


@dataclass(frozen=True)
class Account:
    """One node's failure. `said` is what triage makes of its words and its log, None where it makes nothing of them."""

    node: str
    turn: Turn
    failure: Failure
    said: Diagnosis | None

    @property
    def telling(self) -> bool:
        """Tell whether it failed by itself: the others' failure is not what it tells of."""
        return self.said is not None and not self.said.echo

    @property
    def stood_still(self) -> bool:
        """Tell whether it had time enough, and did not come on: a small budget is nobody's fault."""
        return self.failure.late and _idle(self.turn) > 0

    @property
    def course(self) -> int:
        """How far it came: of ranks that wait for each other, the one that came least far is waited for."""
        step = self.failure.step
        return _COURSE.index(step) if step in _COURSE else len(_COURSE)


def account(node: str, turn: Turn, failure: Failure) -> Account:
    """Return what a node tells of its failure."""
    found = _diagnosed((failure.words, *turn.log))
    best = found[0] if found else None
    if best is None or best.echo:
        best = _by_itself(failure, symptom=best) or best
    return Account(node, turn, failure, best)


@lru_cache(maxsize=2**14)  # each check that judges steps wants it, and a node may have told hundreds of lines
def _diagnosed(lines: tuple[str, ...]) -> tuple[Diagnosis, ...]:
    return diagnose(lines)


def _by_itself(failure: Failure, symptom: Diagnosis | None) -> Diagnosis | None:
    """Return what the failure says where the log says nothing: a signal, or words that triage does not know."""
    signal = -failure.code if failure.code is not None and failure.code < 0 else 0
    if signal and signal not in _ENDED_BY_OTHERS:
        return _signalled(signal, failure.words)
    if symptom or signal or failure.late or not failure.words:
        return None
    return Diagnosis("", failure.words, (failure.words,), Confidence.LOW, "")


def _signalled(signal: int, words: str) -> Diagnosis:
    told = (words,) if words else ()
    if signal == _BUS_ERROR:
        meaning = "a rank was ended by signal 7: it wrote to shared memory that the node has not"
        return Diagnosis("shm_too_small", meaning, told, Confidence.MEDIUM, "df -h /dev/shm", ("rank_crashed",))
    meaning = f"a rank was ended by signal {signal}"
    return Diagnosis("rank_crashed", meaning, told, Confidence.MEDIUM, "sudo journalctl -k -g 'oom|segfault|Xid'")


def _idle(turn: Turn) -> float:
    """Return the seconds that it had beyond what it may have needed: its start, its rows and the size after them."""
    if turn.seconds is None:
        return 0.0
    enough = ENOUGH_ON_CPUS if turn.step.means.on_cpus else ENOUGH
    spent = (turn.start or 0.0) + sum(_REPEATS * row.slowest for row in turn.rows)
    return turn.seconds - spent - _wanted(turn) - enough - turn.step.world / _RANKS_A_SECOND


def _wanted(turn: Turn) -> float:
    """Return the seconds that the next size may take, by the largest one that was measured."""
    largest = max(turn.rows, key=lambda row: row.size, default=None)
    if largest is None:
        return 0.0
    following = min((size for size in turn.step.sizes if size > largest.size), default=largest.size)
    return _SLOWER * _REPEATS * largest.slowest * following / max(1, largest.size)
