"""The report for people: what is wrong first, in plain words, each with something to type; what is well in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TextIO

from rich.text import Text

from doctor.model.finding import Outcome, Severity, Verdict
from doctor.model.report import Report
from doctor.report import text as words
from doctor.report.folding import Block, Told, blocks, told
from doctor.report.head import print_head, print_nodes
from doctor.report.page import Page
from doctor.report.tail import print_tail
from doctor.report.topics import topic_of

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
EVIDENCE_LINES = 4
BLOCKS_A_CHECK = 3
REASONS = 6
NAMES = 3
TWO_SETS = 2
NOT_REACHED = "NC001"


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the whole report, worst first."""
    page = Page(stream, environ, color=color)
    found = blocks(report.findings, {node.name for node in report.nodes})
    print_head(page, report, found)
    _findings(page, found)
    _verdicts(page, report)
    print_nodes(page, report)
    print_tail(page, report, found)


def _findings(page: Page, found: Sequence[Block]) -> None:
    """Print the categories that have findings: the one with the worst first, what was ignored last."""
    categories: dict[str, list[Block]] = {}
    for block in found:
        categories.setdefault(topic_of(block.code), []).append(block)
    explained = {node for block in found if block.code.startswith("NC1") for node in block.nodes}
    for topic, members in sorted(categories.items(), key=lambda one: min(_badness(block) for block in one[1])):
        page.gap()
        page.say(topic, style="bold underline")
        _category(page, sorted(members, key=_badness), explained)


def _category(page: Page, found: Sequence[Block], explained: AbstractSet[str]) -> None:
    """Print a category's findings by check. That a node was not reached is one line where the cause stands above."""
    by_check: dict[tuple[str, bool], list[Block]] = {}
    for block in found:
        by_check.setdefault((block.code, block.ignored), []).append(block)
    for same in by_check.values():
        for block in same[:BLOCKS_A_CHECK]:
            _title(page, block)
            if block.code != NOT_REACHED or not explained >= set(block.nodes):
                _body(page, block)
        if rest := same[BLOCKS_A_CHECK:]:
            nodes = tuple(dict.fromkeys(node for block in rest for node in block.nodes))
            page.say(f"and {words.count(len(rest), 'more finding')} of {rest[0].check}, each in other words, on "
                     f"{words.node_set(nodes)}; -o json has them all", "    ", style="dim")  # fmt: skip


def _badness(block: Block) -> tuple[bool, int, bool, str]:
    """Sort key: what stands before what is ignored, the worst first, causes before ncheck's own summary of them."""
    return block.ignored, block.severity.rank, block.code.startswith("NC0"), block.code


def _title(page: Page, block: Block) -> None:
    style = "dim" if block.ignored else STYLES[block.severity]
    sign = page.signs.bad if block.severity is Severity.ERROR and not block.ignored else page.signs.warned
    label = "ignored" if block.ignored else block.severity.value
    nodes = words.node_set(block.nodes)
    title = Text.assemble((f"{label} ", style), (f"{block.code} {block.check}", "bold"), "  ", (nodes, "bold magenta"))
    page.say(title, Text(f"  {sign} ", style=style))


def _body(page: Page, block: Block) -> None:
    page.say(words.line(block.message), "    ")
    for evidence in block.evidence[:EVIDENCE_LINES]:
        for line in words.lines(evidence)[:EVIDENCE_LINES]:
            page.say(line, "      ", style="dim")
    if len(block.evidence) > EVIDENCE_LINES:
        more = words.count(len(block.evidence) - EVIDENCE_LINES, "more line")
        page.say(f"... {more}: -o json has them all", "      ", style="dim")
    _fix(page, block)


def _fix(page: Page, block: Block) -> None:
    for line in words.lines(block.fix):
        page.verbatim(line, Text(f"    {page.signs.type_this} ", style="green"), style="bold green")
    if block.example and len(block.nodes) > 1:
        page.say(f"that is for {words.line(block.example)}; likewise for the others", "      ", style="dim")


def _verdicts(page: Page, report: Report) -> None:
    """Print what could not be told, what was left out, and in few lines what is well."""
    page.gap()
    signs = page.signs
    crashed = told(report.verdicts, lambda verdict: verdict.outcome is Outcome.CRASHED)
    unknown = told(report.verdicts, lambda verdict: verdict.outcome is Outcome.UNKNOWN)
    skipped = told(report.verdicts, lambda verdict: verdict.outcome is Outcome.SKIPPED and not verdict.needs_root)
    _told(page, Text(f"{signs.bad} ", "bold red"), crashed, "crashed on")
    _told(page, Text(f"{signs.doubtful} ", "bold magenta"), unknown, "could not tell on")
    _told(page, Text(f"{signs.skipped} ", "dim"), skipped, "skipped on", style="dim")
    _needs_root(page, [verdict for verdict in report.verdicts if verdict.needs_root])
    _passed(page, report)


def _told(page: Page, sign: Text, folded: Sequence[Told], what: str, style: str = "") -> None:
    for one in folded[:REASONS]:
        names = ", ".join(one.checks) if len(one.checks) <= NAMES else words.count(len(one.checks), "check")
        page.say(f"{names} {what} {words.node_set(one.nodes)}: {words.line(one.reason)}", sign, style=style)
    if rest := folded[REASONS:]:
        checks = {check for one in rest for check in one.checks}
        nodes = tuple(dict.fromkeys(node for one in rest for node in one.nodes))
        page.say(f"{words.count(len(checks), 'check')} {what} {words.node_set(nodes)} for "
                 f"{words.count(len(rest), 'more reason')}: -o json has them all", sign, style=style)  # fmt: skip


def _needs_root(page: Page, verdicts: Sequence[Verdict]) -> None:
    if not verdicts:
        return
    checks = tuple(dict.fromkeys(verdict.check for verdict in verdicts))
    nodes = tuple(dict.fromkeys(verdict.node for verdict in verdicts))
    skipped = f"{words.count(len(checks), 'check')} skipped on {words.node_set(nodes)}: "
    page.say(f"{skipped}root is needed (--sudo): {words.joined(checks, NAMES)}", Text("- ", "dim"), style="dim")


def _passed(page: Page, report: Report) -> None:
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in told(report.verdicts, lambda verdict: verdict.outcome is Outcome.PASSED):
        groups.setdefault(one.nodes, []).extend(one.checks)
    ordered = sorted(groups.items(), key=lambda one: (-len(one[0]), -len(one[1])))
    shown = ordered if len(ordered) <= TWO_SETS else ordered[:1]
    for nodes, checks in shown:
        passed = f"{words.count(len(checks), 'check')} passed on {words.node_set(nodes)}"
        page.say(passed, Text(f"{page.signs.well} ", "bold green"))
    if rest := ordered[len(shown) :]:
        more = words.count(sum(len(checks) for _, checks in rest), "more check")
        page.say(f"{more} passed on some of the nodes only", Text(f"{page.signs.well} ", "bold green"))
