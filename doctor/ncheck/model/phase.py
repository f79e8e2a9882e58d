"""A phase: what nodes are asked at the same time, after they have answered what came before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import JsonValue, Note, Reply, Source

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster


@dataclass(frozen=True)
class NotAsked:
    """A source that one node is not asked for, and why: it is noted with the node's answers (see Note)."""

    source: Source
    reason: str
    failed: bool = False
    remedy: str = ""
    asked: JsonValue = None

    @property
    def note(self) -> Note:
        return Note(self.reason, self.failed, self.remedy, self.asked)


@dataclass(frozen=True)
class Answered:
    """A reply that the local host already has: a program that ran here reported on the node."""

    source: Source
    reply: Reply


Question = Source | NotAsked | Answered
Questions = dict[str, tuple[Question, ...]]  # by node name


@dataclass(frozen=True)
class Phase:
    """Questions that can be asked at the same time.

    `nodes` are those that may be asked. `questions` makes them from what is known when the phase begins and from the
    seconds that it may take. `until` is the share of the run's deadline after which the next phase no longer waits for
    nodes that are still busy: these go on, and have no part in what follows. A phase with `seconds` (a step of the
    probe) may take that long from its beginning, beyond the deadline, and waits only for the nodes that it asks. These
    wait for one another, so all are asked at once, unless `meeting` is false. A phase without a name is not shown.
    """

    stage: str
    nodes: frozenset[str]
    questions: Callable[[Cluster, float], Questions] | None
    until: float = 1.0
    seconds: float | None = None
    meeting: bool = True
