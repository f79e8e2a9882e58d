"""The report on a terminal: the answer first and last, between them what is wrong, and the launch line.

-v prints everything (verbose.py), -q the headline alone (quiet.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import Report
from ncheck.model.state import unknown_by_cause
from ncheck.report import text as words
from ncheck.report.language import marked, tr
from ncheck.report.measured import BAD, UNJUDGED, WARNED, WELL, nccl_choice
from ncheck.report.page import Page
from ncheck.report.parts import (
    print_fix,
    print_headline,
    print_news,
    print_origin,
    print_read_more,
    print_title,
    severity_sign,
    severity_style,
)
from ncheck.report.summary import (
    DOUBTFUL,
    blocked,
    checks_of,
    consequences,
    exit_code_meaning,
    headline,
    names_in,
    pins,
    reasons_to_set,
    totals,
    unreached,
    urgency,
)
from ncheck.report.text import FoldedFinding, fold_findings, fold_verdicts, grouped, padded, so_also
from ncheck.report.topics import SKIPPED, topic_lines

FINDINGS, EVIDENCE = 99, 3  # that are shown, and lines of evidence of each
ROWS = 64  # of each other part


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the report. How much it says does not depend on the window: a terminal scrolls."""
    page, findings = Page(stream, environ, color=color), fold_findings(report.findings)
    answer = headline(report, findings)
    print_headline(page, answer)
    print_origin(page, report)
    _findings(page, report, findings)
    if not report.interrupted:  # then nothing else is known of the nodes
        _unknown(page, report)
        print_news(page, report, ROWS)
        _nodes(page, report, findings)
        _topics(page, report, findings)
        _launch(page, report)
    page.gap()
    counts, _, seconds = totals(report, findings)
    page.say(f" {page.signs.dot} ".join((counts, seconds, tr("-v shows all"))), style="dim")
    print_read_more(page, findings)
    page.say(exit_code_meaning(report))
    print_headline(page, answer)


def print_brief(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the headline and the findings, for a command whose standard output belongs to another program."""
    page, findings = Page(stream, environ, color=color), fold_findings(report.findings)
    print_headline(page, headline(report, findings))
    print_origin(page, report)
    _findings(page, report, findings)
    page.gap()
    print_read_more(page, findings)


def _findings(page: Page, report: Report, findings: Sequence[FoldedFinding]) -> None:
    """Print the causes, worst first, each with what follows from it; what is ignored gets a line each.

    What is only worth knowing is for -v.
    """
    ordered = sorted((one for one in findings if not one.see), key=urgency)
    worth_it = [one for one in ordered if one.severity is not Severity.INFO]
    following = consequences(findings, elsewhere=True)
    if worth_it:
        page.gap()
    for finding in worth_it[:FINDINGS]:
        print_title(page, finding)
        page.say(words.line(finding.message), "  ")
        lines = [line for evidence in finding.evidence for line in words.lines(evidence)]
        for line in lines[:EVIDENCE]:
            page.say(line, "    ", style="dim")
        print_fix(page, finding)
        for one in following.get(finding, ()):
            page.say(so_also(one), "    ", style="dim")
    noted = [one for one in ordered if one.severity is Severity.INFO and (one.ignored or "info" in report.fail_on)]
    for finding in noted[:FINDINGS]:
        _one_row(page, finding)
    if more := len(worth_it[FINDINGS:]) + len(noted[FINDINGS:]):
        _more(page, words.count(more, "more finding"))


def _more(page: Page, what: str) -> None:
    page.say(tr("and {what}: -v shows all", what=what), "  ", style="dim")


def _one_row(page: Page, finding: FoldedFinding) -> None:
    style = severity_style(finding)
    title = f"{tr(finding.label)} {finding.code} {finding.check}  {words.node_set(finding.nodes)}  "
    first = Text(f"{severity_sign(page, finding)} ", style)
    page.say(Text.assemble((title, style), finding.sentence), first)


def _unknown(page: Page, report: Report) -> None:
    """Print the checks without an answer on nodes that were reached, one line for each reason."""
    unknown, explained = unknown_by_cause(report)
    if unknown or explained:
        page.gap()
    groups = fold_verdicts(one for one in unknown if one.outcome is Outcome.UNKNOWN)
    crashed = fold_verdicts(one for one in unknown if one.outcome is Outcome.CRASHED)
    lines = [_no_answer(outcome, group.checks, group.nodes, words.line(group.reason))
             for outcome, same in (("crashed", crashed), ("unknown", groups)) for group in same]  # fmt: skip
    for codes, verdicts in explained.items():
        checks = tuple(dict.fromkeys(one.check for one in verdicts))
        lines.append(_no_answer("unknown", checks, names_in(verdicts), tr("see {codes}", codes=", ".join(codes))))
    for line in lines[:ROWS]:
        page.say(line, Text(f"{page.signs.doubtful} ", "bold magenta"))
    if more := len(lines[ROWS:]):
        _more(page, words.count(more, "other reason"))


def _no_answer(outcome: str, checks: Sequence[str], nodes: Sequence[str], reason: str) -> str:
    return tr(NO_ANSWER[outcome], checks=_checks(checks), nodes=words.node_set(nodes), reason=reason)


NO_ANSWER = {
    "crashed": marked("{checks} crashed on {nodes}: {reason}"),
    "unknown": marked("{checks} unknown on {nodes}: {reason}"),
    "not run": marked("{checks} not run on {nodes}: {reason}"),
}


def _checks(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) == 1 else words.count(len(names), "check")


def _nodes(page: Page, report: Report, findings: Sequence[FoldedFinding]) -> None:
    """Print a row for each node that is not fine; nodes with the same row share it."""
    rows = grouped({name: row for name, row in _troubles(report, findings).items() if row})
    if not rows:
        return
    page.gap()
    names = [words.node_set(nodes) for _, nodes in rows[:ROWS]]
    width = max(map(cell_len, names))
    for name, (row, _) in zip(names, rows, strict=False):
        page.say(row, Text(f"  {padded(name, width)}  ", "bold magenta"))
    if more := [node for _, nodes in rows[ROWS:] for node in nodes]:
        _more(page, words.count(len(more), "more node"))
    if fine := len(report.nodes) - sum(len(nodes) for _, nodes in rows):
        others = tr("the other {number} nodes are fine", number=fine)
        page.say(tr("the other node is fine") if fine == 1 else others, "  ", style="dim")


def _troubles(report: Report, findings: Sequence[FoldedFinding]) -> dict[str, str]:
    """Return what is wrong on each node: "NC402 mlx5_5 has no link, NC201 NCCL differs, 3 checks unknown"."""
    parts: dict[str, dict[str, None]] = {node.name: {} for node in report.nodes}
    for finding in sorted(findings, key=urgency):
        if finding.counts and finding.severity is not Severity.INFO:
            for name in finding.nodes:
                parts[name][f"{finding.code} {finding.summary}"] = None
    unknown, _ = unknown_by_cause(report)
    for name, number in checks_of(unknown).items():
        parts[name][tr("{checks} unknown", checks=words.count(number, "check"))] = None
    for node in report.nodes:
        if not node.examined:
            why = [] if node.reached else [tr("unreachable") if parts[node.name] else unreached(node)]
            parts[node.name][tr(", ").join([*why, tr("no other check ran")])] = None
    return {name: tr(", ").join(row) for name, row in parts.items()}


def _topics(page: Page, report: Report, findings: Sequence[FoldedFinding]) -> None:
    """Print what was looked at, a line for each topic."""
    signs = page.signs
    signed = {
        BAD: (signs.bad, "bold red"), WARNED: (signs.warned, "bold yellow"), DOUBTFUL: (signs.doubtful, "bold magenta"),
        UNJUDGED: (signs.dot, "cyan"), WELL: (signs.well, "green"), SKIPPED: (signs.skipped, "dim"),
    }  # fmt: skip
    lines = topic_lines(report, findings)
    width = max((cell_len(line.topic) for line in lines), default=0)
    if lines:
        page.gap()
    for line in lines:
        sign, style = signed[line.mark]
        page.say(line.text, Text.assemble((f"{sign} ", style), f"{padded(line.topic, width)}  "))
    if choice := nccl_choice(report.probe):
        page.say(choice, " " * (width + 4), style="dim")


def _launch(page: Page, report: Report) -> None:
    """Print the launch line, or why there is none."""
    plan = report.plan
    if plan.lines:
        launcher, line = next(iter(plan.lines.items()))
        unusable = blocked(plan)
        page.gap()
        title = tr("launch with {launcher}", launcher=words.line(launcher))
        title = tr("{what} ({note})", what=title, note=unusable) if unusable else title
        page.say(tr("{label}: ", label=title).rstrip(), style="bold")
        for part in words.lines(line):
            page.verbatim(part, style="dim" if unusable else "bold green")
        for names, reason in reasons_to_set(plan):
            page.say(tr("{names}: {reason}", names=names, reason=reason), "  ", style="dim")
        for line in pins(plan):
            page.verbatim(line, "  ", style="dim")
    elif plan.notes:
        page.gap()
        page.say(
            tr("no launch line: {reason}", reason=words.line(plan.notes[0])), Text(f"{page.signs.warned} ", "yellow")
        )
