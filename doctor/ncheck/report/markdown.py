"""The report as Markdown: for an issue, a chat, or the summary of a CI job. Whatever a node wrote is text in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from ncheck.model.finding import DO
from ncheck.model.report import Report
from ncheck.report import measured as say
from ncheck.report import text as words
from ncheck.report.environment import PropertyRow, environment
from ncheck.report.language import tr
from ncheck.report.state import answer, not_checked
from ncheck.report.summary import by_topic, consequences, exit_code_meaning, looked_again, origin, read_more, totals
from ncheck.report.tables import aligned, as_markdown, escaped
from ncheck.report.text import FoldedFinding, fix_label, fold_findings, grouped, next_of, so_also

EVIDENCE_LINES = 8
MOST_VALUES = 12  # of one property that differs between nodes


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  Markdown has no colours
    """Write the report."""
    stream.write("\n\n".join(_parts(report)) + "\n")


def _parts(report: Report) -> Iterator[str]:
    """Yield the paragraphs, the answer first."""
    findings = fold_findings(report.findings)
    yield f"# {escaped(answer(report).text)}"
    yield escaped(" · ".join(origin(report)))
    yield from map(escaped, looked_again(report))
    following = consequences(findings)
    for topic, members in by_topic(one for one in findings if not one.see or one.ignored).items():
        yield f"## {escaped(tr(topic))}"
        for one in members:
            yield from _finding(one, following.get(one, ()))
    if sentences := list(not_checked(report)):
        yield f"## {tr('Not checked')}"
        yield "\n".join(f"- {escaped(sentence)}" for sentence in sentences)
    if report.news:
        yield f"## {tr('History')}"
        yield "\n".join(f"- {escaped(sentence)}" for sentence in report.news)
    if report.bad:
        yield f"## {tr('Bad nodes')}"
        reasons = grouped({bad.node: bad.reason for bad in report.bad})
        yield as_markdown((tr("nodes"), tr("reason")), ((words.node_set(nodes), reason) for reason, nodes in reasons))
    yield f"## {tr('Bandwidth')}"
    yield escaped(say.how_measured(report))
    if report.measurements:
        rows = ((say.title(one, ""), say.verdict(one)) for one in report.measurements)
        yield as_markdown((tr("what"), tr("result")), rows)
        if timed := say.protocol(report.measurements):
            yield escaped(timed)
    if report.plan.lines:
        yield f"## {tr('Launch plan')}"
        for launcher, line in report.plan.lines.items():
            yield f"{escaped(launcher)}:"
            yield code_block(line)
    yield from _environment(report)
    last = (*totals(report, findings), read_more(findings), exit_code_meaning(report))
    yield escaped(" · ".join(filter(None, last)))


def _environment(report: Report) -> Iterator[str]:
    """Yield what all nodes have in common, what differs between them, and which nodes are not in the tables."""
    rows = environment(report)
    if not rows:
        return
    yield f"## {tr('Environment')}"
    nodes = words.node_set([node.name for node in report.nodes if node.reached])
    if same := [(row.name, row.values[0][0]) for row in rows if len(row.values) == 1]:
        yield as_markdown((tr("what"), nodes), same)
    if differing := [row for row in rows if len(row.values) > 1]:
        yield tr("Different between nodes:")
        yield as_markdown((tr("what"), tr("nodes"), tr("value")), (cells for row in differing for cells in _cells(row)))
    for board in report.boards:
        nodes, source = escaped(words.node_set(board.nodes)), escaped(board.source)
        yield tr("GPU topology of {nodes}, from {source}:", nodes=nodes, source=source)
        yield code_block("\n".join(line.rstrip() for line in aligned(board.matrix)))
    if lost := [node.name for node in report.nodes if not node.reached]:
        yield escaped(tr("Not reached, so not in these tables: {nodes}", nodes=words.node_set(lost)))


def _cells(row: PropertyRow) -> Iterator[tuple[str, str, str]]:
    for value, nodes in row.values[:MOST_VALUES]:
        yield row.name, words.node_set(nodes), value
    if others := [node for _, nodes in row.values[MOST_VALUES:] for node in nodes]:
        yield row.name, words.node_set(others), tr("other values: see -o json")


def _finding(one: FoldedFinding, following: Iterable[FoldedFinding]) -> Iterator[str]:
    yield f"### {tr(one.label)} {one.code} {escaped(one.check)}: {escaped(words.node_set(one.nodes))}"
    if one.title:
        yield f"**{escaped(one.title)}**"
    yield escaped(one.message)
    lines = [line for evidence in one.evidence for line in words.lines(evidence)]
    if lines:
        more = (
            [f"... {tr('{number} more lines', number=len(lines) - EVIDENCE_LINES)}"]
            if len(lines) > EVIDENCE_LINES
            else []
        )
        yield code_block("\n".join([*lines[:EVIDENCE_LINES], *more]))
    if one.kind == DO:
        yield tr("{label}: ", label=escaped(fix_label(one))) + escaped(one.fix)
    elif one.fix:
        yield tr("{label}: ", label=escaped(fix_label(one))).rstrip()
        yield code_block(one.fix)
    if step := next_of(one):
        yield escaped(step)
    if effects := [f"- {escaped(so_also(consequence))}" for consequence in following]:
        yield "\n".join(effects)


def code_block(text: str) -> str:
    """Return a block of code; its fence is longer than any in it."""
    body = "\n".join(words.lines(text))
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", body))])
    return f"{fence}text\n{body}\n{fence}"
