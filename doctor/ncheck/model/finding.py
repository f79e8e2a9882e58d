"""Findings and verdicts: what the checks said, as data."""

from __future__ import annotations

from enum import Enum

from ncheck.lazy_dataclass import dataclass


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
    """One thing that is wrong, on the nodes that have it. `fix` is something to type, or to do.

    `where`: "here" or the names of nodes; empty, it is to be typed on the finding's nodes. `kind` is that of the
    fix: "fix", a command that mends it as it is; "look", one that shows more and mends nothing; "do", a sentence.
    `see`: codes of the findings on the same nodes that name the cause of this one: it is a consequence of them.
    `summary`: the problem in a few words, for a headline; empty where the message or the check's name will do.
    `title`: of the check's page. `page`: the command that prints it. `hardware`: it is a fault of the machine or of a
    part of it, which a repair mends. `ask`: only root may type the fix, and this user can hardly become root there.
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


@dataclass(frozen=True)
class Verdict:
    """What one check says of these nodes. `reason` is never empty unless the outcome is passed.

    `others_unread`: unknown only because no other node could be read to compare this one with.
    """

    check: str
    code: str
    nodes: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    needs_root: bool = False
    others_unread: bool = False
