"""The parts that every report on a terminal is made of: the headline, where it comes from, and a finding."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ncheck.model.finding import DO, Severity
from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.page import Page
from ncheck.report.summary import BAD, DOUBTFUL, WARNED, WELL, Headline, caveats, origin, read_more
from ncheck.report.text import FoldedFinding, fix_label, next_of

_SEVERITY = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
_HEADLINE = {BAD: "bold red", DOUBTFUL: "bold magenta", WARNED: "bold yellow", WELL: "bold green"}
_LONGEST_COMMAND = 400  # characters of the command line that made the report


def print_headline(page: Page, answer: Headline) -> None:
    """Print the answer: the first line of a report, and its last."""
    signs = page.signs
    sign = {BAD: signs.bad, DOUBTFUL: signs.doubtful, WARNED: signs.warned, WELL: signs.well}[answer.kind]
    page.say(Text(answer.text, _HEADLINE[answer.kind]), Text(f"{sign} ", _HEADLINE[answer.kind]))


def print_origin(page: Page, report: Report) -> None:
    """Print what was examined, when, where and by whom, and what limits all of it."""
    parts = [part[:_LONGEST_COMMAND] for part in origin(report)]
    page.say(f" {page.signs.dot} ".join(parts), "  ", style="dim")
    for caveat in caveats(report):
        page.say(caveat, Text(f"{page.signs.warned} ", "bold yellow"))


def print_news(page: Page, report: Report, most: int = 99) -> None:
    """Print what the history says of this run."""
    if report.news:
        page.gap()
    for sentence in report.news[:most]:
        page.say(words.line(sentence), Text(f"{page.signs.dot} {tr('history: ')}", "dim"))


def print_title(page: Page, finding: FoldedFinding) -> None:
    """Print "✗ error NC402 ib-port-polling  gpu04"; in another language, the check's title below it."""
    style = severity_style(finding)
    code = (f"{finding.code} {finding.check}", "bold")
    nodes = words.node_set(finding.nodes)
    page.say(
        Text.assemble((f"{tr(finding.label)} ", style), code, "  ", (nodes, "bold magenta")),
        Text(f"{severity_sign(page, finding)} ", style=style),
    )
    if finding.title:
        page.say(finding.title, "  ", style="bold")


def print_read_more(page: Page, findings: Sequence[FoldedFinding]) -> None:
    """Print, once in a report, where a finding is explained and how it is let pass."""
    if line := read_more(findings):
        page.verbatim(line, style="dim")


def severity_style(finding: FoldedFinding) -> str:
    """Return the style of a finding's severity."""
    return "dim" if not finding.counts else _SEVERITY[finding.severity]


def severity_sign(page: Page, finding: FoldedFinding) -> str:
    """Return the sign of a finding's severity."""
    return page.signs.bad if finding.severity is Severity.ERROR and finding.counts else page.signs.warned


def print_fix(page: Page, finding: FoldedFinding) -> None:
    """Print "→ fix on gpu04: COMMAND", whole and on one line, and the next step; a sentence has no arrow."""
    if finding.kind == DO:
        page.say(words.line(finding.fix), Text("  " + tr("{label}: ", label=fix_label(finding)), "dim"))
    for line in words.lines(finding.fix) if finding.kind != DO else ():
        first = Text.assemble(
            (f"  {page.signs.type_this} ", "green"), (tr("{label}: ", label=fix_label(finding)), "dim")
        )
        page.verbatim(line, first, style="bold green")
    if finding.example and len(finding.nodes) > 1:
        shown = tr("shown for {node}; repeat for the other nodes", node=words.line(finding.example))
        page.say(shown, "    ", style="dim")
    if step := next_of(finding):
        page.say(step, "  ")
