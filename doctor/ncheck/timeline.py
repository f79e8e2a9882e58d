"""Where the wall clock of a run went: its parts one after the other, and in each the node that answered last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from statistics import median_low
from typing import TYPE_CHECKING

from ncheck.facts.definition import (
    ASKING_PEERS,
    COLLECTING,
    LISTENING,
    LOOKING_AGAIN,
    MEASURING,
    ON_THIS_MACHINE,
    READING_FILES,
    TRYING_PLAN,
)
from ncheck.lazy_dataclass import dataclass
from ncheck.model.report import RunPart

if TYPE_CHECKING:
    from ncheck.model.evidence import Evidence

START, LOG_IN, SLURM, JUDGED = "start", "log in", "slurm", "judged"
WAITED = 2.0  # seconds after half of the nodes: whoever answers later made the others wait

# What people call a phase.
_PARTS = {
    COLLECTING: "questions",
    ON_THIS_MACHINE: "ssh from here",
    LISTENING: "between the nodes",
    ASKING_PEERS: "between the nodes",
    TRYING_PLAN: "between the nodes",
    READING_FILES: "files",
    MEASURING: "measured",
    LOOKING_AGAIN: "counters again",
}


@dataclass(frozen=True)
class _Came:
    """One node's answers: when they came, how long its login took, and its slowest question with its seconds."""

    at: float
    node: str
    login: float
    question: str
    seconds: float


class Stopwatch:
    """Takes the time of each part of a run as it ends. Times are in seconds; `before`: spent before this was made."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, before: float = 0.0) -> None:
        self.clock = clock
        self.began = self.ended = clock() - before
        self.dialled = self.began
        self.came: list[_Came] = []
        self.parts: dict[str, RunPart] = {}

    @property
    def seconds(self) -> float:
        """The seconds of all parts that have ended."""
        return self.ended - self.began

    @property
    def timeline(self) -> tuple[RunPart, ...]:
        return tuple(replace(part, seconds=round(part.seconds, 3)) for part in self.parts.values())

    def dial(self) -> None:
        """Note that the logins begin. What is made ready beside them is part of the start."""
        self.dialled = self.clock()

    def seen(self, evidence: Iterable[Evidence]) -> Iterator[Evidence]:
        """Note when each node's evidence comes, and pass it on."""
        for one in evidence:
            key, reply = max(one.replies.items(), key=lambda item: item[1].seconds, default=("", None))
            slowest = (key.partition(":")[2], reply.seconds) if reply else ("", 0.0)
            self.came.append(_Came(self.clock(), one.node, one.login.seconds, *slowest))
            yield one

    def lap(self, stage: str) -> None:
        """End a part of the run: a phase, by its stage, or one that has a name above."""
        now = self.clock()
        if stage == COLLECTING and LOG_IN not in self.parts:
            logged_in = self.dialled + max((one.login for one in self.came), default=0.0)
            self._add(RunPart(LOG_IN, min(now, max(self.ended, logged_in)) - self.ended))
        last = max(self.came, key=lambda one: one.at, default=None)
        late = {}
        if self.came:
            half = median_low(one.at for one in self.came)
            late = {one.node: round(one.at - half, 3) for one in self.came if one.at - half > WAITED}
        node, question, seconds = (last.node, last.question, last.seconds) if last else ("", "", 0.0)
        self._add(RunPart(_PARTS.get(stage, stage), now - self.ended, node, question, seconds, late))
        self.came.clear()

    def _add(self, part: RunPart) -> None:
        """Add a part, or more of one that there is: then that node is named that answered last in the longer one."""
        self.ended += part.seconds
        before = self.parts.get(part.part)
        if before:
            longer = max(part, before, key=lambda one: one.seconds)
            part = replace(longer, seconds=before.seconds + part.seconds, late={**before.late, **part.late})
        self.parts[part.part] = part
