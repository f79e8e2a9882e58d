"""What a source of evidence says of a running job: clues that point to a cause, and motion that speaks against a hang.

A reader of evidence (triage/live/, one file per source) yields both; triage/join.py makes diagnoses of them.
"""

from __future__ import annotations

from typing import Literal

from ncheck.lazy_dataclass import dataclass
from ncheck.triage.signature import Grade

Source = Literal["processes", "stacks", "sockets", "counters", "ras", "flight-recorder", "logs", "gpus", "kernel"]


@dataclass(frozen=True)
class Clue:
    """One thing that is wrong, or odd. `cause` is a slug of causes.CAUSES; `text` one sentence of evidence.

    `grade`: CERTAIN: this itself is the cause. LIKELY: in most cases. POSSIBLE: several causes look so. ECHO: a
    consequence of another rank's trouble, such as waiting in a collective; it never names a culprit.
    `ranks` and `nodes` are those at fault, not those that wait.
    `still`: it counts only where the job stands still; a rank that waits in a collective is no fault in a job that
    works. `slow`: it counts where the job works, and says what slows it down.
    `works`: the ranks named were seen to work, and the others wait for them: this accuses nobody.
    `others` are causes that look the same. `meaning`, `fix` and `next` replace those of the cause.
    """

    source: Source
    cause: str
    grade: Grade
    text: str
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    still: bool = True
    slow: bool = False
    works: bool = False
    others: tuple[str, ...] = ()
    kind: str = ""
    meaning: str = ""
    fix: str = ""
    next: tuple[str, ...] = ()


@dataclass(frozen=True)
class Motion:
    """Whether one process of the job was seen to get on with its work while it was watched.

    A process is known by its rank, or where it has no number by its `pid`. Neither: the whole job.

    `moves` True: it computed, sent or received data, or finished a collective. False: it was looked at twice and did
    not. Nobody yields it who could not look. `waits`: it waits for other ranks; it is not itself what they wait for.
    `aside`: what moves is not the rank's own step, such as a program beneath it, a download or its memory: it works on
    something, and the job may stand still for that.
    """

    source: Source
    rank: int | None
    node: str
    moves: bool
    text: str
    waits: bool = False
    pid: int = 0
    aside: bool = False

    @property
    def who(self) -> tuple[str, str, int] | None:
        """The process; None for the whole job."""
        if self.rank is not None:
            return self.node, "rank", self.rank
        return (self.node, "pid", self.pid) if self.pid else None


Sign = Clue | Motion
