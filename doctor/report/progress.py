"""Which node is where while a run goes on: what both observers keep."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from doctor.report import text as words

if TYPE_CHECKING:
    from doctor.model.evidence import Login
    from doctor.model.node import Node

FAILURES_SHOWN = 20
UNRECORDED = "not recorded"
LONG = ("measuring ", "running ")
FAILED = "failed"
WAITING = "waiting"
DONE = "done"


class Progress:
    """Which node is where, shared by both observers. Every method is called from many threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stages: dict[str, str] = {}
        self.failures = 0
        self.lost_recordings = 0
        self.told: set[str] = set()

    def begin(self, nodes: tuple[Node, ...]) -> None:
        with self.lock:
            self.stages = {node.name: WAITING for node in nodes}

    def move(self, node: str, stage: str) -> None:
        """Put a node into a stage. One whose login failed stays failed, whatever else is told of it."""
        with self.lock:
            if self.stages.get(node) != FAILED:
                self.stages[node] = stage

    def fail(self, node: str) -> int:
        """Mark a node as failed, and return how many have."""
        with self.lock:
            self.stages[node] = FAILED
            self.failures += 1
            return self.failures

    def unrecorded(self, stage: str) -> bool:
        """Tell whether a stage says that a recording could not be saved, which is worth a line the first time."""
        if not stage.startswith(UNRECORDED):
            return False
        with self.lock:
            self.lost_recordings += 1
            return self.lost_recordings == 1

    def takes_long(self, stage: str) -> bool:
        """Tell whether a stage is one of the probe's, which take seconds each; True the first time only."""
        with self.lock:
            new = stage.startswith(LONG) and stage not in self.told
            self.told.add(stage)
            return new

    def counts(self) -> Counter[str]:
        with self.lock:
            return Counter(self.stages.values())


def failure_line(node: str, login: Login) -> str:
    """Say in one line which node could not be used, and why."""
    cause = login.cause.value if login.cause else "failed"
    detail = words.line(login.detail)
    return f"{words.line(node)}: {cause}" + (f": {detail}" if detail else "")
