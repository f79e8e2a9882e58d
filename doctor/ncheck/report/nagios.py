"""The report of a monitoring plugin: one line with performance data, and the plugin's own exit codes.

As in the Monitoring Plugins' guidelines: OK 0, WARNING 1, CRITICAL 2, UNKNOWN 3. What could not be checked is UNKNOWN,
also where --fail-on would accept it, and so is the cluster after a run of some checks that found nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO

from ncheck.model.finding import Outcome
from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.measured import foremost
from ncheck.report.state import of_cluster
from ncheck.report.summary import BAD, DOUBTFUL, NOT_RUN, WARNED, WELL, counts_of_outcomes, origin
from ncheck.report.text import counts_of

_LONGEST = 900  # characters of the answer: some servers cut a line at 1 KiB

_STATES = {WELL: ("OK", 0), WARNED: ("WARNING", 1), BAD: ("CRITICAL", 2), DOUBTFUL: ("UNKNOWN", 3)}
EXIT_UNKNOWN = 3


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  one plain line
    """Print the line."""
    made = of_cluster(report)
    text = f"{made.text} [{', '.join(origin(report))}]"
    stream.write(f"{_plain(_STATES[made.kind][0], text)} | {' '.join(_performance(report))}\n")


def exit_code(report: Report) -> int:
    """Return the exit code of a plugin."""
    return _STATES[of_cluster(report).kind][1]


def no_report(message: str) -> str:
    """Return the line of a run that ended without a report: a monitor shows only standard output."""
    return _plain("UNKNOWN", words.line(message))


def _plain(state: str, text: str) -> str:
    return f"NCHECK {state}: {text.replace('|', '/')[:_LONGEST]}"  # performance data begins at a bar


def _performance(report: Report) -> Iterator[str]:
    """Yield 'label'=value[unit];warn;crit;least;most of each value."""
    nodes, counts = len(report.nodes), counts_of(report)
    yield f"nodes={nodes};;;0"
    yield f"reached={sum(node.reached for node in report.nodes)};;;0;{nodes}"
    yield f"errors={counts.errors};;;0"
    yield f"warnings={counts.warnings};;;0"
    outcomes = counts_of_outcomes(report)
    for word in (Outcome.FAILED.value, Outcome.CRASHED.value, NOT_RUN, Outcome.UNKNOWN.value):
        yield f"{word.replace(' ', '_')}={outcomes.get(word, 0)};;;0"
    yield f"time={report.seconds:.3f}s;;;0"
    first = foremost(report.measurements)
    if first and first.measured is not None:
        yield f"'busbw {first.unit}'={first.measured:.3f};;;0"
