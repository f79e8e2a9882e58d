"""The report's end: the plan, why nothing was measured, and the last line, which says what the exit code means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from doctor.errors import EXIT_CLEAN, EXIT_INTERRUPTED
from doctor.model.finding import Outcome, Severity, Verdict
from doctor.model.plan import LaunchPlan
from doctor.model.report import Report
from doctor.reasoning.parity import gathered
from doctor.report import text as words
from doctor.report.folding import Block, outcome_counts
from doctor.report.page import Page
from doctor.shell_words import export


def print_tail(page: Page, report: Report, found: Sequence[Block]) -> None:
    """Print the plan, why no probe ran, the sum and what the exit code means."""
    wrong = any(block.severity is Severity.ERROR and not block.ignored for block in found)
    _plan(page, report, "Plan, once what is wrong above is mended" if wrong else "Plan")
    _no_probe(page, report)
    page.gap()
    page.say(f" {page.signs.dot} ".join(summed(report, found)), style="bold")
    page.say(f"exit code {report.exit_code}: {meaning(report)}", style="bold")


def _plan(page: Page, report: Report, heading: str) -> None:
    plan = report.plan
    if not (plan.env or plan.lines or plan.notes):
        return
    page.gap()
    page.say(heading, style="bold underline")
    for name, setting in plan.env.items():
        _setting(page, plan, name)
        page.say(words.line(setting.reason), "      ", style="dim")
    for launcher, line in plan.lines.items():
        page.say(f"with {words.line(launcher)}:", "  ")
        for part in words.lines(line):
            page.verbatim(part, style="bold green")
        for reason in plan.reasons.get(launcher, ()):
            page.say(words.line(reason), "      ", style="dim")
    for note in plan.notes:
        page.say(words.line(note), Text(f"  {page.signs.warned} ", "yellow"))


def _setting(page: Page, plan: LaunchPlan, name: str) -> None:
    """Print a variable's value for all nodes, or those of each, or why it has none."""
    setting = plan.env[name]
    own = {node: held[name].value or "" for node, held in plan.per_node.items() if name in held}
    if setting.value is not None:
        page.verbatim(export(words.line(name), words.line(setting.value)), "  ", style="bold")
    elif own:
        for value, nodes in gathered(own).items():
            page.verbatim(
                f"{export(words.line(name), words.line(value))}  # on {words.node_set(nodes)}", "  ", style="bold"
            )
    else:
        page.say(f"{words.line(name)} {'can stay unset' if setting.decided else 'is not decided'}", "  ")


def _no_probe(page: Page, report: Report) -> None:
    """Say why nothing was measured, where nothing was; what was measured has a section of its own."""
    if not report.probe.ran:
        page.gap()
        page.say(words.line(report.probe.reason), Text(f"{page.signs.skipped} ", "dim"), style="dim")


def summed(report: Report, found: Sequence[Block]) -> tuple[str, ...]:
    counts = Counter(block.severity for block in found if not block.ignored)
    ignored = sum(block.ignored for block in found)
    parts = [words.count(counts[severity], severity.value) for severity in (Severity.ERROR, Severity.WARNING)]
    parts += [f"{counts[Severity.INFO]} info"] if counts[Severity.INFO] else []
    parts += [f"{ignored} ignored"] if ignored else []
    told = ", ".join(_outcomes(report.verdicts))
    return ", ".join(parts), f"{words.count(len(report.verdicts), 'verdict')}: {told}", f"{report.seconds:.1f} s"


def _outcomes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    needs_root = sum(verdict.needs_root for verdict in verdicts)
    for outcome, number in outcome_counts(verdicts).items():
        if number:
            rootless = f" ({needs_root} for want of root)" if outcome is Outcome.SKIPPED and needs_root else ""
            yield f"{number} {outcome.value}{rootless}"


def meaning(report: Report) -> str:
    rule = f"(--fail-on {','.join(report.fail_on) or 'none'})"
    unknown = any(verdict.outcome is Outcome.UNKNOWN for verdict in report.verdicts)
    standing = [finding for finding in report.findings if not finding.ignored]
    if report.exit_code == EXIT_INTERRUPTED:
        return "interrupted"
    if report.exit_code == EXIT_CLEAN:
        return f"nothing above counts as failed {rule}" if standing or unknown else "clean"
    if any(finding.severity.value in report.fail_on for finding in standing) or not unknown:
        return f"what was found above counts as failed {rule}"
    return f"what could not be told counts as failed {rule}"
