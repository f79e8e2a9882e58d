"""From verdicts to the report: what is ignored, what the exit code is, and what is said of each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from ncheck import __version__
from ncheck.again import NODES, with_nodes_of_run
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERRUPTED
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.judge import excused_pairs, judge
from ncheck.model.board import Board
from ncheck.model.check import Check
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.node import Node
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Measurement, NodeSummary, Probe, Report
from ncheck.nccl.settings import PLAN_VALUES
from ncheck.parity import nodes_by_value
from ncheck.parse.topology_drawing import board
from ncheck.probe.why_none import ran_on, why_none
from ncheck.settings import Settings
from ncheck.system import system_of
from ncheck.text import export_line


def conclude(  # noqa: PLR0913  each is a part of the report
    cluster: Cluster,
    checks: Sequence[Check],
    settings: Settings,
    plan: LaunchPlan,
    *,
    seconds: float = 0.0,
    interrupted: bool = False,
    recorded: bool = False,
) -> Report:
    """Judge the cluster, merge what is the same on several nodes, lower what --ignore names, and report."""
    judgement = judge(checks, cluster)
    excused = excused_pairs(checks, cluster.names, settings)
    variables = {check.code: check.mended_by for check in checks}
    typed = [_with_value(one, variables[one.code], plan) for one in judgement.findings]
    found = [replace(one, fix=with_nodes_of_run(one.fix, settings)) for one in typed]
    lowered = [part for finding in _merged(found) for part in _lowered(finding, excused)]
    lowered.sort(key=lambda finding: (finding.ignored, finding.severity.rank, finding.code))
    findings = tuple(_with_pages(_with_causes(lowered, checks), checks))
    verdicts = tuple(judgement.verdicts)
    unreached = _unreached(cluster, checks, excused)
    measurements, probe = _measured(cluster.known)
    return Report(
        exit_code=EXIT_INTERRUPTED if interrupted else exit_code(verdicts, findings, excused, unreached, settings),
        nodes=tuple(summarise(node, cluster.known[node.name], recorded=recorded) for node in cluster.nodes),
        verdicts=verdicts,
        findings=findings,
        plan=plan,
        measurements=measurements,
        probe=probe,
        version=__version__,
        seconds=round(seconds, 3),
        fail_on=settings.fail_on,
        interrupted=interrupted,
        recorded=recorded,
        cpus_only=_cpus_only(cluster),
        name_python=_name_python(cluster, settings),
        boards=tuple(_boards(cluster)),
    )


def _with_value(finding: Finding, variable: str, plan: LaunchPlan) -> Finding:
    """Return the finding with the line that sets the plan's value, where its fix would print the plan's values."""
    setting = plan.env.get(variable)
    if finding.fix != PLAN_VALUES or setting is None or setting.value is None:
        return finding
    return replace(finding, fix=export_line(variable, setting.value), where="")


_MOST_BOARDS = 16  # kinds of nodes: more are no cluster that anybody looks at


def _boards(cluster: Cluster) -> Iterator[Board]:
    """Yield how GPUs and NICs lie, once for the nodes that are alike; one device alone is nothing to draw."""
    alike: dict[object, list[str]] = {}
    matrices = cluster.facts(TopologyFacts)
    for nodes in nodes_by_value({node: id(matrix.pairs) for node, matrix in matrices.items()}).values():
        matrix = matrices[nodes[0]]  # equal texts are parsed once
        tables = (matrix.pairs, matrix.legend, matrix.cpu_affinity, matrix.numa_affinity)
        alike.setdefault((matrix.source, *(tuple(sorted(table.items())) for table in tables)), []).extend(nodes)
    for members in sorted(alike.values(), key=len, reverse=True)[:_MOST_BOARDS]:
        matrix = matrices[members[0]]
        if len(matrix.gpus) + len(matrix.nics) > 1:
            yield replace(board(matrix), nodes=tuple(members), source=matrix.source)


def _cpus_only(cluster: Cluster) -> bool:
    """Return whether every node that was reached was asked for its GPUs and has none."""
    reached = [name for name, held in cluster.facts(LoginFacts).items() if held.login.reached]
    return bool(reached) and all(isinstance(cluster.known[name].get(GpuFacts), Absent) for name in reached)


def _name_python(cluster: Cluster, settings: Settings) -> str:
    """Return the command that names the job's Python, where ncheck found none with a framework on nodes with GPUs.

    A job that loads an NCCL of its own on each of them may need none.
    """
    pythons = [facts.get(InterpreterFacts) for facts in map(cluster.known.__getitem__, cluster.names)]
    asked = any(isinstance(python, (InterpreterFacts, Absent)) for python in pythons)
    trains = any(isinstance(python, InterpreterFacts) and python.trains for python in pythons)
    with_gpus = {node for node, gpus in cluster.facts(GpuFacts).items() if gpus.gpus}
    without_nccl = with_gpus - cluster.facts(LoadedNcclFacts).keys()
    if settings.ranks or trains or not asked or not without_nccl:
        return ""
    nodes = "local" if all(node.local for node in cluster.nodes) else NODES
    return with_nodes_of_run(f"ncheck {nodes} --python PATH", settings)


def _with_causes(findings: Sequence[Finding], checks: Sequence[Check]) -> list[Finding]:
    """Let each consequence refer to its causes among the findings, and to nothing else.

    What an unreachable node is a consequence of must explain every node; a slow group has one cause in it or several.
    A cause that is ignored explains nothing: what follows from it would be hidden with it.
    """
    unreached = {check.code for check in checks if check.says_unreached}
    explaining = tuple(check.code for check in checks if check.explains_unreached)

    def linked(finding: Finding) -> Finding:
        every = finding.code in unreached
        codes = explaining if every else finding.see
        causes = [one for one in findings if one.code in codes and (finding.ignored or not one.ignored)]
        causes = [one for one in causes if not set(finding.nodes).isdisjoint(one.nodes)]
        partly = every and not {node for one in causes for node in one.nodes}.issuperset(finding.nodes)
        return replace(finding, see=() if partly else tuple(sorted({one.code for one in causes})))

    return [linked(finding) for finding in findings]


def _with_pages(findings: Sequence[Finding], checks: Sequence[Check]) -> list[Finding]:
    """Give each finding the title and the address of its check's page."""
    by_code = {check.code: check for check in checks}
    return [replace(one, title=by_code[one.code].title, page=by_code[one.code].url) for one in findings]


def exit_code(
    verdicts: Sequence[Verdict],
    findings: Sequence[Finding],
    excused: Collection[tuple[str, str]],
    unreached: Collection[str],
    settings: Settings,
) -> int:
    """Return 1 when a finding or a verdict is as bad as --fail-on says. A crashed check counts as an error.

    A node that was not reached counts as unknown, also where no selected check would have said so.
    """
    fail_on = set(settings.fail_on)
    ranks = [Severity(word).rank for word in fail_on & {severity.value for severity in Severity}]
    worst = max(ranks, default=-1)
    counted = [verdict for verdict in verdicts if (verdict.code, verdict.node) not in excused]
    bad = (
        any(not finding.ignored and finding.severity.rank <= worst for finding in findings),
        worst >= 0 and any(verdict.outcome is Outcome.CRASHED for verdict in counted),
        "unknown" in fail_on and any(verdict.outcome is Outcome.UNKNOWN for verdict in counted),
        "unknown" in fail_on and bool(unreached),
    )
    return EXIT_FINDINGS if any(bad) else EXIT_CLEAN


def _unreached(cluster: Cluster, checks: Sequence[Check], excused: Collection[tuple[str, str]]) -> list[str]:
    """Return the nodes that were not reached and need be: --ignore of the check that says so excuses a node."""
    codes = [check.code for check in checks if check.says_unreached]
    lost = [name for name, held in cluster.facts(LoginFacts).items() if not held.login.reached]
    return [name for name in lost if not any((code, name) in excused for code in codes)]


def _measured(known: Mapping[str, Facts]) -> tuple[tuple[Measurement, ...], Probe]:
    if not ran_on(known):
        return (), why_none(known)
    from ncheck.probe.measurements import measured

    return measured(known)


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Join findings that say the same of different nodes."""
    merged: dict[Finding, tuple[str, ...]] = {}
    for finding in findings:
        same = replace(finding, nodes=())
        merged[same] = (*merged.get(same, ()), *finding.nodes)
    return [replace(finding, nodes=nodes) for finding, nodes in merged.items()]


def _lowered(finding: Finding, excused: frozenset[tuple[str, str]]) -> list[Finding]:
    """Part a finding into what stands and what is ignored; the ignored part is lowered, and still printed."""
    ignored = tuple(node for node in finding.nodes if (finding.code, node) in excused)
    standing = tuple(node for node in finding.nodes if node not in ignored)
    parts = [replace(finding, nodes=standing)] if standing else []
    if ignored:
        parts.append(replace(finding, nodes=ignored, severity=Severity.INFO, ignored=True))
    return parts


def summarise(node: Node, facts: Facts, *, recorded: bool) -> NodeSummary:
    """Return the node's summary: what was reached, by which way, and a line a topic."""
    login = cast("LoginFacts", facts[LoginFacts]).login
    identity, interpreter = facts.get(IdentityFacts), facts.get(InterpreterFacts)
    return NodeSummary(
        name=node.name,
        reached=login.reached,
        address=login.address,
        port=login.port,
        user=login.user,
        transport=login.transport,
        host_name=identity.host_name if isinstance(identity, IdentityFacts) else "",
        interpreter=_interpreter(interpreter),
        container=interpreter.container if isinstance(interpreter, InterpreterFacts) else "",
        slots=node.slots,
        seconds=round(login.seconds, 3),
        recorded=recorded,
        cause=login.cause.value if login.cause else "",
        detail=login.detail,
        facts=_lines(facts),
        system=system_of(facts),
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
