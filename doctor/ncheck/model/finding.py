"""Findings and verdicts: what the checks said, as data."""

from __future__ import annotations

from enum import Enum

from ncheck.lazy_dataclass import dataclass
from ncheck.model.next_step import Action, NextStep


class Severity(str, Enum):
    """How bad a finding is. It belongs to the check; the user may lower it by --ignore, and it is still printed.

    `error`: the job will fail, hang, or be wrong. `warning`: it may run, slower or with luck. `info`: worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Outcome(str, Enum):
    """The five outcomes of one check on one node, none silent.

    `failed`: the node has the problem. `crashed`: the check itself failed. `unknown`: what should be readable was not.
    `skipped`: nothing to check, or root is needed. `passed`: examined, no problem.
    """

    FAILED = "failed"
    CRASHED = "crashed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"
    PASSED = "passed"

    __hash__ = str.__hash__  # that of Enum is a function in Python, and outcomes are counted by the thousand


DO = "do"  # the kind of a fix that is no command


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, on the nodes that have it.

    code: The code of the check; codes never change.
    check: The check's name.
    severity: error: the job will fail, hang or be wrong. warning: it may run. info: worth knowing.
    nodes: The affected nodes.
    message: The problem in one sentence.
    evidence: Evidence, one line each.
    fix: A command that fixes or shows the problem, or a sentence: see kind.
    ignored: True if --ignore names it: the severity is lowered, the finding is still listed.
    see: Codes of the findings on the same nodes that name the cause of this one.
    where: Where to type it: "here" is the machine that runs ncheck; empty: on the nodes of the finding.
    kind: fix: the command mends the problem. look: it shows more. do: it is a sentence that says what to do.
    summary: The problem in a few words; empty if the message is short or the name of the check says it.
    title: The title of the check's page.
    page: The command that prints the check's page, or its address where --docs says where the documents are.
    hardware: Whether it is a fault of the machine or of a part of it, which a repair mends.
    ask: True if only root may type it, and the user of the run is not root there, nor in a group that sudo usually lets
        in: somebody else has to.
    next: What to do next.
    """

    code: str
    check: str
    severity: Severity
    nodes: tuple[str, ...]
    message: str
    evidence: tuple[str, ...]
    fix: str
    ignored: bool = False
    see: tuple[str, ...] = ()
    where: str = ""
    kind: str = "fix"
    summary: str = ""
    title: str = ""
    page: str = ""
    hardware: bool = False
    ask: bool = False
    next: NextStep = NextStep(Action.LOOK)


@dataclass(frozen=True)
class Verdict:
    """What one check says of these nodes.

    check: The check's name.
    code: The check's code.
    nodes: The nodes of which it says so.
    outcome: failed: a node has the problem. crashed: the check itself failed. unknown: data that should be readable was
        not. skipped: nothing to check, or root is needed. passed: examined, no problem.
    reason: The reason; empty only if the check passed.
    needs_root: True if skipped because only root can read the data (--sudo).
    others_unread: True if unknown only because no other node could be read to compare this one with.
    """

    check: str
    code: str
    nodes: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    needs_root: bool = False
    others_unread: bool = False
