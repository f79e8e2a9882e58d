"""What triage answers, of logs and of running jobs: causes, each with how sure it is."""

from __future__ import annotations

from ncheck.lazy_dataclass import dataclass
from ncheck.model.next_step import Action, NextStep

MOST_DIAGNOSES, MOST_LOOKS = 8, 4


@dataclass(frozen=True)
class EvidenceLine:
    """A line of a log. `file` is as the user named it, "-" for standard input; `line` counts from 1."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class WaitLimit:
    """What limits a wait for other ranks. `setting`: what sets it in the job's `framework`.

    `seconds`: its value in this job, None if it is not known. `needs`: seconds that the work takes that the others wait
    for, None if that is not known. `helps`: work was seen that more time lets end; a rank that died never comes.
    """

    framework: str
    setting: str
    seconds: float | None
    needs: float | None = None
    helps: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """A cause and how sure it is. `confidence`: 0 to 1 (certainty.py).

    `ranks` and `nodes` are those that failed, the first one first.
    `fix` is one command that changes something, "" if none does. `do` is a sentence where what to type is known in part
    only, else "". `looks` are commands that show whether it is this cause. `works`: the ranks were seen to work, and
    the others wait for them, which is no fault. `limit`: what ends the wait for them, None where nothing waits or that
    is not known.
    `next`: what to do (next_step.py).
    """

    cause: str
    confidence: float
    meaning: str
    kind: str
    evidence: tuple[EvidenceLine, ...]
    ranks: tuple[int, ...]
    nodes: tuple[str, ...]
    fix: str
    looks: tuple[str, ...]
    works: bool = False
    limit: WaitLimit | None = None
    do: str = ""
    next: NextStep = NextStep(Action.LOOK)
