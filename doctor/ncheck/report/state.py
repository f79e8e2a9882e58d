"""The answer for readers who see little else of a report, such as a monitor: never better than what was checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.summary import (
    CLEAN,
    NOT_VERIFIED,
    WARNINGS,
    Headline,
    checks_of,
    headline,
    left_out,
    unreached_and_unknown,
)
from ncheck.report.text import fold_findings, fold_verdicts, grouped


def state_of(report: Report) -> Headline:
    """Return the headline. An interrupted run is not verified; one that left nodes out is not clean."""
    answer = headline(report, fold_findings(report.findings))
    kind, text = answer.kind, words.line(answer.text) + (" (recorded data, not live)" if report.recorded else "")
    if report.interrupted:
        return Headline(NOT_VERIFIED if kind in (CLEAN, WARNINGS) else kind, f"Interrupted. {text}")
    if report.dropped:
        every = {*report.dropped, *(node.name for node in report.nodes)}
        return Headline(WARNINGS if kind == CLEAN else kind, f"{text}; {left_out(report.dropped, len(every))}")
    return Headline(kind, text)


def not_checked(report: Report, explained: Collection[str] = ()) -> Iterator[str]:
    """Yield a sentence for each cause: which nodes were not reached, and which checks could not run elsewhere.

    `explained`: nodes of which a finding says already that they were not reached.
    """
    not_run, unknown = unreached_and_unknown(report)
    codes = checks_of(not_run)
    lost = {node.name: node.cause or "cause unknown" for node in report.nodes
            if not node.reached and node.name not in explained}  # fmt: skip
    for cause, nodes in grouped(lost):
        checks = max(codes[node] for node in nodes)
        yield f"{words.node_set(nodes)} not reached ({words.line(cause)}): {words.count(checks, 'check')} not run"
    for group in fold_verdicts(unknown):
        names = words.joined(group.checks, 3)
        yield f"{names} unknown on {words.node_set(group.nodes)}: {words.line(group.reason)}"
