"""The report on a terminal, on one screen: the answer first and last, between them what is wrong, and the launch line.

-v prints everything (verbose.py), -q the headline alone (quiet.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from rich.text import Text

from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.listing import MEASURED
from ncheck.report.measured import BAD, UNJUDGED, WARNED, WELL
from ncheck.report.page import Draft, Page
from ncheck.report.parts import (
    print_fix,
    print_headline,
    print_news,
    print_origin,
    print_title,
    severity_sign,
    severity_style,
)
from ncheck.report.summary import (
    CLEAN,
    blocked,
    checks_of,
    consequences,
    exit_code_meaning,
    headline,
    names_in,
    reasons_to_set,
    totals,
    unknown_by_cause,
    unreached,
    urgency,
)
from ncheck.report.text import FoldedFinding, fold_findings, fold_verdicts, grouped, so_also
from ncheck.report.topics import DOUBTFUL, SKIPPED, topic_lines

ROWS = 48  # of a screen of 50: the prompt and a line of progress need the others
CLEAN_ROWS = 23  # of a clean run, on a screen of 24


@dataclass(frozen=True)
class Detail:
    """How much is shown: findings with their evidence and fix, findings in all, rows of evidence, of a message, of a
    topic, and of each table. `well`: a topic without a problem has a line of its own.
    """

    whole: int
    findings: int
    evidence: int
    message: int
    rows: int
    topic: int = 1
    well: bool = True


# From all there is room for, to the least. The first that fits on the screen is printed.
DETAILS = (
    Detail(whole=99, findings=99, evidence=3, message=3, rows=64, topic=3),
    Detail(whole=8, findings=12, evidence=3, message=3, rows=16),
    Detail(whole=6, findings=10, evidence=1, message=2, rows=10),
    Detail(whole=4, findings=8, evidence=1, message=2, rows=8, well=False),
    Detail(whole=3, findings=6, evidence=0, message=1, rows=5, well=False),
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
    rows = CLEAN_ROWS if headline(report, findings).kind == CLEAN else ROWS
    for detail in DETAILS:
        draft = Draft(page)
        compose(draft, report, findings, detail)
        if draft.rows <= rows or not page.fitted:
            break
    draft.print_on(page)


def _brief(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    print_headline(page, headline(report, findings))
    print_origin(page, report)
    _findings(page, report, findings, detail)
    page.gap()


def _whole(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    answer = headline(report, findings)
    print_headline(page, answer)
    print_origin(page, report)
    _findings(page, report, findings, detail)
    _unknown(page, report, detail)
    print_news(page, report, detail.rows)
    _nodes(page, report, findings, detail)
    _topics(page, report, findings, detail)
    _launch(page, report, detail)
    page.gap()
    counts, _, seconds = totals(report, findings)
    page.say(f" {page.signs.dot} ".join((counts, seconds, "-v shows all")), style="dim")
    page.say(exit_code_meaning(report))
    print_headline(page, answer)


def _findings(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    """Print the causes, worst first, each with what follows from it; the least important get a line each, or none.

    What is only worth knowing is for -v.
    """
    ordered = sorted((one for one in findings if not one.see), key=urgency)
    worth_it = [one for one in ordered if one.severity is not Severity.INFO]
    following = consequences(findings, elsewhere=True)
    if worth_it[: detail.whole]:
        page.gap()
    for finding in worth_it[: detail.whole]:
        print_title(page, finding)
        page.short(words.line(finding.message), "  ", detail.message)
        lines = [line for evidence in finding.evidence for line in words.lines(evidence)]
        for line in lines[: detail.evidence]:
            page.short(line, "    ", 1, style="dim")
        print_fix(page, finding)
        for one in following.get(finding, ()):
            page.short(so_also(one), "    ", 1, style="dim")
    noted = [one for one in ordered if one.severity is Severity.INFO and (one.ignored or "info" in report.fail_on)]
    brief = [*worth_it[detail.whole :], *noted]
    shown = max(detail.findings - len(worth_it[: detail.whole]), 0)
    for finding in brief[:shown]:
        _one_row(page, finding)
    if more := len(brief) - len(brief[:shown]):
        page.say(f"and {words.count(more, 'more finding')}: -v shows all", "  ", style="dim")


def _one_row(page: Page, finding: FoldedFinding) -> None:
    style = severity_style(finding)
    title = f"{finding.label} {finding.code} {finding.check}  {words.node_set(finding.nodes)}  "
    first = Text(f"{severity_sign(page, finding)} ", style)
    page.short(Text.assemble((title, style), words.line(finding.message)), first, 1)


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


def _topics(page: Page, report: Report, findings: Sequence[FoldedFinding], detail: Detail) -> None:
    """Print what was looked at, a line for each topic."""
    signs = page.signs
    signed = {
        BAD: (signs.bad, "bold red"), WARNED: (signs.warned, "bold yellow"), DOUBTFUL: (signs.doubtful, "bold magenta"),
        UNJUDGED: (signs.dot, "cyan"), WELL: (signs.well, "green"), SKIPPED: (signs.skipped, "dim"),
    }  # fmt: skip
    lines = topic_lines(report, findings)
    shown = [line for line in lines if detail.well or line.mark not in (WELL, SKIPPED) or line.topic == MEASURED]
    width = max((len(line.topic) for line in lines), default=0)
    if lines:
        page.gap()
    for line in shown:
        sign, style = signed[line.mark]
        rows = max(detail.topic, 2) if line.topic == MEASURED and line.mark != SKIPPED else detail.topic
        page.short(line.text, Text.assemble((f"{sign} ", style), f"{line.topic:<{width}}  "), rows)
    if others := [line.topic for line in lines if line not in shown]:
        page.short(f"no problem in {', '.join(others)}", Text(f"{signs.well} ", "green"))


def _launch(page: Page, report: Report, detail: Detail) -> None:
    """Print the launch line, or why there is none."""
    plan = report.plan
    if plan.lines:
        launcher, line = next(iter(plan.lines.items()))
        unusable = blocked(plan)
        page.gap()
        page.say(f"launch with {words.line(launcher)}{unusable}:", style="bold")
        for part in words.lines(line):
            page.verbatim(part, style="dim" if unusable else "bold green")
        for names, reason in reasons_to_set(plan):
            page.short(f"{names}: {reason}", "  ", detail.topic, style="dim")
    elif plan.notes:
        page.gap()
        page.short(f"no launch line: {words.line(plan.notes[0])}", Text(f"{page.signs.warned} ", "yellow"), 2)
