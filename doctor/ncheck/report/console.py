"""The report on a terminal, on one screen: the answer first and last, between them what is wrong, and the launch line.

-v prints everything (verbose.py), -q the headline alone (quiet.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.text import Text

from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import Report
from ncheck.report import measured as say
from ncheck.report import text as words
from ncheck.report.page import Draft, Page
from ncheck.report.parts import (
    label,
    print_fix,
    print_headline,
    print_origin,
    print_title,
    severity_sign,
    severity_style,
)
from ncheck.report.summary import (
    blocked,
    checks_of,
    exit_code_meaning,
    headline,
    names_in,
    reasons_to_set,
    totals,
    unknown_by_cause,
    unreached,
    urgency,
)
from ncheck.report.text import FoldedFinding, fold_findings, fold_verdicts, grouped

ROWS = 48  # of a screen of 50: the prompt and a line of progress need the others


@dataclass(frozen=True)
class Detail:
    """How much is shown: findings with their evidence and fix, findings in all, rows of evidence, of a message, and of
    each table.
    """

    whole: int
    findings: int
    evidence: int
    message: int
    rows: int


# From all there is room for, to the least. The first that fits on the screen is printed.
DETAILS = (
    Detail(whole=99, findings=99, evidence=3, message=3, rows=64),
    Detail(whole=8, findings=12, evidence=3, message=3, rows=16),
    Detail(whole=6, findings=10, evidence=1, message=2, rows=10),
    Detail(whole=4, findings=8, evidence=1, message=2, rows=8),
    Detail(whole=3, findings=6, evidence=0, message=1, rows=5),
)

Compose = Callable[[Page, Report, Sequence[FoldedFinding], Detail], None]


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the report, with as much of each part as fits on a screen."""
    _fitted(Page(stream, environ, color=color), report, _whole)


def print_brief(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the headline and the findings, for a command whose standard output belongs to another program."""
    _fitted(Page(stream, environ, color=color), report, _brief)


def _fitted(page: Page, report: Report, compose: Compose) -> None:
    findings = fold_findings(report.findings)
    for detail in DETAILS:
        draft = Draft(page)
        compose(draft, report, findings, detail)
        if draft.rows <= ROWS:
            break
    draft.print_on(page)


def _brief(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    print_headline(page, headline(report, findings))
    print_origin(page, report)
    _findings(page, findings, detail)
    page.gap()


def _whole(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    answer = headline(report, findings)
    print_headline(page, answer)
    print_origin(page, report)
    _findings(page, findings, detail)
    _unknown(page, report, detail)
    _nodes(page, report, findings, detail)
    _measured(page, report)
    _launch(page, report)
    page.gap()
    counts, _, seconds = totals(report, findings)
    page.say(f" {page.signs.dot} ".join((counts, seconds, "-v shows all")), style="dim")
    page.say(exit_code_meaning(report))
    print_headline(page, answer)


def _findings(page: Page, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    """Print the causes, worst first, each with what follows from it; the least important get a line each, or none."""
    ordered = sorted((one for one in findings if not one.see), key=urgency)
    worth_it = [one for one in ordered if one.severity is not Severity.INFO]
    following = _consequences(findings)
    if worth_it[: detail.whole]:
        page.gap()
    for finding in worth_it[: detail.whole]:
        print_title(page, finding)
        page.short(words.line(finding.message), "  ", detail.message)
        lines = [line for evidence in finding.evidence for line in words.lines(evidence)]
        for line in lines[: detail.evidence]:
            page.short(line, "    ", 1, style="dim")
        print_fix(page, finding)
        for one in following.get((finding.code, finding.nodes), ()):
            text = f"so also {one.code} {one.check}  {words.node_set(one.nodes)}  {words.line(one.message)}"
            page.short(text, "    ", 1, style="dim")
    brief = [*worth_it[detail.whole :], *(one for one in ordered if one.severity is Severity.INFO)]
    shown = max(detail.findings - len(worth_it[: detail.whole]), 0)
    for finding in brief[:shown]:
        _one_row(page, finding)
    if more := len(brief) - len(brief[:shown]):
        page.say(f"and {words.count(more, 'more finding')}: -v shows all", "  ", style="dim")


def _one_row(page: Page, finding: FoldedFinding) -> None:
    style = severity_style(finding)
    title = f"{label(finding)} {finding.code} {finding.check}  {words.node_set(finding.nodes)}  "
    first = Text(f"{severity_sign(page, finding)} ", style)
    page.short(Text.assemble((title, style), words.line(finding.message)), first, 1)


def _consequences(findings: Sequence[FoldedFinding]) -> dict[tuple[str, tuple[str, ...]], list[FoldedFinding]]:
    """Return what follows from each finding, by its code and nodes, at the first of its causes; on their own nodes it
    says nothing new.
    """
    following: dict[tuple[str, tuple[str, ...]], list[FoldedFinding]] = {}
    for see in dict.fromkeys(one.see for one in findings if one.see):
        causes = [one for one in findings if one.code in see and not one.see]
        own = {node for one in causes for node in one.nodes}
        new = [one for one in findings if one.see == see and not own.issuperset(one.nodes)]
        if causes:
            following.setdefault((causes[0].code, causes[0].nodes), []).extend(new)
    return following


def _unknown(page: Page, report: Report, detail: Detail) -> None:
    """Print the checks without an answer on nodes that were reached, one line for each reason."""
    unknown, explained = unknown_by_cause(report)
    if unknown or explained:
        page.gap()
    groups = fold_verdicts(one for one in unknown if one.outcome is Outcome.UNKNOWN)
    crashed = fold_verdicts(one for one in unknown if one.outcome is Outcome.CRASHED)
    lines = [(f"{_checks(group.checks)} {outcome} on {words.node_set(group.nodes)}: {words.line(group.reason)}")
             for outcome, same in (("crashed", crashed), ("unknown", groups)) for group in same]  # fmt: skip
    for codes, verdicts in explained.items():
        checks = tuple(dict.fromkeys(one.check for one in verdicts))
        lines.append(f"{_checks(checks)} unknown on {words.node_set(names_in(verdicts))}: see {', '.join(codes)}")
    for line in lines[: detail.rows]:
        page.short(line, Text(f"{page.signs.doubtful} ", "bold magenta"), detail.message)
    if more := len(lines) - len(lines[: detail.rows]):
        page.say(f"and {words.count(more, 'other reason')}: -v shows all", "  ", style="dim")


def _checks(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) == 1 else words.count(len(names), "check")


def _nodes(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    """Print a row for each node that is not fine; nodes with the same row share it."""
    rows = grouped({name: row for name, row in _troubles(report, findings).items() if row})
    if not rows:
        return
    page.gap()
    names = [words.node_set(nodes) for _, nodes in rows[: detail.rows]]
    width = max(map(len, names))
    for name, (row, _) in zip(names, rows, strict=False):
        page.short(row, Text(f"  {name:<{width}}  ", "bold magenta"), 1)
    if more := [node for _, nodes in rows[detail.rows :] for node in nodes]:
        page.say(f"and {words.count(len(more), 'more node')}: -v shows all", "  ", style="dim")
    if fine := len(report.nodes) - sum(len(nodes) for _, nodes in rows):
        page.say("the other node is fine" if fine == 1 else f"the other {fine} nodes are fine", "  ", style="dim")


def _troubles(report: Report, findings: Sequence[FoldedFinding]) -> dict[str, str]:
    """Return what is wrong on each node: "NC402 mlx5_5 has no link, NC201 NCCL differs, 3 checks unknown"."""
    parts: dict[str, dict[str, None]] = {node.name: {} for node in report.nodes}
    for finding in sorted(findings, key=urgency):
        if finding.counts and finding.severity is not Severity.INFO:
            for name in finding.nodes:
                parts[name][f"{finding.code} {finding.summary}"] = None
    unknown, _ = unknown_by_cause(report)
    for name, number in checks_of(unknown).items():
        parts[name][f"{words.count(number, 'check')} unknown"] = None
    for node in report.nodes:
        if not node.examined:
            why = [] if node.reached else ["unreachable" if parts[node.name] else unreached(node)]
            parts[node.name][", ".join([*why, "no other check ran"])] = None
    return {name: ", ".join(row) for name, row in parts.items()}


def _measured(page: Page, report: Report) -> None:
    """Print the measurement that counts most, or why there is none."""
    first = say.foremost(report.measurements) if report.probe.ran else None
    page.gap()
    if first is None:
        page.short(words.line(report.probe.reason), Text(f"{page.signs.skipped} ", "dim"), style="dim")
        return
    recorded = " (recorded)" if report.recorded else ""
    text = f"measured{recorded}: {say.title(first, '')}: {say.verdict(first)}"
    page.short(text, Text(f"{page.signs.dot} ", say.STYLES[say.tone(first.standing)]), 3)


def _launch(page: Page, report: Report) -> None:
    """Print the launch line, or why there is none."""
    plan = report.plan
    if plan.lines:
        launcher, line = next(iter(plan.lines.items()))
        page.gap()
        page.say(f"launch with {words.line(launcher)}{blocked(plan)}:", style="bold")
        for part in words.lines(line):
            page.verbatim(part, style="bold green")
        for names, reason in reasons_to_set(plan):
            page.short(f"{names}: {reason}", "  ", 2, style="dim")
    elif plan.notes:
        page.gap()
        page.short(f"no launch line: {words.line(plan.notes[0])}", Text(f"{page.signs.warned} ", "yellow"), 2)
