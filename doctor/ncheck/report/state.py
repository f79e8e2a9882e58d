"""The answer for readers who see little else of a report, such as a monitor: never better than what was checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ncheck.model.report import Report, State
from ncheck.model.state import unreached_and_unknown
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.summary import Headline, checks_of, headline
from ncheck.report.text import fold_findings, fold_verdicts, grouped


def answer(report: Report) -> Headline:
    """Return the headline, on one line; of a recording it says that nothing in it is live."""
    made = headline(report, fold_findings(report.findings))
    details = tuple(map(words.line, made.details))
    if report.recorded:
        details = (*details[:-1], tr("{details} (recorded data, not live)", details=details[-1]))
    return replace(made, details=details)


def of_cluster(report: Report) -> Headline:
    """Return the answer for a monitor, which takes it for the state of the cluster: some checks alone verify none."""
    made = answer(report)
    if report.select and made.state is State.READY:
        return replace(made, state=State.NOT_VERIFIED)
    return made


def not_checked(report: Report, explained: Collection[str] = ()) -> Iterator[str]:
    """Yield a sentence for each cause: which nodes were not reached, and which checks could not run elsewhere.

    `explained`: nodes of which a finding says already that they were not reached.
    """
    not_run, unknown = unreached_and_unknown(report)
    codes = checks_of(not_run)
    lost = {node.name: node.cause or tr("cause unknown") for node in report.nodes
            if not node.reached and node.name not in explained}  # fmt: skip
    for cause, nodes in grouped(lost):
        checks = words.count(max(codes[node] for node in nodes), "check")
        yield tr(
            "{nodes} not reached ({cause}): {checks} not run",
            nodes=words.node_set(nodes), cause=words.line(cause), checks=checks,
        )  # fmt: skip
    for group in fold_verdicts(unknown):
        names, on = words.joined(group.checks, 3), words.node_set(group.nodes)
        yield tr("{checks} unknown on {nodes}: {reason}", checks=names, nodes=on, reason=words.line(group.reason))
