"""Facts to verdicts: runs every selected check on every node, and never lets one of them end the run.

The rules for absent, unknown, needs-root and not-reached stand here once, so that no check has to know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from doctor.model.check import Check, ClusterView, Doubt, FactType, NodeView, Problem, Said, unreadable
from doctor.model.fact import Absent, Unread
from doctor.model.facts import GpuFacts
from doctor.model.finding import Finding, Outcome, Severity, Verdict

Facts = Mapping[FactType, object]

CRASHED = "NC004"


@dataclass
class Judgement:
    """What all checks said: one verdict a node and check, and the findings, as they are made."""

    verdicts: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def facts_wanted(checks: Iterable[Check]) -> tuple[FactType, ...]:
    """Return every fact that some check declares, and the kind of GPU where a check is judged by kind."""
    wanted: dict[FactType, None] = {}
    for check in checks:
        wanted.update(dict.fromkeys((*check.reads, *check.also)))
        if check.by_kind:
            wanted[GpuFacts] = None
    return tuple(wanted)


def judge(checks: Sequence[Check], nodes: Mapping[str, Facts]) -> Judgement:
    """Run the checks over the nodes' facts. `nodes` keeps the order of the listing."""
    judgement = Judgement()
    for check in checks:
        _Run(check, nodes, judgement).run()
    return judgement


class _Run:
    """One check over all nodes."""

    def __init__(self, check: Check, nodes: Mapping[str, Facts], judgement: Judgement) -> None:
        self.check = check
        self.judgement = judgement
        self.nodes = nodes
        self.views = {name: self._view(name, facts) for name, facts in nodes.items()}
        self.verdicts: dict[str, Verdict] = {}

    def run(self) -> None:
        missing = {name: unreadable({f: v.facts[f] for f in self.check.reads}) for name, v in self.views.items()}
        readable = [name for name, why in missing.items() if why is None]
        if self.check.judge_node:
            for name in readable:
                self._shown([name], self.check.judge_node, self.views[name])
        else:
            self._cluster(readable)
        self._lacking(readable, missing)
        for name, why in missing.items():
            self.verdicts.setdefault(name, self._verdict_without(name, why))
        self.judgement.verdicts += [self.verdicts[name] for name in self.nodes]

    def _view(self, name: str, facts: Facts) -> NodeView:
        return NodeView(name, {fact: facts[fact] for fact in (*self.check.reads, *self.check.also)})

    def _cluster(self, readable: list[str]) -> None:
        assert self.check.judge_cluster  # noqa: S101  for the type checker: a check has one judge or the other
        for members in self._groups(readable).values():
            view = ClusterView(tuple(self.views[name] for name in members))
            self._shown(members, self.check.judge_cluster, view)

    def _groups(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Part the nodes by kind, where the check is judged by kind."""
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(self._kind(name), []).append(name)
        return groups

    def _kind(self, name: str) -> str:
        """Name a node's kind. One whose GPUs could not be read belongs to the only kind there is, if there is one."""
        if not self.check.by_kind:
            return ""
        gpus = self.nodes[name][GpuFacts]
        if not isinstance(gpus, Unread):
            return " + ".join(gpus.models) if isinstance(gpus, GpuFacts) else ""
        kinds = {" + ".join(g.models) for facts in self.nodes.values() if isinstance(g := facts[GpuFacts], GpuFacts)}
        return kinds.pop() if len(kinds) == 1 else "unread"

    def _shown(self, names: list[str], judge: object, view: NodeView | ClusterView) -> None:
        """Let the check judge one view, and turn what it says into findings and verdicts."""
        try:
            said: list[Said] = list(judge(view))  # type: ignore[operator]  # one of the two judges, with its own view
        except Exception as error:  # noqa: BLE001  a broken check must not end the run: it is a verdict and a finding
            self._crashed(names, error)
            return
        for word in said:
            self._say(word, word.nodes or tuple(names))
        for name in names:
            self.verdicts.setdefault(name, self._verdict(name, Outcome.PASSED))

    def _say(self, word: Said, nodes: tuple[str, ...]) -> None:
        failed = isinstance(word, Problem)
        reason = word.message if isinstance(word, Problem) else word.reason
        for name in nodes:
            earlier = self.verdicts.get(name)
            if earlier is None or (failed and earlier.outcome is not Outcome.FAILED):
                self.verdicts[name] = self._verdict(name, Outcome.FAILED if failed else Outcome.UNKNOWN, reason)
        if isinstance(word, Problem):
            self._find(self.check.code, self.check.name, self.check.severity, nodes, word)

    def _crashed(self, names: list[str], error: Exception) -> None:
        why = f"{type(error).__name__}: {error}"
        for name in names:
            self.verdicts[name] = self._verdict(name, Outcome.CRASHED, why)
        problem = Problem(
            message=f"the check {self.check.name} ({self.check.code}) crashed: {why}",
            fix=f"ncheck --ignore {self.check.name}",
            evidence=(f"from {self.check.module}",),
        )
        self._find(CRASHED, "check-crashed", Severity.ERROR, tuple(names), problem)

    def _lacking(self, readable: list[str], missing: Mapping[str, Unread | Absent | None]) -> None:
        """Fail the nodes that lack what others of their kind have, where the check asks for it everywhere."""
        if not self.check.everywhere:
            return
        holders = self._groups(readable)
        absent = [name for name, why in missing.items() if isinstance(why, Absent)]
        for kind, lacking in self._groups(absent).items():
            if having := holders.get(kind):
                why = missing[lacking[0]]
                problem = Problem(
                    message=f"{why.reason if why else 'absent'}, while {len(having)} other node(s) have it",
                    fix=f"ncheck explain {self.check.code}",
                    evidence=(f"present on {', '.join(having[:4])}" + (" ..." if len(having) > 4 else ""),),  # noqa: PLR2004
                )
                self._say(problem.__class__(problem.message, problem.fix, problem.evidence, tuple(lacking)), tuple(lacking))

    def _find(self, code: str, name: str, severity: Severity, nodes: tuple[str, ...], problem: Problem) -> None:
        self.judgement.findings.append(
            Finding(code, name, severity, nodes, problem.message, problem.evidence, problem.fix)
        )

    def _verdict(self, node: str, outcome: Outcome, reason: str = "") -> Verdict:
        return Verdict(self.check.name, self.check.code, node, outcome, reason)

    def _verdict_without(self, node: str, why: Unread | Absent | None) -> Verdict:
        """Return the verdict where a fact is not there: absent is skipped, needs-root is skipped, the rest unknown."""
        if isinstance(why, Unread) and why.needs_root:
            reason = f"needs root: {why.reason}"
            return Verdict(self.check.name, self.check.code, node, Outcome.SKIPPED, reason, needs_root=True)
        if isinstance(why, Absent):
            return self._verdict(node, Outcome.SKIPPED, f"absent: {why.reason}")
        return self._verdict(node, Outcome.UNKNOWN, why.reason if why else "no verdict was reached")
