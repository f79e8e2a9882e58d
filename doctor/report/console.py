"""The report for people: what is wrong first, in plain words, each with something to type; what is well in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from rich.text import Text

from doctor.model.finding import Severity
from doctor.model.report import Report
from doctor.report import text as words
from doctor.report.folding import Block, blocks
from doctor.report.head import print_head, print_nodes
from doctor.report.measured import print_measured
from doctor.report.page import Page
from doctor.report.tail import print_tail
from doctor.report.topics import topic_of
from doctor.report.verdicts import print_verdicts

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
EVIDENCE_LINES = 4
BLOCKS_A_CHECK = 3
NOT_REACHED = "NC001"


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the whole report, worst first."""
    page = Page(stream, environ, color=color)
    found = blocks(report.findings, {node.name for node in report.nodes})
    print_head(page, report, found)
    print_findings(page, found)
    print_verdicts(page, report)
    print_nodes(page, report)
    print_measured(page, report)
    print_tail(page, report, found)


def print_findings(page: Page, found: Sequence[Block]) -> None:
    """Print the categories that have findings: the one with the worst first, what was ignored last."""
    categories: dict[str, list[Block]] = {}
    for block in found:
        categories.setdefault(topic_of(block.code), []).append(block)
    explained = frozenset(node for block in found if block.code.startswith("NC1") for node in block.nodes)
    for topic, members in sorted(categories.items(), key=lambda one: min(badness(block) for block in one[1])):
        page.gap()
        page.say(topic, style="bold underline")
        _category(page, sorted(members, key=badness), explained)


def _category(page: Page, found: Sequence[Block], explained: frozenset[str]) -> None:
    """Print a category's findings by check. That a node was not reached is one line where the cause stands above."""
    by_check: dict[tuple[str, bool], list[Block]] = {}
    for block in found:
        by_check.setdefault((block.code, block.ignored), []).append(block)
    for same in by_check.values():
        nodes = _nodes_of(same)
        if same[0].code == NOT_REACHED and explained.issuperset(nodes):
            _title(page, replace(same[0], nodes=nodes))
            page.say("the cause stands above", "    ", style="dim")
        else:
            _check(page, same)


def _check(page: Page, same: Sequence[Block]) -> None:
    for block in same[:BLOCKS_A_CHECK]:
        _title(page, block)
        _body(page, block)
    if rest := same[BLOCKS_A_CHECK:]:
        more = f"and {words.count(len(rest), 'more finding')} of {rest[0].check}, each in other words, on "
        page.say(f"{more}{words.node_set(_nodes_of(rest))}; -o json has them all", "    ", style="dim")


def _nodes_of(same: Sequence[Block]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for block in same for node in block.nodes))


def badness(block: Block) -> tuple[bool, int, bool, str]:
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
