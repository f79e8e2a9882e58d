"""What was measured, on the terminal: one sentence a measurement, the curve, the pairs, and which NIC carried it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from doctor import byte_words
from doctor.model.report import LEAST_KEPT, Measurement, Pair, Point, Report
from doctor.report import measured_words as say
from doctor.report import text as words
from doctor.report.carried import carried
from doctor.report.heat import Heat, gathered, heat, odd_words
from doctor.report.page import Page

STYLES = {say.WELL: "green", say.WARNED: "bold yellow", say.BAD: "bold red", say.UNJUDGED: "cyan"}
SHOWN = 8  # measurements of one stage, and devices that carried something odd
ODD_PAIRS = 4
_LONGEST_NAME = 14
_GROUPS = ("scaling", "all")


def print_measured(page: Page, report: Report) -> None:
    """Print the section, where anything was measured."""
    if not report.probe.ran:
        return
    page.gap()
    page.say("Measured", style="bold underline")
    recorded = " (recorded, not measured now)" if report.recorded else ""
    page.say(f"{words.line(report.probe.reason)}{recorded}", "  ", style="dim")
    for note in report.probe.notes:
        page.say(words.line(note), Text(f"  {page.signs.warned} ", "yellow"))
    first = say.foremost(report.measurements)
    by = first.by if first else ""
    if first:
        _sentence(page, first, by)
        _curve(page, first)
    steps = _steps(report.measurements)
    told = [one for one in steps if one.stage == "scaling" and say.standing(one) == say.WELL]
    rest = [one for one in report.measurements if one is not first and one not in told]
    for stage in ("inside", "pair", "rail", "scaling", "all", ""):
        _stage(page, [one for one in rest if one.stage == stage], by)
    if steps:
        _scaling(page, steps)
    if drawn := heat(report.probe, report.measurements):
        _heat(page, drawn, report.probe.pairs)
    _carried(page, report)


def _stage(page: Page, same: Sequence[Measurement], by: str) -> None:
    """Print the measurements of one stage. Of pairs the picture shows the rest: the worst is named, and what failed."""
    if same and same[0].stage in ("pair", "rail"):
        worst = min((one for one in same if one.measured is not None), key=lambda o: o.measured or 0.0, default=None)
        same = [*([worst] if worst else []), *(one for one in same if one.measured is None)]
    for one in same[:SHOWN]:
        _sentence(page, one, by)
    if len(same) > SHOWN:
        page.say(f"and {len(same) - SHOWN} more of these: -o json has them all", "    ", style="dim")


def _sentence(page: Page, one: Measurement, by: str) -> None:
    standing = say.standing(one)
    sign = {say.WELL: page.signs.well, say.WARNED: page.signs.warned, say.BAD: page.signs.bad}
    style = STYLES[standing]
    text = Text.assemble((say.title(one, by), "bold"), ": ", (say.verdict(one), style if not one.failed else "red"))
    page.say(text, Text(f"  {sign.get(standing, page.signs.dot)} ", style=style))


def _scaling(page: Page, steps: Sequence[Measurement]) -> None:
    """Print "by the number of nodes: 1 node 471 GB/s, 2 nodes 468 GB/s, 4 nodes 381 GB/s (keep 98 %)"."""
    held = ", each against what its own links give" if any(say.kept(one) and one.ratio for one in steps) else ""
    parts: list[str | tuple[str, str]] = [(f"by the number of nodes{held}: ", "bold")]
    for place, one in enumerate(steps):
        kept = f" (keep {share})" if (share := say.kept(one)) else ""
        style = STYLES[say.WARNED if (one.efficiency or 1.0) < LEAST_KEPT else say.UNJUDGED]
        nodes = "1 node" if one.stage == "inside" else f"{len(one.nodes)} nodes"
        parts += [", "] if place else []
        parts.append((f"{nodes} {say.rate(one.measured or 0.0)} {one.unit}{kept}", style))
    page.say(Text.assemble(*parts), "  ")


def _steps(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return what the number of nodes is told by: one node, some, all; nothing where they cannot be compared."""
    alone = [one for one in measurements if one.stage == "inside" and one.measured and one.ranks > 1][:1]
    more = sorted((one for one in measurements if one.stage in _GROUPS and one.measured), key=lambda o: len(o.nodes))
    return [*alone, *more] if any(one.efficiency is not None for one in more) else []


def _curve(page: Page, one: Measurement) -> None:
    """Print a row a size: bytes a rank, the time, the bus bandwidth, a bar; and where the expected value lies."""
    shown = say.rows(one.curve)
    if not shown:
        return
    top = max([one.expected or 0.0, *(point.busbw for point in shown)])
    wrong = any(point.wrong for point in shown)
    room = page.width - 35 - (14 if wrong else 0)
    mark = max(round(room * one.expected / top), 1) if one.expected else None
    expected = f"{page.signs.upright} = {say.rate(one.expected)} expected" if one.expected else ""
    heading = f"    {'bytes a rank':>12}  {'time':>7}  {'GB/s':>6}  "
    page.verbatim(f"{heading}{expected:>{room}}".rstrip(), style="dim")
    for point in shown:
        last = point is shown[-1]
        style = STYLES[say.standing(one)] if last else "cyan"
        bar = _bar(page, point.busbw / top * room, mark, room)
        left = f"    {byte_words.size(point.size):>12}  {say.time(point.seconds):>7}  {say.rate(point.busbw):>6}  "
        page.verbatim(Text.assemble(left, (bar, style), (_wrong(point), "bold red")))


def _wrong(point: Point) -> str:
    return f"  {point.wrong} wrong" if point.wrong else ""


def _bar(page: Page, cells: float, mark: int | None, room: int) -> str:
    """Return a bar of so many cells, in parts of one where the terminal can; `mark` shows where it stays below."""
    parts = page.signs.parts
    whole, part = divmod(round(cells * len(parts)), len(parts))
    drawn = f"{parts[-1] * whole + (parts[part - 1] if part else ''):<{room}}"
    if mark and drawn[mark - 1] == " ":
        drawn = drawn[: mark - 1] + page.signs.upright + drawn[mark:]
    return drawn.rstrip()


def _heat(page: Page, drawn: Heat, pairs: Sequence[Pair]) -> None:
    usual = f"{say.rate(drawn.usual)} GB/s is {'expected' if drawn.expected else 'usual here'}"
    page.say(f"node to node, one rank each, in GB/s ({usual}):", "  ", style="bold")
    if drawn.names:
        _matrix(page, drawn)
    if drawn.left_out:
        page.say(f"{words.count(drawn.left_out, 'further pair')} as usual: -o json has them all", "    ", style="dim")
    told = gathered(drawn, pairs)
    for odd in told[:ODD_PAIRS]:
        page.say(words.line(odd_words(drawn, odd)), Text(f"    {page.signs.warned} ", STYLES[say.BAD]))
    if len(told) > ODD_PAIRS:
        page.say(f"and {len(told) - ODD_PAIRS} more such: -o json has them all", "    ", style="dim")


def _matrix(page: Page, drawn: Heat) -> None:
    """Print who stands on the left met who stands above; a dot where they did not meet alone."""
    numbered = drawn.labels[0] not in drawn.names[0]
    full = [f"{label} {words.line(name)}" if numbered else words.line(name)
            for label, name in zip(drawn.labels, drawn.names, strict=True)]  # fmt: skip
    left = min(max(len(name) for name in full), _LONGEST_NAME)
    texts = {order: "x" if pair.busbw is None else say.short(pair.busbw) for order, pair in drawn.cells.items()}
    width = max(3, *(len(text) for text in (*texts.values(), *drawn.labels)))
    page.verbatim(f"    {'':{left}}" + "".join(f" {label:>{width}}" for label in drawn.labels), style="dim")
    for name, shown in zip(drawn.names, full, strict=True):
        row = Text(f"    {shown[:left]:{left}}")
        for other in drawn.names:
            pair = drawn.cells.get((name, other))
            style = "dim" if pair is None else STYLES[say.tone(drawn.share(pair) or 0.0)]
            row.append(" " + f"{texts.get((name, other), page.signs.dot if name != other else ''):>{width}}", style)
        row.rstrip()
        page.verbatim(row)


def _carried(page: Page, report: Report) -> None:
    lines = carried(report.probe.traffic, together=say.together(report.measurements))
    for line in lines[:SHOWN]:
        page.say(line.text, Text(f"  {page.signs.warned} ", "bold yellow") if line.odd else "  ")
    if len(lines) > SHOWN:
        page.say(f"and {len(lines) - SHOWN} more devices: -o json has them all", "    ", style="dim")
