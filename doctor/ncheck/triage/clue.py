"""What a source of evidence says of a job: clues that point to a cause, and motion that speaks against a hang.

Logs yield clues (triage/log_clues.py), and so do the readers of a running job (triage/live/, one file per source), with
motions. triage/judge.py makes diagnoses of clues, whatever their source.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ncheck.lazy_dataclass import dataclass
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine

Source = Literal["processes", "stacks", "sockets", "counters", "ras", "flight-recorder", "logs", "gpus", "kernel"]


@dataclass(frozen=True)
class Clue:
    """One thing that is wrong, or odd. `cause` is a slug of causes.CAUSES, "" where only a symptom was seen.

    `text` is one sentence of evidence; "" where the `lines` of a log are.

    `grade`: CERTAIN: this itself is the cause. LIKELY: in most cases. POSSIBLE: several causes look so. ECHO: a
    consequence of another rank's trouble, such as waiting in a collective; it never names a culprit.
    `ranks` and `nodes` are those at fault, not those that wait.
    `still`: it counts only where the job stands still; a rank that waits in a collective is no fault in a job that
    works. `slow`: it counts where the job works, and says what slows it down.
    `works`: the ranks named were seen to work, and the others wait for them: this accuses nobody.
    `others` are causes that look the same. `meaning`, `fix` and `looks` replace those of the cause; a `fix` of None
    says that the cause's is no help. `do` is a sentence, where what to type is known in part only. `kind` says more of
    a program's failure.
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
    fix: str | None = ""
    looks: tuple[str, ...] = ()
    lines: tuple[LogLine, ...] = field(default=(), compare=False)
    do: str = ""

    @property
    def echo(self) -> bool:
        """Whether it shows only the consequences of another rank's failure."""
        return self.grade is Grade.ECHO

    @property
    def evidence(self) -> tuple[str, ...]:
        """What was seen: the lines of a log, or the sentence."""
        return (self.text,) if self.text else tuple(line.text for line in self.lines)

    @property
    def command(self) -> str:
        """The first command to type: what changes something, or else what shows more; "" for neither."""
        return self.fix or next(iter(self.looks), "")


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
