"""What every report for people says: the headline, the findings in order, the totals, the meaning of the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncheck.errors import EXIT_CLEAN, EXIT_INTERRUPTED
from ncheck.model.finding import Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import NodeSummary, Report
from ncheck.parity import nodes_by_value
from ncheck.report import text as words
from ncheck.report.listing import topic_of
from ncheck.report.text import FoldedFinding, grouped
from ncheck.text import export_line

NOT_READY, NOT_VERIFIED, WARNINGS, CLEAN = "bad", "doubtful", "warned", "well"

_LONGEST_REASON = 300  # characters of why a node was left out: a node's own words may be in it


@dataclass(frozen=True)
class Headline:
    """The answer in one line. `kind` is one of NOT_READY, NOT_VERIFIED, WARNINGS, CLEAN."""

    kind: str
    text: str


def headline(report: Report, findings: Sequence[FoldedFinding]) -> Headline:
    """Return the verdict and the culprits. A run is clean only if no check is unknown and some check passed."""
    severities = [severity for severity in Severity if severity is not Severity.INFO or "info" in report.fail_on]
    found = {severity: _found(severity, findings) for severity in severities}
    lost = words.node_set([node.name for node in report.nodes if not node.reached])
    not_run, unknown = unreached_and_unknown(report)
    unverified = [_verdicts(not_run, "not run", " (unreachable)"), _verdicts(unknown, "unknown")]
    summary = "; ".join(filter(None, [*found.values(), *unverified]))
    cpus = "; CPU checks only: no GPU on any node" if report.cpus_only else ""
    if found[Severity.ERROR]:
        return Headline(NOT_READY, f"Not ready: {summary}")
    passed = any(verdict.outcome is Outcome.PASSED for verdict in report.verdicts)
    if lost or not_run or unknown or not passed:
        reason = summary or (f"{lost} unreachable" if lost else "no check passed")
        return Headline(NOT_VERIFIED, f"Not verified: {reason}")
    if summary:
        return Headline(WARNINGS, f"No errors: {summary}{cpus}")
    return Headline(CLEAN, f"No problems found: {_passed(report)}{cpus}")


def _found(severity: Severity, findings: Sequence[FoldedFinding]) -> str:
    """Return "2 errors on node04", or nothing."""
    same = [finding for finding in findings if finding.severity is severity and not finding.ignored]
    noun = f"{len(same)} info" if severity is Severity.INFO else words.count(len(same), severity.value)
    return f"{noun} on {words.node_set(nodes_of(same))}" if same else ""


def _verdicts(verdicts: Sequence[Verdict], outcome: str, why: str = "") -> str:
    """Return "6 checks unknown on node04", or nothing."""
    checks = words.count(len({verdict.code for verdict in verdicts}), "check")
    nodes = tuple(dict.fromkeys(verdict.node for verdict in verdicts))
    return f"{checks} {outcome} on {words.node_set(nodes)}{why}" if verdicts else ""


def _passed(report: Report) -> str:
    """Return "23 checks passed, 4 skipped"."""
    every = {verdict.code for verdict in report.verdicts}
    passed = {verdict.code for verdict in report.verdicts if verdict.outcome is Outcome.PASSED}
    skipped = f", {len(every - passed)} skipped" if every - passed else ""
    return words.count(len(passed), "check") + f" passed{skipped}"


def unreached_and_unknown(report: Report) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts that are unknown because the node was not reached, and all others that are no answer."""
    lost = {node.name for node in report.nodes if not node.reached}
    not_run = [one for one in report.verdicts if one.outcome is Outcome.UNKNOWN and one.node in lost]
    unknown = [one for one in report.verdicts if one.outcome is Outcome.UNKNOWN and one.node not in lost]
    return not_run, [*unknown, *(one for one in report.verdicts if one.outcome is Outcome.CRASHED)]


def caveats(report: Report) -> Iterator[str]:
    """Yield what limits everything else in the report."""
    if report.dropped:
        every = {*report.dropped, *(node.name for node in report.nodes)}
        yield left_out(report.dropped, len(every))
    if report.interrupted:
        yield "Interrupted: the results are incomplete."
    if report.recorded:
        recorded = [node.name for node in report.nodes if node.recorded]
        some = f" on {words.node_set(recorded)}" if 0 < len(recorded) < len(report.nodes) else ""
        yield f"Recorded data{some}, not live."


def left_out(bad: Mapping[str, str], total: int) -> str:
    """Return "15 of 16 nodes, without node07: NC402 ...". Nodes that are left out for one reason share it."""
    reasons = "; ".join(
        f"{words.node_set(nodes)}: {words.line(reason)[:_LONGEST_REASON]}" for reason, nodes in grouped(dict(bad))
    )
    return f"{total - len(bad)} of {words.count(total, 'node')}, without {reasons}"


def by_topic(findings: Iterable[FoldedFinding]) -> dict[str, list[FoldedFinding]]:
    """Return the findings under their headings: the topic with the worst first, ignored findings last."""
    topics: dict[str, list[FoldedFinding]] = {}
    for finding in sorted(findings, key=_urgency):
        topics.setdefault(topic_of(finding.code), []).append(finding)
    return topics


def _urgency(finding: FoldedFinding) -> tuple[bool, int, bool, str]:
    return finding.ignored, finding.severity.rank, bool(finding.see), finding.code


def nodes_of(findings: Iterable[FoldedFinding]) -> tuple[str, ...]:
    """Return all nodes of the findings, each once."""
    return tuple(dict.fromkeys(node for finding in findings for node in finding.nodes))


def node_topics(report: Report) -> dict[str, dict[str, str]]:
    """Return topic -> node -> what the node has, such as GPUs or NCCL, for the nodes that were reached."""
    reached = [node for node in report.nodes if node.reached]
    topics = dict.fromkeys(topic for node in reached for topic in node.facts)
    return {topic: {node.name: node.facts[topic] for node in reached if topic in node.facts} for topic in topics}


def interpreter(node: NodeSummary) -> str:
    """Return the job's interpreter, and its container if there is one."""
    return (node.interpreter or "unknown") + (f", in {node.container}" if node.container else "")


def plan_settings(plan: LaunchPlan) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield each variable: the lines that set it, or none and a sentence instead; and the reason."""
    for name, setting in plan.env.items():
        own = {node: values[name].value or "" for node, values in plan.per_node.items() if name in values}
        exports = nodes_by_value(own) if setting.value is None else {setting.value: ()}
        lines = [(export_line(words.line(name), words.line(value)), nodes) for value, nodes in exports.items()]
        state = "leave it unset" if setting.decided else "undecided"
        typed = tuple(f"{line}  # on {words.node_set(nodes)}" if nodes else line for line, nodes in lines)
        yield typed, "" if typed else f"{words.line(name)}: {state}", setting.reason


def totals(report: Report, findings: Sequence[FoldedFinding]) -> tuple[str, ...]:
    """Return "2 errors, 0 warnings · 468 verdicts: 2 failed, ... · 0.1 s", in its three parts."""
    counts = Counter(finding.severity for finding in findings if not finding.ignored)
    ignored = sum(finding.ignored for finding in findings)
    parts = [words.count(counts[severity], severity.value) for severity in (Severity.ERROR, Severity.WARNING)]
    parts += [f"{counts[Severity.INFO]} info"] if counts[Severity.INFO] else []
    parts += [f"{ignored} ignored"] if ignored else []
    outcomes = ", ".join(_outcomes(report.verdicts))
    return ", ".join(parts), f"{words.count(len(report.verdicts), 'verdict')}: {outcomes}", f"{report.seconds:.1f} s"


def _outcomes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    counts = Counter(verdict.outcome for verdict in verdicts)
    root = sum(verdict.needs_root for verdict in verdicts)
    for outcome in Outcome:
        if counts[outcome]:
            needs_root = f" ({root} need root: --sudo)" if outcome is Outcome.SKIPPED and root else ""
            yield f"{counts[outcome]} {outcome.value}{needs_root}"


def exit_code_meaning(report: Report) -> str:
    """Return the exit code with its reason, such as "exit code 0: clean"."""
    return f"exit code {report.exit_code}: {_meaning(report)}"


def _meaning(report: Report) -> str:
    rule = f"(--fail-on {','.join(report.fail_on) or 'none'})"
    unknown = any(verdict.outcome is Outcome.UNKNOWN for verdict in report.verdicts)
    findings = [finding for finding in report.findings if not finding.ignored]
    if report.exit_code == EXIT_INTERRUPTED:
        return "interrupted"
    if report.exit_code == EXIT_CLEAN:
        return f"nothing above counts as a failure {rule}" if findings or unknown else "clean"
    if any(finding.severity.value in report.fail_on for finding in findings) or not unknown:
        return f"the findings above count as failures {rule}"
    return f"unknown results count as failures {rule}"
