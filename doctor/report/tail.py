"""The report's end: the plan, what was measured, and the last line, which says what the exit code means."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from doctor.model.finding import Outcome, Severity
from doctor.model.report import Measurement, Report
from doctor.report import text as words
from doctor.report.folding import outcome_counts
from doctor.report.page import Page

_MEANINGS = {
    0: "clean",
    1: "something found is as bad as --fail-on says",
    2: "usage",
    3: "a bug of ncheck's",
    130: "interrupted",
}


def print_tail(page: Page, report: Report) -> None:
    """Print the plan, the probe and the sum."""
    _plan(page, report)
    _probe(page, report)
    page.gap()
    page.say(_sum(page, report), style="bold")


def _plan(page: Page, report: Report) -> None:
    plan = report.plan
    if not (plan.env or plan.lines or plan.notes):
        return
    page.gap()
    page.say("Plan", style="bold underline")
    for name, setting in plan.env.items():
        if setting.value is None:
            page.say(f"{words.line(name)} can stay unset", "  ")
        else:
            page.verbatim(f"{words.line(name)}={words.line(setting.value)}", "  ", style="bold")
        page.say(words.line(setting.reason), "      ", style="dim")
    for launcher, line in plan.lines.items():
        page.say(f"with {words.line(launcher)}:", "  ")
        for part in words.lines(line):
            page.verbatim(part, style="bold green")
    for note in plan.notes:
        page.say(words.line(note), Text(f"  {page.signs.warned} ", "yellow"))


def _probe(page: Page, report: Report) -> None:
    page.gap()
    for measurement in report.measurements:
        page.say(_measured(measurement), "  ")
    if not report.probe.ran:
        page.say(words.line(report.probe.reason), Text(f"{page.signs.skipped} ", "dim"), style="dim")


def _measured(one: Measurement) -> str:
    seen = "not measured" if one.measured is None else f"{one.measured:g} {one.unit}"
    wanted = "" if one.expected is None else f" of {one.expected:g} {one.unit} expected"
    limit = f", limited by {one.limited_by}" if one.limited_by else ""
    where = f" on {words.node_set(one.nodes)}" if one.nodes else ""
    return words.line(f"{one.what}{where}: {seen}{wanted}{limit}")


def _sum(page: Page, report: Report) -> str:
    found = Counter(finding.severity for finding in report.findings if not finding.ignored)
    ignored = sum(finding.ignored for finding in report.findings)
    outcomes = outcome_counts(report.verdicts)
    parts = [words.count(found[severity], severity.value) for severity in (Severity.ERROR, Severity.WARNING)]
    parts += [f"{ignored} ignored"] if ignored else []
    parts += [f"{outcomes[outcome]} {outcome.value}" for outcome in Outcome if outcomes[outcome]]
    meaning = _MEANINGS.get(report.exit_code, "")
    if report.exit_code == 1:
        meaning += f" ({','.join(report.fail_on)})"
    dot = f" {page.signs.dot} "
    return f"{', '.join(parts)}{dot}{report.seconds:.1f} s{dot}exit {report.exit_code}: {meaning}"
