"""A check: a pure function of declared facts that yields problems. It runs nothing and is shown nothing else.

Severity, code and page belong to the check; the engine makes findings and verdicts of what it yields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ncheck.model.cluster import Cluster, FactType, NodeView
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Severity


@dataclass(frozen=True)
class Problem:
    """What is wrong. A node check leaves `nodes` empty: it is about the node that it was shown."""

    message: str
    fix: str
    evidence: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inconclusive:
    """What could not be told although the facts were read. It makes the verdict unknown on these nodes."""

    reason: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotApplicable:
    """Why there is nothing to judge although the facts were read: no such hardware or software. Skipped, not passed."""

    reason: str
    nodes: tuple[str, ...] = ()


Said = Problem | Inconclusive | NotApplicable


@dataclass(frozen=True)
class Check:
    """One check, ready to run. Exactly one of the two judges is there.

    `everywhere`: what one node has, every node must have (of its kind); those that lack it fail.
    `by_kind`: a cluster check is run once for each group of nodes with the same GPU models.
    `alone`: a cluster check has something to say of a run with one node too.
    `explained_by`: how the codes of the checks begin whose findings on the same nodes name the cause of this one's.
    """

    code: str
    name: str
    severity: Severity
    page: str
    reads: tuple[FactType, ...]
    also: tuple[FactType, ...] = ()
    judge_node: Callable[[NodeView], Iterable[Said]] | None = None
    judge_cluster: Callable[[Cluster], Iterable[Said]] | None = None
    everywhere: bool = False
    by_kind: bool = False
    alone: bool = False
    module: str = ""
    explained_by: str = ""

    @property
    def title(self) -> str:
        """The page's first line."""
        return self.page.strip().splitlines()[0]


NodeJudge = Callable[[NodeView], Iterable[Said]]


ClusterJudge = Callable[[Cluster], Iterable[Said]]


def node_check(
    code: str, severity: Severity, *reads: FactType, also: tuple[FactType, ...] = (), explained_by: str = ""
) -> Callable[[NodeJudge], Check]:
    """Make a check that looks at one node at a time; named after the function, its page is the module's docstring."""

    def made(judge: NodeJudge) -> Check:
        name, page = _name_and_page(judge)
        return Check(
            code, name, severity, page, reads, also,
            judge_node=judge, module=judge.__module__, explained_by=explained_by,
        )  # fmt: skip

    return made


def cluster_check(  # noqa: PLR0913  each is a word of one declaration
    code: str,
    severity: Severity,
    *reads: FactType,
    also: tuple[FactType, ...] = (),
    everywhere: bool = False,
    by_kind: bool = False,
    alone: bool = False,
) -> Callable[[ClusterJudge], Check]:
    """Make a check that compares nodes; it is named after the function, its page is the module's docstring."""

    def made(judge: ClusterJudge) -> Check:
        name, page = _name_and_page(judge)
        return Check(
            code, name, severity, page, reads, also,
            judge_cluster=judge, everywhere=everywhere, by_kind=by_kind, alone=alone, module=judge.__module__,
        )  # fmt: skip

    return made


def _name_and_page(judge: Callable[..., object]) -> tuple[str, str]:
    page = sys.modules[judge.__module__].__doc__ or ""
    return judge.__name__.replace("_", "-"), page


def unreadable(facts: Sequence[object]) -> Unread | Absent | None:
    """Return the first fact that is not there; what could not be read outweighs what is absent."""
    missing = [fact for fact in facts if isinstance(fact, (Unread, Absent))]
    return next((fact for fact in missing if isinstance(fact, Unread)), missing[0]) if missing else None
