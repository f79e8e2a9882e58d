"""The history for people and programs: the same tables as text, Markdown and HTML; JSON is the records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from html import escape
from itertools import compress
from shutil import get_terminal_size

from ncheck.history.entry import Figure
from ncheck.history.past import Incident, NodePast, Past
from ncheck.history.times_in_words import PART, day, minute, sparkline
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.report.tables import as_html as html_table
from ncheck.report.tables import as_markdown as markdown_table
from ncheck.report.tables import escaped, folded
from ncheck.report.text import count
from ncheck.text import printable, span

_MOST_ROWS = 40  # of a table
_MOST_SUSPECTS = 5
_PLOT = (640, 120)  # width and height of a plot in HTML
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.2rem .8rem .2rem 0;text-align:left;"
    "border-bottom:1px solid #8884}svg{width:100%;max-width:40rem;height:auto}"
)


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and the rows. `series`: what a plot of HTML shows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    series: tuple[tuple[str, tuple[tuple[float, Figure], ...]], ...] = ()


def tables(past: Past, names: AbstractSet[str]) -> Iterator[Table]:
    """Yield what there is to show of these nodes, or of all."""
    nodes = _chosen(past, names)
    if names:
        yield from map(_incidents, nodes)
    else:
        yield _overview(nodes)
    hardware = [
        (one.node, day(change.time), f"{PART[change.kind]} at {change.place}", f"{change.old} -> {change.new}",
         f"was in {change.came_from}" if change.came_from else "")
        for one in nodes for change in one.replaced
    ]  # fmt: skip
    if hardware:
        yield Table("Replaced or moved", ("node", "since", "part", "from -> to", ""), tuple(hardware))
    grown = [
        (one.node, counter.name, f"{counter.before} -> {counter.after}", span(counter.seconds))
        for one in nodes
        for counter in one.grown
    ]
    if grown:
        yield Table("Counters that grew", ("node", "counter", "last two values", "within"), tuple(grown))
    several = [one for one in past.suspects if one.failed > 1 and (not names or one.link[0] in names)]
    if several:
        rows = [
            (one.link[0], one.link[1], f"{one.failed} of {one.counted}", str(one.jobs), f"{one.of_all * 100:.0f} %",
             f"{one.chance:.1g}", "suspect" if one.stands_out else "")
            for one in several[:_MOST_SUSPECTS]
        ]  # fmt: skip
        columns = ("node", "link", "jobs with errors that failed", "its jobs", "of all jobs failed", "by chance", "")
        yield Table("Links that counted errors in jobs that failed", columns, tuple(rows))
    slow = [
        (fold(one.figure.nodes), one.what, one.how, minute(one.began), one.meanwhile)
        for one in past.slower
        if not names or not names.isdisjoint(one.figure.nodes)
    ]
    if slow:
        yield Table("Slower than before", ("nodes", "what", "last", "since", "at that time"), tuple(slow))
    yield from _figures(past, names)


def _chosen(past: Past, names: AbstractSet[str]) -> list[NodePast]:
    return [one for one in past.nodes if not names or one.node in names]


def _overview(nodes: Sequence[NodePast]) -> Table:
    """Return a row for each node that was ever bad, unreachable, or is unknown; others with as many runs share one."""
    troubled = [one for one in nodes if one.bad or one.unreached or one.state != "good"]
    fine = [one for one in nodes if one not in troubled]
    rows = [
        (
            one.node, str(one.runs), str(one.bad), str(one.unreached), one.state,
            "stands out" if one.stands_out else f"{one.flaps} times good again and bad again" if one.flaps else "",
            _faults(one), str(one.reboots or ""),
        )
        for one in troubled
    ]  # fmt: skip
    for runs in sorted({one.runs for one in fine}, reverse=True):
        same = fold([one.node for one in fine if one.runs == runs])
        rows.append((same, str(runs), "0", "0", "good", "", "", ""))
    return Table(
        "Nodes",
        ("node", "runs", "bad", "unreached", "now", "", "faults, the most frequent first", "reboots"),
        tuple(rows),
    )


def _faults(node: NodePast) -> str:
    """Return "NC506 gpu-xid-reported 9 times (last 2026-11-25), NC402 ib-port-polling"."""
    counts = Counter((one.seen.code, one.seen.check) for one in node.incidents if one.seen.severity == "error")
    last = {one.seen.code: one.began for one in node.incidents}
    return ", ".join(
        f"{code} {name}" + (f" {times} times" if times > 1 else "") + f" (last {day(last[code])})"
        for (code, name), times in counts.most_common(3)
    )


def _incidents(node: NodePast) -> Table:
    rows = tuple(
        (minute(one.began), _until(one), one.seen.severity, f"{one.seen.code} {one.seen.check}", one.seen.summary)
        for one in reversed(node.incidents)
    )
    bad = f"bad in {node.bad} of {node.runs} runs, unreached in {node.unreached}, {node.state} now"
    return Table(f"{node.node}: {bad}", ("since", "for", "", "check", "what"), rows)


def _until(incident: Incident) -> str:
    return "still" if incident.ended is None else span(incident.ended - incident.began)


def _figures(past: Past, names: AbstractSet[str]) -> Iterator[Table]:
    """Yield the bandwidths and the figures of GPUs over time: those that name a node, or of the nodes together."""
    series: dict[tuple[str, str, str, str], list[tuple[float, Figure]]] = {}
    for run in past.runs:
        for one in run.figures:
            if not names.isdisjoint(one.nodes) if names else len(one.nodes) > 1:
                series.setdefault((fold(one.nodes), one.place, one.what, one.unit), []).append((run.time, one))
    rows, plots = [], []
    for (nodes, place, what, unit), values in series.items():
        name = " ".join(word for word in (nodes, place, what) if word)
        line = [value.value for _, value in values]
        rows.append((name, f"{line[-1]:.4g} {unit}", f"{min(line):.4g} to {max(line):.4g}", sparkline(line)))
        plots.append((f"{name}, {unit}", tuple(values)))
    if rows:
        yield Table("Measured", ("what", "last", "range", "over time"), tuple(rows), tuple(plots))


def _headline(past: Past) -> str:
    if not past.runs:
        return "The history has no run yet."
    worst = [one.node for one in past.nodes if one.stands_out]
    suffix = f"; {fold(worst)} fails more often than the others" if worst else ""
    runs, nodes = count(len(past.runs), "run"), count(len(past.nodes), "node")
    return f"{runs} from {minute(past.runs[0].time)} to {minute(past.runs[-1].time)}, {nodes}{suffix}"


def as_text(past: Past, names: AbstractSet[str]) -> str:
    """Return it for a terminal."""
    width = max(get_terminal_size((120, 50)).columns, 40)
    lines = folded([(_clean(_headline(past)),)], width)
    for table in tables(past, names):
        lines += ["", *folded([(_clean(table.title),)], width)]
        rows = table.rows[:_MOST_ROWS]
        filled = [any(row[at] for row in rows) for at in range(len(table.columns))]
        if rows:
            shown = [[_clean(cell) for cell in compress(row, filled)] for row in rows]
            lines += folded(shown, width, [*compress(table.columns, filled)])
        if len(table.rows) > _MOST_ROWS:
            lines.append(f"and {len(table.rows) - _MOST_ROWS} more: -o json has all")
    return "\n".join(lines) + "\n"


def as_markdown(past: Past, names: AbstractSet[str]) -> str:
    """Return it for an issue or a wiki."""
    parts = [_headline(past)]
    for table in tables(past, names):
        parts += [f"## {escaped(_clean(table.title))}", markdown_table(table.columns, table.rows)]
    return "\n\n".join(parts) + "\n"


def as_html(past: Past, names: AbstractSet[str]) -> str:
    """Return one page that fetches nothing."""
    parts = [f"<h1>ncheck history</h1><p>{_html(_headline(past))}</p>"]
    for table in tables(past, names):
        parts.append(f"<h2>{_html(table.title)}</h2>{html_table(table.columns, table.rows)}")
        parts += [_plot(name, values) for name, values in table.series if len(values) > 1]
    page = f"<!doctype html><meta charset=utf-8><title>ncheck history</title><style>{_STYLE}</style>{''.join(parts)}\n"
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _plot(name: str, values: Sequence[tuple[float, Figure]]) -> str:
    """Return a line of the values, from 0 to the largest, with what was expected as a dashed one."""
    (width, height), begin = _PLOT, values[0][0]
    length = max(values[-1][0] - begin, 1.0)
    top = max(max(one.value, one.usual or 0.0) for _, one in values) or 1.0

    def points(of: Callable[[Figure], float | None]) -> str:
        return " ".join(
            f"{(time - begin) / length * width:.0f},{height - value / top * height:.0f}"
            for time, one in values
            if (value := of(one)) is not None
        )

    lines = (
        f'<polyline points="{points(lambda one: one.value)}" fill="none" stroke="currentColor"/>'
        f'<polyline points="{points(lambda one: one.usual)}" fill="none" stroke="currentColor" stroke-dasharray="4 4"/>'
    )
    title = f"{name}: {day(begin)} to {day(values[-1][0])}, 0 to {top:.4g}"
    return f'<figure><figcaption>{_html(title)}</figcaption><svg viewBox="0 0 {width} {height}">{lines}</svg></figure>'


def as_json(past: Past, names: AbstractSet[str]) -> str:
    """Return the nodes with their incidents, and the runs with their figures."""
    nodes = [asdict(one) for one in _chosen(past, names)]
    runs = [
        {"time": run.time, "kind": run.kind, "host": run.host, "version": run.version, "exit_code": run.exit_code,
         "figures": [asdict(one) for one in run.figures if not names or not names.isdisjoint(one.nodes)]}
        for run in past.runs
    ]  # fmt: skip
    slow = [asdict(one) for one in past.slower if not names or not names.isdisjoint(one.figure.nodes)]
    links = [asdict(one) for one in past.suspects if not names or one.link[0] in names]
    return (
        json.dumps(
            {"schema": "ncheck.history/1", "runs": runs, "nodes": nodes, "slower": slow, "suspects": links}, indent=2
        )
        + "\n"
    )


def _clean(text: str) -> str:
    return printable(text, 300)


def _html(text: str) -> str:
    return escape(_clean(text))


FORMATS: Mapping[str, Callable[[Past, AbstractSet[str]], str]] = {
    "console": as_text, "json": as_json, "markdown": as_markdown, "html": as_html,
}  # fmt: skip
