"""The commands that drain the bad nodes in Slurm: printed for somebody to read and run, never run by ncheck.

Only nodes that were not reached or that an error names are drained: a check that could not run is no fault of a node.
The reason has codes and names of checks and nothing that a node wrote.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TextIO

from ncheck.hostlist import fold
from ncheck.model.report import BadNode, Report
from ncheck.report import text as words
from ncheck.report.state import state_of
from ncheck.report.summary import origin
from ncheck.report.text import grouped
from ncheck.saved_report import drain_reason


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  a script has no colours
    """Print a command per reason; what is only to be read is a comment."""
    stream.writelines(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"# {state_of(report).text}"
    yield f"# {', '.join(origin(report))}"
    if report.interrupted:
        yield "# interrupted: no node is judged"
    names = {finding.code: finding.check for finding in report.findings}
    faulty = {bad.node: _reason(bad, names) for bad in report.bad if not bad.unknown}
    everybody = len(report.nodes) > 1 and len(faulty) == len(report.nodes)
    if everybody:
        yield "# Every node is bad: look for one cause before you drain them all."
    for reason, nodes in grouped(faulty):
        words_ = ("scontrol", "update", f"nodename={fold(nodes)}", "state=drain", f"reason={reason}")
        yield ("# " if everybody else "") + shlex.join(words_)
    for bad in report.bad:
        if bad.unknown:
            yield f"# not drained, {words.line(bad.node)} is unknown: {words.line(bad.reason)}"
    for node, reason in report.dropped.items():
        yield f"# left out by --drop-bad, {words.line(node)}: {words.line(reason)}"


def _reason(bad: BadNode, names: Mapping[str, str]) -> str:
    """Return "ncheck: NC402 ib-port-polling, NC710 node-slow"."""
    return drain_reason(bad.codes, names) if bad.codes else "ncheck: not reached"
