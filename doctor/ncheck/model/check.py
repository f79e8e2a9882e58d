"""A check: a pure function of declared facts that yields problems. It runs nothing and is shown nothing else.

Severity, code and page belong to the check; the engine makes findings and verdicts of what it yields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict

from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster, FactType, NodeView
from ncheck.model.fact import name_of
from ncheck.model.finding import DO, Severity
from ncheck.model.next_step import Action

if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Unpack

HERE = "here"  # where a fix is to be typed: on the machine that runs ncheck
# A fix that prints the launch plan, whose line leads NCCL to the right network with any launcher. Where the plan has a
# value for the variable that mends a finding (Check.mended_by), the report shows the command that makes it last.
PLAN = "ncheck plan nodes.txt"
SLOW_NETWORK = "slow network"  # what a check may explain: that an all-reduce between nodes is slow


@dataclass(frozen=True)
class Problem:
    """What is wrong. A check of a cluster names the nodes; one of a node is about the node that it was shown.

    `fix` is one command line that mends it, typed as it is. `where`: on which machines to type it: empty, on the nodes
    of the finding; HERE, on the machine that runs ncheck; else the names of nodes. `look`: the command shows more, and
    mends nothing. `do`: it is no command but a sentence, since what to type is known in part only: "start the container
    again with --gpus all".

    `summary` is the problem in a few words for the headline, without node names; by default the message, if it is
    short, else the name of the check. `follows` is what it may be a consequence of, such as SLOW_NETWORK: where checks
    that explain this found something on the same nodes, the finding refers to them. `severity` is for a case that is
    less grave than the others of this check; it explains nothing.
    """

    message: str
    fix: str
    evidence: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    where: str = ""
    look: bool = False
    summary: str = ""
    follows: str = ""
    severity: Severity | None = None
    do: bool = False


@dataclass(frozen=True)
class Fix:
    """A command line or a sentence, and `where`, `look` and `do` as a Problem has them."""

    line: str
    where: str = ""
    look: bool = False
    do: bool = False


def kind_of(one: Problem | Fix) -> str:
    """Return the kind of a fix, as a finding has it."""
    return DO if one.do else "look" if one.look else "fix"


@dataclass(frozen=True)
class Inconclusive:
    """Why a check cannot decide although the facts were read. The verdict is then unknown on these nodes."""

    reason: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotApplicable:
    """Why there is nothing to judge although the facts were read: no such hardware or software. Skipped, not passed."""

    reason: str
    nodes: tuple[str, ...] = ()


Said = Problem | Inconclusive | NotApplicable


@dataclass(frozen=True)
class Listed:
    """What is known of a check that was not imported. `reads` and `also` are names of the facts that it declares.

    `classes`: where all facts that a run reads for it are defined: "ncheck.facts.gpus.GpuFacts".
    """

    code: str
    name: str
    severity: Severity
    title: str
    module: str
    reads: frozenset[str]
    also: frozenset[str]
    blocks_plan: bool
    classes: tuple[str, ...] = ()

    @property
    def facts(self) -> frozenset[str]:
        """The names of all facts that it is shown."""
        return self.reads | self.also


Step = Literal["fix-first", "reboot", "drain", "reset-gpu", "ticket"]  # of an Action


@dataclass(frozen=True)
class Check:
    """One check, ready to run. Exactly one of the two judges is there.

    `also`: facts that it may read besides, and that may be missing.
    `everywhere`: what one node has, every node must have; those that lack it fail.
    `by_kind`: what is compared depends on the GPU model: a cluster check is run once for each group of nodes with the
        same models.
    `alone`: a cluster check has something to say of a run with one node too.

    What a check means for a launch plan, beyond the facts that it reads:
    `blocks_plan`: an error of it blocks every plan, whatever facts that plan is made of.
    `mended_by`: the plan avoids what the check finds where it sets this variable, or its command has
        this option ("--prefix") or parameter ("btl_tcp_if_include").
    `matters_alone`: what `mended_by` avoids harms a job on one node, too.
    `says_unreached`: its finding is that a node was not reached. `explains_unreached`: its finding is the reason.
    `explains`: its finding may be the cause of a Problem that follows from this (or these), such as SLOW_NETWORK.
    `about_ncheck`: its finding is trouble of ncheck itself: no fault of a node, and no reason to stop a job that runs.
    `hardware`: its finding is a fault of the machine or of a part of it, which a repair mends: the history counts it.
    `resets_gpu`: its fix resets a broken GPU, or the node with it, and what shows the fault is lost: the finding says
        what to keep before.
    `next_step`: what to do about its errors, and its warnings of hardware, where a command only shows what is wrong and
        the step is known all the same: "ticket" for worn memory.
    `blames_node`: False where its finding is about the machine that runs ncheck: leaving out the nodes helps no job.
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
    blocks_plan: bool = False
    mended_by: str = ""
    matters_alone: bool = False
    says_unreached: bool = False
    explains_unreached: bool = False
    explains: str | tuple[str, ...] = ""
    about_ncheck: bool = False
    blames_node: bool = True
    hardware: bool = False
    resets_gpu: bool = False
    next_step: Step | None = None
    module: str = ""

    @property
    def title(self) -> str:
        """The page's first line."""
        return self.page.strip().partition("\n")[0] or self.name.replace("-", " ")

    @property
    def facts(self) -> tuple[FactType, ...]:
        """All facts that it declares, and the kind of GPU where it is judged by kind."""
        if not self.by_kind:
            return (*self.reads, *self.also)
        from ncheck.facts.gpus import GpuFacts

        return (*self.reads, *self.also, GpuFacts)

    @cached_property
    def listed(self) -> Listed:
        """What is known of it without importing it."""
        if self.next_step:
            Action(self.next_step)  # raises ValueError
        reads, also = (frozenset(map(name_of, facts)) for facts in (self.reads, self.also))
        classes = tuple(f"{fact.__module__}.{fact.__name__}" for fact in self.facts)
        return Listed(
            self.code, self.name, self.severity, self.title, self.module, reads, also, self.blocks_plan, classes
        )


NodeJudge = Callable[[NodeView], Iterable[Said]]
ClusterJudge = Callable[[Cluster], Iterable[Said]]


class Declared(TypedDict, total=False):
    """What a check may declare besides the facts that it must have; see Check."""

    also: tuple[FactType, ...]
    everywhere: bool
    by_kind: bool
    alone: bool
    blocks_plan: bool
    mended_by: str
    matters_alone: bool
    says_unreached: bool
    explains_unreached: bool
    explains: str | tuple[str, ...]
    about_ncheck: bool
    blames_node: bool
    hardware: bool
    resets_gpu: bool
    next_step: Step


def node_check(
    code: str, severity: Severity, *reads: FactType, **declared: Unpack[Declared]
) -> Callable[[NodeJudge], Check]:
    """Make a check that looks at one node at a time; named after the function, its page is the module's docstring.

    `code`: letters and digits, unique. `severity`: ERROR, WARNING or INFO. `reads`: the facts that it must have.
    """

    def made(judge: NodeJudge) -> Check:
        name, page = _name_and_page(judge)
        return Check(code, name, severity, page, reads, judge_node=judge, module=judge.__module__, **declared)

    return made


def cluster_check(
    code: str, severity: Severity, *reads: FactType, **declared: Unpack[Declared]
) -> Callable[[ClusterJudge], Check]:
    """Make a check that compares nodes; it is named after the function, its page is the module's docstring."""

    def made(judge: ClusterJudge) -> Check:
        name, page = _name_and_page(judge)
        return Check(code, name, severity, page, reads, judge_cluster=judge, module=judge.__module__, **declared)

    return made


def _name_and_page(judge: Callable[..., object]) -> tuple[str, str]:
    module = sys.modules[judge.__module__]
    return judge.__name__.replace("_", "-"), module.__doc__ or _docstring(module)


def _docstring(module: ModuleType) -> str:
    """Return a module's docstring from its source: python -OO drops it."""
    import ast
    import inspect

    try:
        return ast.get_docstring(ast.parse(inspect.getsource(module)), clean=False) or ""
    except (OSError, TypeError, SyntaxError):
        return ""
