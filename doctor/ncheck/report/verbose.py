"""The whole report on a terminal (-v): the answer first and last, the worst findings next, what is healthy folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from rich.text import Text

from ncheck.model.finding import Outcome, Verdict
from ncheck.model.report import Report
from ncheck.model.state import unreached_and_unknown
from ncheck.report import text as words
from ncheck.report.console import NO_ANSWER
from ncheck.report.gpus_alone import print_gpus
from ncheck.report.language import marked, tr
from ncheck.report.measured import how_measured, print_measured
from ncheck.report.page import Page
from ncheck.report.parts import print_fix, print_headline, print_news, print_origin, print_read_more, print_title
from ncheck.report.summary import (
    blocked,
    by_topic,
    exit_code_meaning,
    headline,
    interpreter,
    names_in,
    node_topics,
    nodes_of,
    plan_settings,
    root_by,
    timeline,
    totals,
)
from ncheck.report.text import FoldedFinding, FoldedVerdicts, fold_findings, fold_verdicts, grouped, padded

_ALL_IN_JSON = marked("(all in -o json)")
_MORE_OF_CHECK = (
    marked("and {number} more {check} finding on {nodes}, with other messages"),
    marked("and {number} more {check} findings on {nodes}, with other messages"),
)

EVIDENCE_LINES = 4
FINDINGS_PER_CHECK = 3
UNKNOWN_REASONS = 6
SKIP_REASONS = 4
CHECK_NAMES = 3  # more than this are counted, not named
NODE_SETS = 2
VALUES_PER_TOPIC = 3
MANY_VALUES = 8  # more than this are not worth comparing
LONGEST_REASON = 72  # characters of a reason for skipping
_LABEL = 11  # cells of a topic's name


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the whole report, worst first; the last line repeats the headline."""
    page = Page(stream, environ, color=color)
    findings = fold_findings(report.findings)
    answer = headline(report, findings)
    print_headline(page, answer)
    print_origin(page, report)
    _topic(page, "python", {node.name: interpreter(node) for node in report.nodes if node.reached})
    _findings(page, findings)
    print_news(page, report)
    _verdicts(page, report)
    _nodes(page, report)
    print_measured(page, report)
    print_gpus(page, report)
    _plan(page, report)
    if not report.probe.ran:
        page.gap()
        _dim(page, how_measured(report))
    page.gap()
    page.say(f" {page.signs.dot} ".join(totals(report, findings)), style="bold")
    print_read_more(page, findings)
    page.say(exit_code_meaning(report), style="bold")
    if spent := timeline(report):
        page.say(spent, style="dim")
    print_headline(page, answer)


def _findings(page: Page, findings: Sequence[FoldedFinding]) -> None:
    topics = by_topic(findings)
    for topic, members in topics.items():
        page.gap()
        page.say(tr(topic), style="bold underline")
        by_check: dict[tuple[str, bool], list[FoldedFinding]] = {}
        for finding in members:
            by_check.setdefault((finding.code, finding.ignored), []).append(finding)
        for same in by_check.values():
            _check(page, same)


def _check(page: Page, same: Sequence[FoldedFinding]) -> None:
    """Print a check's findings. Those that follow from other findings are one line, with the codes of the others."""
    if all(finding.see for finding in same):
        print_title(page, replace(same[0], nodes=nodes_of(same)))
        codes = ", ".join(dict.fromkeys(code for finding in same for code in finding.see))
        page.say(tr("see {codes}", codes=codes), "    ", style="dim")
        return
    for finding in same[:FINDINGS_PER_CHECK]:
        print_title(page, finding)
        _body(page, finding)
    if rest := same[FINDINGS_PER_CHECK:]:
        where = words.node_set(nodes_of(rest))
        more = tr(_MORE_OF_CHECK[len(rest) > 1], number=len(rest), check=rest[0].check, nodes=where)
        page.say(f"{more} {tr(_ALL_IN_JSON)}", "    ", style="dim")


def _body(page: Page, finding: FoldedFinding) -> None:
    page.say(words.line(finding.message), "  ")
    for evidence in finding.evidence[:EVIDENCE_LINES]:
        for line in words.lines(evidence)[:EVIDENCE_LINES]:
            page.say(line, "    ", style="dim")
    if len(finding.evidence) > EVIDENCE_LINES:
        more = words.count(len(finding.evidence) - EVIDENCE_LINES, "more line")
        page.say(f"... {more} {tr(_ALL_IN_JSON)}", "    ", style="dim")
    print_fix(page, finding)


def _verdicts(page: Page, report: Report) -> None:
    """Print crashed, unknown, skipped and passed verdicts, each folded by its reason and its nodes."""
    page.gap()
    signs = page.signs
    not_run, unknown = unreached_and_unknown(report)
    by_outcome = {
        outcome: [one for one in report.verdicts if one.outcome is outcome and not one.needs_root]
        for outcome in (Outcome.CRASHED, Outcome.SKIPPED, Outcome.PASSED)
    }
    unknown = [verdict for verdict in unknown if verdict.outcome is Outcome.UNKNOWN]
    _unknown(page, Text(f"{signs.bad} ", "bold red"), fold_verdicts(by_outcome[Outcome.CRASHED]), "crashed")
    _unknown(page, Text(f"{signs.doubtful} ", "bold magenta"), fold_verdicts(not_run), "not run")
    _unknown(page, Text(f"{signs.doubtful} ", "bold magenta"), fold_verdicts(unknown), "unknown")
    _need_root(page, [verdict for verdict in report.verdicts if verdict.needs_root], root_by(report))
    _skipped(page, fold_verdicts(by_outcome[Outcome.SKIPPED]))
    _passed(page, fold_verdicts(by_outcome[Outcome.PASSED]))


def _unknown(page: Page, sign: Text, groups: Sequence[FoldedVerdicts], outcome: str) -> None:
    for group in groups[:UNKNOWN_REASONS]:
        names = ", ".join(group.checks)
        if len(group.checks) > CHECK_NAMES:
            names = words.count(len(group.checks), "check")
        nodes, reason = words.node_set(group.nodes), words.line(group.reason)
        page.say(tr(NO_ANSWER[outcome], checks=names, nodes=nodes, reason=reason), sign)
    if rest := groups[UNKNOWN_REASONS:]:
        checks = words.count(len({check for group in rest for check in group.checks}), "check")
        nodes = words.node_set(tuple(dict.fromkeys(node for group in rest for node in group.nodes)))
        reasons = words.count(len(rest), "other reason")
        page.say(f"{tr(_FOR_OTHERS[outcome], checks=checks, nodes=nodes, reasons=reasons)} {tr(_ALL_IN_JSON)}", sign)


_FOR_OTHERS = {
    "crashed": marked("{checks} crashed on {nodes} for {reasons}"),
    "unknown": marked("{checks} unknown on {nodes} for {reasons}"),
    "not run": marked("{checks} not run on {nodes} for {reasons}"),
}


def _need_root(page: Page, verdicts: Sequence[Verdict], how: str) -> None:
    if verdicts:
        checks = tuple(dict.fromkeys(verdict.check for verdict in verdicts))
        nodes = words.node_set(names_in(verdicts))
        one = tr("1 check needs root on {nodes} ({how})", nodes=nodes, how=how)
        several = tr("{number} checks need root on {nodes} ({how})", number=len(checks), nodes=nodes, how=how)
        _dim(page, (one if len(checks) == 1 else several) + tr(": ") + words.joined(checks, CHECK_NAMES))


def _skipped(page: Page, groups: Sequence[FoldedVerdicts]) -> None:
    """Print one line per node set: what does not exist cannot be checked, and need not be read check by check."""
    by_nodes: dict[tuple[str, ...], list[FoldedVerdicts]] = {}
    for group in groups:
        by_nodes.setdefault(group.nodes, []).append(group)
    ordered = sorted(by_nodes.items(), key=lambda item: -sum(len(group.checks) for group in item[1]))
    for nodes, same in ordered[:NODE_SETS]:
        checks = words.count(sum(len(group.checks) for group in same), "check")
        skipped = tr("{checks} skipped on {nodes}", checks=checks, nodes=words.node_set(nodes))
        _dim(page, f"{skipped}{_skip_reasons(same)}")
    if rest := {check for _, same in ordered[NODE_SETS:] for group in same for check in group.checks}:
        skipped = tr("{checks} skipped on other nodes", checks=words.count(len(rest), "check"))
        _dim(page, f"{skipped} {tr(_ALL_IN_JSON)}")


def _skip_reasons(same: Sequence[FoldedVerdicts]) -> str:
    """Return the reasons that several checks share, such as missing hardware, with the number of checks."""
    shared = [group for group in same if len(group.checks) > 1][:SKIP_REASONS]
    if not shared:
        return f" {tr('(reasons in -o json)')}"
    reasons = [f"{_short(words.why(group.reason))} ({len(group.checks)})" for group in shared]
    others = sum(len(group.checks) for group in same) - sum(len(group.checks) for group in shared)
    rest = [tr("other reasons ({number})", number=others)] if others else []
    return tr(": ") + tr("; ").join([*reasons, *rest])


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON].rsplit(' ', 1)[0]} ..."


def _passed(page: Page, groups: Sequence[FoldedVerdicts]) -> None:
    sign = Text(f"{page.signs.well} ", "bold green")
    ordered = sorted(groups, key=lambda group: (-len(group.nodes), -len(group.checks)))
    shown = ordered if len(ordered) <= NODE_SETS else ordered[:1]
    for group in shown:
        checks = words.count(len(group.checks), "check")
        page.say(tr("{checks} passed on {nodes}", checks=checks, nodes=words.node_set(group.nodes)), sign)
    if rest := ordered[len(shown) :]:
        more = words.count(sum(len(group.checks) for group in rest), "more check")
        page.say(tr("{checks} passed on some nodes only", checks=more), sign)


def _dim(page: Page, text: str) -> None:
    page.say(text, Text(f"{page.signs.skipped} ", "dim"), style="dim")


def _nodes(page: Page, report: Report) -> None:
    """Print what the nodes have, one line per topic."""
    page.gap()
    page.say(tr("Nodes"), style="bold underline")
    for topic, values in node_topics(report).items():
        _topic(page, tr(topic), values)
    lost = {node.name: node.cause or tr("cause unknown") for node in report.nodes if not node.reached}
    _topic(page, tr("unreachable"), lost, always_named=True)


def _topic(page: Page, topic: str, values: Mapping[str, str], *, always_named: bool = False) -> None:
    """Print one topic: a value that all nodes share in one line, else each value with its nodes, most common first."""
    groups = grouped({name: words.line(value) for name, value in values.items()})
    if len(groups) > MANY_VALUES or (len(groups) == len(values) > VALUES_PER_TOPIC):
        several = tr("{number} different values, such as {value}", number=len(groups), value=groups[0][0])
        groups = ((several, groups[0][1]),)
    for number, (value, nodes) in enumerate(groups[:VALUES_PER_TOPIC]):
        where = tr("{nodes}: ", nodes=words.node_set(nodes)) if len(groups) > 1 or always_named else ""
        label = words.line(topic) if number == 0 else ""
        page.say(Text.assemble((where, "magenta"), value), Text(f"  {padded(label, _LABEL)} ", "dim"))
    if rest := groups[VALUES_PER_TOPIC:]:
        others = [node for _, nodes in rest for node in nodes]
        more = words.count(len(rest), "other value")
        page.say(tr("{values} on {nodes}", values=more, nodes=words.node_set(others)), " " * (_LABEL + 3), style="dim")


def _plan(page: Page, report: Report) -> None:
    plan = report.plan
    if not (plan.env or plan.lines or plan.notes):
        return
    page.gap()
    unusable = blocked(plan)
    title = tr("{what} ({note})", what=tr("Launch plan"), note=unusable) if unusable else tr("Launch plan")
    page.say(title, style="bold underline")
    for exports, sentence, reason in plan_settings(plan):
        for line in exports:
            page.verbatim(line, "  ", style="bold")
        if sentence:
            page.verbatim(sentence, "  ")
        if reason:
            page.say(words.line(reason), "      ", style="dim")
    for launcher, line in plan.lines.items():
        page.say(f"{words.line(launcher)}:", "  ")
        for part in words.lines(line):
            page.verbatim(part, style="bold green")
        for reason in plan.reasons.get(launcher, ()):
            page.say(words.line(reason), "      ", style="dim")
    for note in plan.notes:
        page.say(words.line(note), Text(f"  {page.signs.warned} ", "yellow"))
