"""One line per finding, for grep, an editor, or a chat: `node: CODE name: message [severity, fix]`, never wrapped.

Nodes with the same finding share a line; the set is never cut. Below the findings: what was not checked, the counts,
the origin, and the answer last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from ncheck.hostlist import fold
from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.language import marked, tr
from ncheck.report.state import answer, not_checked
from ncheck.report.summary import looked_again, nodes_of, origin, urgency
from ncheck.report.text import FoldedFinding, counted, fold_findings

_TO_TYPE = {
    "fix": marked("{number} with a fix"),
    "look": marked("{number} with a command that shows more"),
    "do": marked("{number} with a sentence that says what to do"),
}


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  plain lines
    """Print the lines, the worst finding first."""
    stream.writelines(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from (f"again: {sentence}" for sentence in looked_again(report))
    findings = sorted(fold_findings(report.findings), key=urgency)
    for one in findings:
        nodes = words.line(fold(one.nodes)) or tr("this machine")
        kinds = ", ".join([tr(one.label), *([tr(one.kind)] if one.fix else [])])
        yield f"{nodes}: {one.code} {one.check}: {one.sentence} [{kinds}]"
    named = nodes_of(one for one in findings if one.counts)
    yield from (tr("not checked: {sentence}", sentence=sentence) for sentence in not_checked(report, named))
    if findings:
        yield tr("; ").join([str(counted(findings)), *_to_type(findings)])
    yield " · ".join(origin(report))
    yield answer(report).text


def _to_type(findings: Iterable[FoldedFinding]) -> Iterator[str]:
    """Yield how many of the findings have something to type, and where it is shown."""
    kinds = Counter(one.kind for one in findings if one.fix)
    if kinds:
        yield tr(", ").join(tr(what, number=kinds[kind]) for kind, what in _TO_TYPE.items() if kinds[kind])
        yield tr("-o console shows them")
