"""From verdicts to the report: what is ignored, what the exit code is, and what is said of each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ncheck import __version__
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERRUPTED
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import unfold
from ncheck.judge import judge
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Evidence
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Measurement, NodeSummary, Probe, Report
from ncheck.settings import Settings

_REACHED = "NC001"  # what --ignore names where a node need not be reached


@dataclass(frozen=True)
class Conclusion:
    """All verdicts and findings of a run, and what they mean to the settings that it was made with."""

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    facts: Mapping[str, Facts]
    settings: Settings
    excused: frozenset[tuple[str, str]]  # (code, node) pairs that --ignore names

    def report(
        self,
        evidence: Sequence[Evidence],
        plan: LaunchPlan,
        measured: tuple[tuple[Measurement, ...], Probe],
        seconds: float,
        *,
        interrupted: bool,
    ) -> Report:
        return Report(
            exit_code=EXIT_INTERRUPTED if interrupted else self.exit_code(evidence),
            nodes=tuple(summarise(one, self.facts[one.node]) for one in evidence),
            verdicts=self.verdicts,
            findings=self.findings,
            plan=plan,
            measurements=measured[0],
            probe=measured[1],
            version=__version__,
            seconds=round(seconds, 3),
            fail_on=self.settings.fail_on,
            interrupted=interrupted,
            recorded=any(one.recorded for one in evidence),
        )

    def exit_code(self, evidence: Sequence[Evidence] = ()) -> int:
        """Return 1 when a finding or a verdict is as bad as --fail-on says. A crashed check counts as an error.

        A node that was not reached counts as unknown, also where no selected check would have said so.
        """
        fail_on = set(self.settings.fail_on)
        ranks = [Severity(word).rank for word in fail_on & {severity.value for severity in Severity}]
        worst = max(ranks, default=-1)
        counted = [verdict for verdict in self.verdicts if (verdict.code, verdict.node) not in self.excused]
        lost = [one.node for one in evidence if not one.login.reached and (_REACHED, one.node) not in self.excused]
        bad = (
            any(not finding.ignored and finding.severity.rank <= worst for finding in self.findings),
            worst >= 0 and any(verdict.outcome is Outcome.CRASHED for verdict in counted),
            "unknown" in fail_on and any(verdict.outcome is Outcome.UNKNOWN for verdict in counted),
            "unknown" in fail_on and bool(lost),
        )
        return EXIT_FINDINGS if any(bad) else EXIT_CLEAN


def conclude(checks: Sequence[Check], facts: Mapping[str, Facts], settings: Settings) -> Conclusion:
    """Judge the facts, merge what is the same on several nodes, and lower what --ignore names."""
    judgement = judge(checks, facts)
    excused = excused_pairs(checks, tuple(facts), settings)
    lowered = [part for finding in _merged(judgement.findings) for part in _lowered(finding, excused)]
    lowered.sort(key=lambda finding: (finding.ignored, finding.severity.rank, finding.code))
    lowered = _with_causes(lowered, checks)
    return Conclusion(tuple(judgement.verdicts), tuple(lowered), facts, settings, excused)


def _with_causes(findings: Sequence[Finding], checks: Sequence[Check]) -> list[Finding]:
    """Refer from findings to those that name their cause, where every one of their nodes has one."""
    explained_by = {check.code: check.explained_by for check in checks if check.explained_by}
    linked = []
    for finding in findings:
        prefix = explained_by.get(finding.code)
        causes = [other for other in findings if prefix and other.code.startswith(prefix)]
        codes = {other.code for other in causes if set(other.nodes) & set(finding.nodes)}
        explained = {node for other in causes for node in other.nodes}.issuperset(finding.nodes)
        linked.append(replace(finding, see=tuple(sorted(codes))) if codes and explained else finding)
    return linked


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Join findings that say the same of different nodes."""
    merged: dict[Finding, tuple[str, ...]] = {}
    for finding in findings:
        same = replace(finding, nodes=())
        merged[same] = (*merged.get(same, ()), *finding.nodes)
    return [replace(finding, nodes=nodes) for finding, nodes in merged.items()]


def excused_pairs(checks: Sequence[Check], nodes: tuple[str, ...], settings: Settings) -> frozenset[tuple[str, str]]:
    """Return the (code, node) pairs that --ignore names."""
    pairs: set[tuple[str, str]] = set()
    for ignore in settings.ignore:
        named = set(unfold(ignore.nodes)) if ignore.nodes else set(nodes)
        codes = [check.code for check in checks if ignore.check.lower() in (check.code.lower(), check.name)]
        pairs.update((code, node) for code in codes for node in named)
    return frozenset(pairs)


def _lowered(finding: Finding, excused: frozenset[tuple[str, str]]) -> list[Finding]:
    """Part a finding into what stands and what is ignored; the ignored part is lowered, and still printed."""
    ignored = tuple(node for node in finding.nodes if (finding.code, node) in excused)
    standing = tuple(node for node in finding.nodes if node not in ignored)
    parts = [replace(finding, nodes=standing)] if standing else []
    if ignored:
        parts.append(replace(finding, nodes=ignored, severity=Severity.INFO, ignored=True))
    return parts


def summarise(evidence: Evidence, facts: Facts) -> NodeSummary:
    """Return the node's summary: what was reached, by which way, and a line a topic."""
    login, greeting = evidence.login, evidence.greeting
    interpreter = facts.get(InterpreterFacts)
    return NodeSummary(
        name=evidence.node,
        reached=login.reached,
        address=login.address,
        port=login.port,
        user=login.user,
        transport=login.transport,
        host_name=greeting.host_name if greeting else "",
        interpreter=_interpreter(interpreter),
        container=interpreter.container if isinstance(interpreter, InterpreterFacts) else "",
        slots=evidence.slots,
        seconds=round(login.seconds, 3),
        recorded=evidence.recorded,
        cause=login.cause.value if login.cause else "",
        detail=login.detail,
        facts=_lines(facts),
    )


def _interpreter(fact: object) -> str:
    if isinstance(fact, InterpreterFacts):
        return f"{fact.path} {fact.version} ({fact.how})"
    return f"unknown: {fact.reason}" if isinstance(fact, Unread) else ""


def _lines(facts: Facts) -> dict[str, str]:
    """Say each topic that was asked for; what is absent or unread says so."""
    told: dict[str, str] = {}
    for topic, fact in _TOPICS.items():
        value = facts.get(fact)
        if isinstance(value, Absent):
            told[topic] = "none"
        elif isinstance(value, Unread):
            told[topic] = f"unknown: {value.reason}"
        elif value is not None:
            told[topic] = _told(value)
    return told


def _told(fact: object) -> str:  # noqa: PLR0911  one line a kind of fact
    match fact:
        case GpuFacts():
            return _counted(gpu.name for gpu in fact.gpus) + f", driver {fact.driver}"
        case LoadedNcclFacts():
            return f"{fact.version} from {fact.path}"
        case MpiFacts():
            return f"{fact.implementation} {fact.version}"
        case HorovodFacts():
            return fact.version
        case InfinibandFacts():
            return _counted(f"{port.rate:g} Gb/s {port.state}" if port.rate else port.state for port in fact.ports)
        case NicFacts():
            usable = [nic for nic in fact.interfaces if nic.usable or nic.uplink]
            wires = (f"{nic.name} {nic.addresses[0].network}" for nic in usable if nic.addresses)
            return ", ".join(wires) or "none usable"
    return ""


def _counted(names: object) -> str:
    counts = Counter(names)  # type: ignore[call-overload]
    return " + ".join(f"{count} x {name}" for name, count in counts.items())


_TOPICS: dict[str, type[object]] = {
    "GPUs": GpuFacts,
    "NCCL": LoadedNcclFacts,
    "MPI": MpiFacts,
    "Horovod": HorovodFacts,
    "InfiniBand": InfinibandFacts,
    "network": NicFacts,
}
