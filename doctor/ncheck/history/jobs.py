"""Jobs that ended, as notes in the history: how they ended, and which links counted errors since the run before them.

A note has the names of nodes and links, an exit code and counts; nothing of the job's program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncheck.history.entry import COUNTED, COUNTER, ERRORS, JOB, LINKS, Entry, Figure
from ncheck.history.lemons import JobNote, Link, Suspect, suspects
from ncheck.history.store import Span

FAILED_FIRST = "failed first"  # what a figure is of: the rank of a job that failed first, with its exit code
_MOST = 64  # links of one job, those with the most errors: where more count, none is to blame
_MOST_LINKS = 10**7  # of all nodes
_UNIT = "job"


def job_of(entry: Entry, spans: Sequence[Span], code: int) -> Entry | None:
    """Return the note of a job that ended before this run. `spans`: before the run was added.

    A node whose counters the last run before did not read has nothing to compare with and is left out; None: that are
    all. After a reboot counters began at 0.
    """
    last: dict[str, float] = {}
    for span in spans:
        last[span.kept.node] = max(last.get(span.kept.node, 0.0), span.last)
    before = {
        (span.kept.node, span.kept.kind, span.kept.place): span.kept.value
        for span in spans
        if span.last == last[span.kept.node]
    }
    counted = {
        (one.node, one.place): int(one.value)
        for one in entry.kept
        if one.kind == COUNTED and (one.node, COUNTED, one.place) in before
    }
    nodes = tuple(sorted({node for node, _ in counted}))
    if not nodes:
        return None
    boots = {one.node: one.value for one in entry.kept if one.kind == "boot"}
    grown: dict[Link, int] = {}
    for now in entry.kept:
        if now.kind == COUNTER and (now.node, now.detail) in counted and now.value.isdecimal():
            same = before.get((now.node, "boot", "")) == boots.get(now.node)
            was = before.get((now.node, COUNTER, now.place), "0") if same else "0"
            more = int(now.value) - (int(was) if was.isdecimal() else 0)
            link = now.node, now.place.partition(" ")[0]
            if more > 0:
                grown[link] = grown.get(link, 0) + more
    most = sorted(grown.items(), key=lambda one: (-one[1], one[0]))[:_MOST]
    figures = [Figure((node,), place, ERRORS, float(count), _UNIT) for (node, place), count in most]
    return Entry(
        entry.time, JOB, entry.host, entry.version, code,
        figures=(Figure(nodes, "", LINKS, float(sum(counted.values())), _UNIT), *figures),
    )  # fmt: skip


def nodes_of(job: Entry) -> tuple[str, ...]:
    """Return the nodes of a job whose counters were compared."""
    return next((one.nodes for one in job.figures if one.what == LINKS), ())


def suspects_in(jobs: Sequence[Entry]) -> tuple[Suspect, ...]:
    """Return the links that counted errors in jobs that failed, by all notes."""
    links: dict[tuple[str, ...], float] = {}
    notes = []
    for run in jobs:
        every = next((one for one in run.figures if one.what == LINKS), None)
        if every is not None:
            links[every.nodes] = every.value
            grown: Mapping[Link, int] = {
                (one.nodes[0], one.place): int(one.value) for one in run.figures if one.what == ERRORS and one.nodes
            }
            notes.append(JobNote(run.exit_code != 0, every.nodes, grown))
    of_node = {node: value / len(nodes) for nodes, value in links.items() for node in nodes}
    return suspects(notes, round(min(sum(of_node.values()), _MOST_LINKS)))
