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

from ncheck.history.entry import ERRORS, Entry, Figure
from ncheck.history.jobs import FAILED_FIRST, nodes_of
from ncheck.history.past import Incident, NodePast, Past
from ncheck.history.times_in_words import PART, day, minute, sparkline
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.report.language import ENGLISH, spoken, tr
from ncheck.report.tables import as_html as html_table
from ncheck.report.tables import as_markdown as markdown_table
from ncheck.report.tables import escaped, folded
from ncheck.report.text import count, joined
from ncheck.text import printable, span

_MOST_ROWS = 40  # of a table
_MOST_SUSPECTS, _MOST_JOBS, _MOST_LINKS = 5, 10, 3
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
    elif nodes or not past.jobs:
        yield _overview(nodes)
    hardware = [
        (one.node, day(change.time), tr("{part} at {place}", part=PART[change.kind], place=change.place),
         f"{change.old} -> {change.new}", tr("was in {place}", place=change.came_from) if change.came_from else "")
        for one in nodes for change in one.replaced
    ]  # fmt: skip
    if hardware:
        columns = (tr("node"), tr("since"), tr("part"), tr("from -> to"), "")
        yield Table(tr("Replaced or moved"), columns, tuple(hardware))
    grown = [
        (one.node, counter.name, f"{counter.before} -> {counter.after}", span(counter.seconds))
        for one in nodes
        for counter in one.grown
    ]
    if grown:
        heads: tuple[str, ...] = (tr("node"), tr("counter"), tr("last two values"), tr("within"))
        yield Table(tr("Counters that grew"), heads, tuple(grown))
    ended = [_job(run) for run in reversed(past.jobs) if not names or not names.isdisjoint(nodes_of(run))]
    if ended:
        heads = (tr("ended"), tr("nodes"), tr("exit code"), tr("failed first"), tr("links that counted errors"))
        yield Table(tr("Jobs"), heads, tuple(ended[:_MOST_JOBS]))
    several = [one for one in past.suspects if one.failed > 1 and (not names or one.link[0] in names)]
    if several:
        rows = [
            (one.link[0], one.link[1], tr("{number} of {total}", number=one.failed, total=one.counted), str(one.jobs),
             f"{one.of_all * 100:.0f} %", f"{one.chance:.1g}", tr("suspect") if one.stands_out else "")
            for one in several[:_MOST_SUSPECTS]
        ]  # fmt: skip
        heads = (
            tr("node"), tr("link"), tr("jobs with errors that failed"), tr("its jobs"), tr("of all jobs failed"),
            tr("by chance"), "",
        )  # fmt: skip
        yield Table(tr("Links that counted errors in jobs that failed"), heads, tuple(rows))
    slow = [
        (fold(one.figure.nodes), one.what, one.how, minute(one.began), one.meanwhile)
        for one in past.slower
        if not names or not names.isdisjoint(one.figure.nodes)
    ]
    if slow:
        heads = (tr("nodes"), tr("what"), tr("last"), tr("since"), tr("at that time"))
        yield Table(tr("Slower than before"), heads, tuple(slow))
    yield from _figures(past, names)


def _job(run: Entry) -> tuple[str, ...]:
    """Return the row of a job: which rank failed first, where that was seen, and the links with the most errors."""
    first = next((f"{one.place}, {one.nodes[0]}" for one in run.figures if one.what == FAILED_FIRST), "")
    links = [f"{one.nodes[0]} {one.place} {one.value:.0f}" for one in run.figures if one.what == ERRORS]
    return minute(run.time), fold(nodes_of(run)), str(run.exit_code), first, joined(links, _MOST_LINKS)


def _chosen(past: Past, names: AbstractSet[str]) -> list[NodePast]:
    return [one for one in past.nodes if not names or one.node in names]


def _overview(nodes: Sequence[NodePast]) -> Table:
    """Return a row for each node that was ever bad, unreachable, or is unknown; others with as many runs share one."""
    troubled = [one for one in nodes if one.bad or one.unreached or one.state != "good"]
    fine = [one for one in nodes if one not in troubled]
    rows = [
        (
            one.node, str(one.runs), str(one.bad), str(one.unreached), tr(one.state),
            tr("stands out") if one.stands_out else _flaps(one.flaps),
            _faults(one), str(one.reboots or ""),
        )
        for one in troubled
    ]  # fmt: skip
    for runs in sorted({one.runs for one in fine}, reverse=True):
        same = fold([one.node for one in fine if one.runs == runs])
        rows.append((same, str(runs), "0", "0", tr("good"), "", "", ""))
    columns = (
        tr("node"), tr("runs"), tr("bad"), tr("unreached"), tr("now"), "", tr("faults, the most frequent first"),
        tr("reboots"),
    )  # fmt: skip
    return Table(tr("Nodes"), columns, tuple(rows))


def _flaps(times: int) -> str:
    return tr("{number} times good again and bad again", number=times) if times else ""


def _faults(node: NodePast) -> str:
    """Return "NC506 gpu-xid-reported 9 times (last 2026-11-25), NC402 ib-port-polling"."""
    counts = Counter((one.seen.code, one.seen.check) for one in node.incidents if one.seen.severity == "error")
    last = {one.seen.code: one.began for one in node.incidents}
    return ", ".join(
        f"{code} {name}"
        + (tr(" {number} times", number=times) if times > 1 else "")
        + tr(" (last {day})", day=day(last[code]))
        for (code, name), times in counts.most_common(3)
    )


def _incidents(node: NodePast) -> Table:
    rows = tuple(
        (minute(one.began), _until(one), tr(one.seen.severity), f"{one.seen.code} {one.seen.check}", one.seen.summary)
        for one in reversed(node.incidents)
    )
    title = tr(
        "{node}: bad in {bad} of {runs} runs, unreached in {unreached}, {state} now",
        node=node.node, bad=node.bad, runs=node.runs, unreached=node.unreached, state=tr(node.state),
    )  # fmt: skip
    return Table(title, (tr("since"), tr("for"), "", tr("check"), tr("what")), rows)


def _until(incident: Incident) -> str:
    return tr("still") if incident.ended is None else span(incident.ended - incident.began)


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
        rows.append(
            (
                name,
                f"{line[-1]:.4g} {unit}",
                tr("{least} to {most}", least=f"{min(line):.4g}", most=f"{max(line):.4g}"),
                sparkline(line),
            )
        )
        plots.append((f"{name}, {unit}", tuple(values)))
    if rows:
        columns = (tr("what"), tr("last"), tr("range"), tr("over time"))
        yield Table(tr("Measured"), columns, tuple(rows), tuple(plots))


def _headline(past: Past) -> str:
    entries = past.runs or past.jobs
    if not entries:
        return tr("The history has no run yet.")
    worst = [one.node for one in past.nodes if one.stands_out]
    suffix = [tr("{nodes} fails more often than the others", nodes=fold(worst))] if worst else []
    kept = tr(
        "{runs} from {first} to {last}, {nodes}",
        runs=count(len(past.runs), "run"), nodes=count(len(past.nodes), "node"),
        first=minute(entries[0].time), last=minute(entries[-1].time),
    )  # fmt: skip
    return tr("; ").join([kept, *suffix])


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
            lines.append(tr("and {number} more: -o json has all", number=len(table.rows) - _MOST_ROWS))
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
    begin = "<!doctype html>" if spoken() == ENGLISH else f"<!doctype html><html lang={spoken()}>"
    page = f"{begin}<meta charset=utf-8><title>ncheck history</title><style>{_STYLE}</style>{''.join(parts)}\n"
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
    title = tr(
        "{name}: {first} to {last}, 0 to {top}",
        name=name, first=day(begin), last=day(values[-1][0]), top=f"{top:.4g}",
    )  # fmt: skip
    return f'<figure><figcaption>{_html(title)}</figcaption><svg viewBox="0 0 {width} {height}">{lines}</svg></figure>'


def as_json(past: Past, names: AbstractSet[str]) -> str:
    """Return the nodes with their incidents, and the runs and jobs with their figures."""
    nodes = [asdict(one) for one in _chosen(past, names)]
    runs, jobs = ([
        {"time": run.time, "kind": run.kind, "host": run.host, "version": run.version, "exit_code": run.exit_code,
         "figures": [asdict(one) for one in run.figures if not names or not names.isdisjoint(one.nodes)]}
        for run in entries
    ] for entries in (past.runs, past.jobs))  # fmt: skip
    slow = [asdict(one) for one in past.slower if not names or not names.isdisjoint(one.figure.nodes)]
    links = [asdict(one) for one in past.suspects if not names or one.link[0] in names]
    return (
        json.dumps(
            {
                "schema": "ncheck.history/1",
                "runs": runs,
                "nodes": nodes,
                "slower": slow,
                "suspects": links,
                "jobs": jobs,
            },
            indent=2,
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
