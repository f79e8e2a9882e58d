"""The measurements as text: times, rates, and one sentence per measurement; for the console and the HTML page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from ncheck.lazy_dataclass import dataclass
from ncheck.model.report import Measurement, NcclChoice, Pair, Point, Probe, Report, Share, Standing, Traffic
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.page import Page
from ncheck.report.text import grouped
from ncheck.text import moved
from ncheck.text import size as size_text

ROWS = 10  # sizes of a curve that are shown
WELL, WARNED, BAD, UNJUDGED = "well", "warned", "bad", "unjudged"
_WHOLE = 100  # rates from here on need no decimals
_PLAIN = 20  # rates from here on need none where room is short
_LEAST = 0.01  # GB/s: lower rates are all shown as <0.01
_KINDS = ("all", "scaling", "inside", "pair", "rail", "nics")  # the first that exists is the headline

_TONES = {
    Standing.OK: WELL, Standing.LOW: WARNED, Standing.FAR_TOO_LOW: BAD, Standing.FAILED: BAD,
    Standing.UNKNOWN: UNJUDGED,
}  # fmt: skip


def tone(standing: Standing) -> str:
    """Return the style in which a measurement of this standing is shown."""
    return _TONES[standing]


def tone_of(one: Measurement) -> str:
    """Return the style of a measurement. Noisy repeats without an expected value are not well."""
    noisy = one.expected is None and one.protocol is not None and one.protocol.noisy
    return UNJUDGED if noisy and one.standing is Standing.OK else tone(one.standing)


def foremost(measurements: Sequence[Measurement]) -> Measurement | None:
    """Return the measurement for the headline: all nodes, or what comes nearest to it."""
    for stage in _KINDS:
        if same := [one for one in measurements if one.stage == stage]:
            return max(same, key=lambda one: (one.ranks, bool(one.curve)))
    return measurements[0] if measurements else None


def title(one: Measurement, by: str) -> str:
    """Return "all-reduce on 4 nodes, 32 ranks", with what carried the data if that differs from `by`."""
    nodes = words.node_set(one.nodes)
    on = tr(" on {nodes}", nodes=nodes)
    where = "" if one.stage == "all" or not nodes else f" ({nodes})" if one.stage == "scaling" else on
    parts = [f"{one.what}{where}"]
    parts += [words.count(one.ranks, "rank")] if one.stage in ("all", "scaling") and one.ranks else []
    parts += [tr("by {carrier}", carrier=one.by)] if one.by and one.by != by else []
    return words.line(tr(", ").join(parts))


def kept(one: Measurement) -> str:
    """Return the scaling efficiency, "98 %"; "" if it is unknown.

    Without an expectation it is a lower bound (a tree between two nodes carries its data once), so that a value above
    100 % says nothing.
    """
    if one.efficiency is None or (one.ratio is None and one.efficiency > 1):
        return ""
    return percent(one.efficiency)


def verdict(one: Measurement) -> str:
    """Return "381 of 400 GB/s expected (95 %): limited by the NICs; 7 of 8 rails", or why there is no comparison."""
    if one.failed or one.measured is None:
        return words.line(tr("failed: {reason}", reason=one.failed) if one.failed else tr("not measured"))
    seen = f"{rate(one.measured)} {one.unit}"
    doubts = "".join(f"{tr('; ')}{doubt}" for doubt in _doubts(one))
    if one.expected is None or one.ratio is None:
        why = "; ".join(one.unknown)
        unknown = tr("no expected value (unknown: {reasons})", reasons=why) if why else tr("no expected value")
        return words.line(tr("; ").join((seen, unknown)) + doubts)
    named = one.limited_by.startswith("--")  # the option --expect
    limit = tr("set by {limit}", limit=one.limited_by) if named else tr("limited by {limit}", limit=one.limited_by)
    terms = [limit] if one.limited_by else []
    why = tr(": ") + tr("; ").join([*terms, *one.lowered_by]) if terms or one.lowered_by else ""
    compared = tr(
        "{measured} of {expected} {unit} expected ({share})",
        measured=rate(one.measured), expected=rate(one.expected), unit=one.unit, share=percent(one.ratio),
    )  # fmt: skip
    return words.line(f"{compared}{why}{doubts}")


def _doubts(one: Measurement) -> list[str]:
    """Return what makes a value less sure: repeats that there was no time for, and repeats that differ."""
    timed = one.protocol
    doubts = []
    if timed and timed.cut:
        doubts.append(tr("{number} of {wanted} repeats: no time for more", number=timed.repeats, wanted=timed.wanted))
    if timed and timed.spread and timed.noisy:
        doubts.append(tr("noisy: spread {share}", share=percent(timed.spread)))
    return doubts


def protocol(measurements: Sequence[Measurement]) -> str:
    """Return "median of 5 repeats after 2 warm-ups; spread 1 % to 4 %", "" if it is unknown."""
    known = [one.protocol for one in measurements if one.protocol]
    hows = dict.fromkeys(
        tr(
            "{statistic} of {repeats} after {warm_ups}",
            statistic=tr(one.statistic), repeats=words.count(one.wanted or one.repeats, "repeat"),
            warm_ups=words.count(one.warm_ups, "warm-up"),
        )
        for one in known
    )  # fmt: skip
    spreads = [one.spread for one in known if one.spread is not None]
    return tr("; ").join([*hows, *([_spread(percent(min(spreads)), percent(max(spreads)))] if spreads else [])])


def _spread(least: str, most: str) -> str:
    return (
        tr("spread {share}", share=least) if least == most else tr("spread {least} to {most}", least=least, most=most)
    )


def how_measured(report: Report) -> str:
    """Return what was measured and how, or that nothing was, and why."""
    probe = report.probe
    if probe.ran:
        return words.line(probe.reason)
    return tr("no bandwidth was measured: {reason}", reason=words.why(probe.reason, report.plan.blockers))


def nccl_choice(probe: Probe) -> str:
    """Return what NCCL uses for the largest size of each operation, "" if it is not known."""
    if not probe.choices:
        return ""
    largest = {one.op: one for one in sorted(probe.choices, key=lambda one: one.size)}
    used = tr("; ").join(_used(one, size_text(one.size), several=len(largest) > 1) for one in largest.values())
    more = tr("-v shows each size; before a run: ncheck predict")
    return tr("{what} ({note})", what=f"{_by_model(probe)}{used}", note=more)


def _by_model(probe: Probe) -> str:
    return tr("{label}: ", label=tr("NCCL {version} by its cost model", version=words.line(probe.version)))


def _used(one: NcclChoice, sizes: str, *, several: bool) -> str:
    """Return "Ring, Simple, 16 channels, 8 NICs per node at 1 GiB", after the operation where there are several."""
    parts = [one.algorithm, one.protocol, words.count(one.channels, "channel")]
    parts += [tr("{nics} per node", nics=words.count(one.nics, "NIC"))] if one.nics else []
    text = tr("{what} at {sizes}", what=tr(", ").join(parts), sizes=sizes)
    return f"{words.line(one.op)} {text}" if several else text


def _choices(page: Page, probe: Probe) -> None:
    """Print what NCCL uses for each size, in one line where it is the same for sizes that follow one another."""
    if probe.choices:
        page.say(_by_model(probe).rstrip(), "  ", style="bold")
    several = len({one.op for one in probe.choices}) > 1
    for _, alike in groupby(probe.choices, key=lambda one: replace(one, size=0)):
        first, *others = alike
        sizes = size_text(first.size)
        if others:
            sizes = tr("{least} to {most}", least=sizes, most=size_text(others[-1].size))
        page.say(_used(first, sizes, several=several), "    ")


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def rate(value: float) -> str:
    """Return a rate in GB/s with its significant digits: "381", "47.9", "0.012"."""
    if value >= _WHOLE:
        return f"{value:.0f}"
    if value >= 1 or value == 0:
        return f"{value:.1f}"
    return f"{value:.2g}" if value >= _LEAST else f"<{_LEAST}"


def short_figure(value: float) -> str:
    """Return three digits: "18", "1750", "0.95"."""
    return f"{value:.0f}" if value >= _WHOLE else f"{value:.3g}"


def short(value: float) -> str:
    """Return a rate in GB/s in three characters, for a cell."""
    return f"{value:.0f}" if value >= _PLAIN else f"{value:.2g}"


def time(seconds: float) -> str:
    """Return how long one operation took."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}" if seconds < 1000 * unit else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 1e-6:.3g} us"


def rows(curve: Sequence[Point]) -> tuple[Point, ...]:
    """Return the out-of-place points by size; of many only some, always including the largest."""
    points = sorted((point for point in curve if not point.in_place), key=lambda point: point.size)
    points = points or sorted(curve, key=lambda point: point.size)
    if len(points) <= ROWS:
        return tuple(points)
    last = len(points) - 1
    return tuple(points[place] for place in sorted({round(last * step / (ROWS - 1)) for step in range(ROWS)}))


STYLES = {WELL: "green", WARNED: "bold yellow", BAD: "bold red", UNJUDGED: "cyan"}
SHOWN = 8  # measurements of one stage, and devices with unexpected traffic
ODD_PAIRS = 4
_LONGEST_NAME = 14
_GROUPS = ("scaling", "all")


def print_measured(page: Page, report: Report) -> None:
    """Print the section if anything was measured."""
    if not report.probe.ran:
        return
    page.gap()
    page.say(tr("Measured"), style="bold underline")
    recorded = tr(" (recorded, not measured now)") if report.recorded else ""
    page.say(f"{words.line(report.probe.reason)}{recorded}", "  ", style="dim")
    for note in report.probe.notes:
        page.say(words.line(note), Text(f"  {page.signs.warned} ", "yellow"))
    first = foremost(report.measurements)
    by = first.by if first else ""
    if first:
        _sentence(page, first, by)
        _curve(page, first)
    scaling = [steps for own in _by_op(report.measurements) if (steps := _steps(own))]
    in_scaling_line = [
        one for steps in scaling for one in steps
        if one.stage == "scaling" and one.standing is Standing.OK and not _doubts(one)
    ]  # fmt: skip
    rest = [one for one in report.measurements if one is not first and one not in in_scaling_line]
    for stage in ("inside", "nics", "pair", "rail", "scaling", "all", ""):
        _stage(page, [one for one in rest if one.stage == stage], by)
    for steps in scaling:
        _scaling(page, steps, steps[0].op if len(scaling) > 1 else "")
    if timed := protocol(report.measurements):
        page.say(timed, "  ", style="dim")
    _choices(page, report.probe)
    for drawn in heat(report.probe, report.measurements):
        _heat(page, drawn)
    _carried(page, report)


def _stage(page: Page, same: Sequence[Measurement], by: str) -> None:
    """Print the measurements of one stage. Of pairs only the worst of each operation and the failed ones: the matrix
    shows the rest.
    """
    if same and same[0].stage in ("pair", "rail"):
        same = [one for own in _by_op(same) for one in _worst(own)]
    for one in same[:SHOWN]:
        _sentence(page, one, by)
    if len(same) > SHOWN:
        _left_out(page, tr("and {number} more of these", number=len(same) - SHOWN))


def _worst(same: Sequence[Measurement]) -> list[Measurement]:
    worst = min((one for one in same if one.measured is not None), key=lambda o: o.measured or 0.0, default=None)
    return [*([worst] if worst else []), *(one for one in same if one.measured is None)]


def _by_op(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    same: dict[str, list[Measurement]] = {}
    for one in measurements:
        same.setdefault(one.op, []).append(one)
    return list(same.values())


def _left_out(page: Page, what: str) -> None:
    page.say(tr("{what}: -o json has them all", what=what), "    ", style="dim")


def _sentence(page: Page, one: Measurement, by: str) -> None:
    judged = tone_of(one)
    sign = {WELL: page.signs.well, WARNED: page.signs.warned, BAD: page.signs.bad}
    style = STYLES[judged]
    text = Text.assemble((title(one, by), "bold"), tr(": "), (verdict(one), style if not one.failed else "red"))
    page.say(text, Text(f"  {sign.get(judged, page.signs.dot)} ", style=style))


def _scaling(page: Page, steps: Sequence[Measurement], op: str) -> None:
    """Print "by number of nodes: 1 node 471 GB/s, 2 nodes 468 GB/s, 4 nodes 381 GB/s (efficiency 98 %)".

    It begins with the operation where there are several.
    """
    relative = any(kept(one) and one.ratio for one in steps)
    by_number = tr("by number of nodes (efficiency relative to what the links give): ")
    head = f"{words.line(op)}{tr(', ')}" if op else ""
    parts: list[str | tuple[str, str]] = [(f"{head}{by_number if relative else tr('by number of nodes: ')}", "bold")]
    for place, one in enumerate(steps):
        share_kept = tr(" (efficiency {share})", share=share) if (share := kept(one)) else ""
        style = STYLES[WARNED if one.scales_poorly else UNJUDGED]
        nodes = words.count(1 if one.stage == "inside" else len(one.nodes), "node")
        parts += [tr(", ")] if place else []
        parts.append((f"{nodes} {rate(one.measured or 0.0)} {one.unit}{share_kept}", style))
    page.say(Text.assemble(*parts), "  ")


def _steps(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of one, several and all nodes; none if they cannot be compared."""
    alone = [one for one in measurements if one.stage == "inside" and one.measured and one.ranks > 1][:1]
    more = sorted((one for one in measurements if one.stage in _GROUPS and one.measured), key=lambda o: len(o.nodes))
    return [*alone, *more] if any(one.efficiency is not None for one in more) else []


def _curve(page: Page, one: Measurement) -> None:
    """Print a row per size: bytes per rank, the time, the bus bandwidth, a bar, and a mark at the expected value."""
    shown = rows(one.curve)
    if not shown:
        return
    top = max([one.expected or 0.0, *(point.busbw for point in shown)])
    wrong = any(point.wrong for point in shown)
    room = page.width - 35 - (14 if wrong else 0)
    mark = max(round(room * one.expected / top), 1) if one.expected else None
    expected = tr("{sign} = {rate} expected", sign=page.signs.upright, rate=rate(one.expected)) if one.expected else ""
    heads = ((tr("bytes / rank"), 12), (tr("time"), 7), ("GB/s", 6), (expected, room))
    heading = "  ".join(" " * (width - cell_len(head)) + head for head, width in heads)
    page.verbatim(f"    {heading}".rstrip(), style="dim")
    for point in shown:
        last = point is shown[-1]
        style = STYLES[tone_of(one)] if last else "cyan"
        bar = _bar(page, point.busbw / top * room, mark, room)
        left = f"    {size_text(point.size):>12}  {time(point.seconds):>7}  {rate(point.busbw):>6}  "
        page.verbatim(Text.assemble(left, (bar, style), (_wrong(point), "bold red")))


def _wrong(point: Point) -> str:
    return f"  {tr('{number} wrong', number=point.wrong)}" if point.wrong else ""


def _bar(page: Page, cells: float, mark: int | None, room: int) -> str:
    """Return a bar of so many cells, in fractions of a cell if the terminal can; `mark` is the expected value."""
    parts = page.signs.parts
    whole, part = divmod(round(cells * len(parts)), len(parts))
    drawn = f"{parts[-1] * whole + (parts[part - 1] if part else ''):<{room}}"
    if mark and drawn[mark - 1] == " ":
        drawn = drawn[: mark - 1] + page.signs.upright + drawn[mark:]
    return drawn.rstrip()


def _heat(page: Page, drawn: HeatMap) -> None:
    usual = rate(drawn.usual)
    known = tr("expected: {rate} GB/s", rate=usual) if drawn.expected else tr("usual here: {rate} GB/s", rate=usual)
    head = f"{words.line(drawn.op)} " if drawn.op else ""
    page.say(f"{head}{tr('between nodes, one rank each, in GB/s ({known}):', known=known)}", "  ", style="bold")
    if drawn.names:
        _matrix(page, drawn)
    if drawn.left_out:
        _left_out(page, tr("{pairs} not shown", pairs=words.count(drawn.left_out, "further pair")))
    every = gathered(drawn)
    for odd in every[:ODD_PAIRS]:
        page.say(words.line(odd_words(drawn, odd)), Text(f"    {page.signs.warned} ", STYLES[odd.tone]))
    if len(every) > ODD_PAIRS:
        _left_out(page, tr("and {number} more", number=len(every) - ODD_PAIRS))


def _matrix(page: Page, drawn: HeatMap) -> None:
    """Print the matrix: a dot for pairs that were not measured."""
    numbered = drawn.labels[0] not in drawn.names[0]
    full = [f"{label} {words.line(name)}" if numbered else words.line(name)
            for label, name in zip(drawn.labels, drawn.names, strict=True)]  # fmt: skip
    left = min(max(len(name) for name in full), _LONGEST_NAME)
    texts = {order: "x" if pair.busbw is None else short(pair.busbw) for order, pair in drawn.cells.items()}
    width = max(3, *(len(text) for text in (*texts.values(), *drawn.labels)))
    page.verbatim(f"    {'':{left}}" + "".join(f" {label:>{width}}" for label in drawn.labels), style="dim")
    for name, shown in zip(drawn.names, full, strict=True):
        row = Text(f"    {shown[:left]:{left}}")
        for other in drawn.names:
            pair = drawn.cells.get((name, other))
            style = "dim" if pair is None else STYLES[tone(pair.standing)]
            row.append(" " + f"{texts.get((name, other), page.signs.dot if name != other else ''):>{width}}", style)
        row.rstrip()
        page.verbatim(row)


def _carried(page: Page, report: Report) -> None:
    lines = carried(report.probe.traffic)
    for line in lines[:SHOWN]:
        page.say(line.text, Text(f"  {page.signs.warned} ", "bold yellow") if line.odd else "  ")
    if len(lines) > SHOWN:
        _left_out(page, tr("and {number} more devices", number=len(lines) - SHOWN))


@dataclass(frozen=True)
class TrafficLine:
    """One line about these devices; `odd` if the traffic differs from the plan."""

    text: str
    odd: bool = False


def carried(traffic: Sequence[Traffic]) -> tuple[TrafficLine, ...]:
    """Return what the planned devices carried, those of them that carried less, and what other devices carried."""
    from statistics import median

    planned = [one.sent for one in traffic if one.planned]
    same = {share: [one for one in traffic if one.share is share] for share in Share}
    return (
        *_well(same[Share.USUAL]),
        *_less(same[Share.LESS], median(planned) if planned else 0.0),
        *_others(same[Share.STRAY], bool(planned)),
        *_within(same[Share.INSIDE]),
    )


def _well(same: Sequence[Traffic]) -> list[TrafficLine]:
    if not same:
        return []
    if any(one.sent for one in same):
        return [_sent(_devices(same), _amount(same))]
    return [_sent(_devices(same), tr("nothing"), odd=True)]


def _sent(devices: str, amount: str, *, odd: bool = False) -> TrafficLine:
    return TrafficLine(words.line(tr("sent by {devices}: {amount}", devices=devices, amount=amount)), odd)


def _less(same: Sequence[Traffic], usual: float) -> list[TrafficLine]:
    sent = {f"{one.node} {one.device}": moved(one.sent) if one.sent else tr("nothing") for one in same}
    others = moved(usual)
    return [_sent(device, tr("{amount} (the others: {others})", amount=amount, others=others), odd=True)
            for device, amount in sent.items()]  # fmt: skip


def _others(same: Sequence[Traffic], planned: bool) -> list[TrafficLine]:  # noqa: FBT001  whether there was a plan
    if not same:
        return []
    amount = tr("{amount} (not in the plan)", amount=_amount(same)) if planned else _amount(same)
    return [_sent(_devices(same), amount, odd=planned)]


def _within(same: Sequence[Traffic]) -> list[TrafficLine]:
    """Report loopback separately: its traffic uses no NIC."""
    if not same:
        return []
    inside = tr("sent inside the node, by {devices}: {amount}", devices=_devices(same), amount=_amount(same))
    return [TrafficLine(inside)]


def _amount(same: Sequence[Traffic]) -> str:
    least, most = (moved(pick(one.sent for one in same)) for pick in (min, max))
    amount = least if least == most else tr("{least} to {most}", least=least, most=most)
    return tr("{amount} each", amount=amount) if len(same) > 1 else amount


def _devices(same: Sequence[Traffic]) -> str:
    """Return "mlx5_[0-7]:1 on gpu[01-04]", the nodes that have the same devices together."""
    by_node: dict[str, list[str]] = {}
    for one in same:
        by_node.setdefault(one.node, []).append(one.device)
    folded = {node: _folded(devices) for node, devices in by_node.items()}
    return tr("; ").join(
        tr("{devices} on {nodes}", devices=words.line(devices), nodes=words.node_set(nodes))
        for devices, nodes in grouped(folded)
    )


def _folded(devices: Sequence[str]) -> str:
    """Fold "mlx5_0:1", "mlx5_1:1" to mlx5_[0-1]:1, by port."""
    ports: dict[str, list[str]] = {}
    for device in devices:
        name, _, port = device.partition(":")
        ports.setdefault(port, []).append(name)
    return ", ".join(words.node_set(names) + (f":{port}" if port else "") for port, names in ports.items())


MOST = 16  # nodes in a matrix
LONGEST_LABEL = 4


@dataclass(frozen=True)
class HeatMap:
    """A matrix of these nodes. `labels` are the parts in which their names differ. `op`: the operation, where there are
    others.

    `usual` is in GB/s: what is expected of a pair, or else what nodes reach at their best. `odd` are the low and failed
    pairs, the worst first; `left_out` is the number of pairs without a cell.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    cells: Mapping[tuple[str, str], Pair]
    usual: float
    expected: bool
    odd: tuple[Pair, ...]
    left_out: int
    pairs: tuple[Pair, ...]
    op: str = ""

    def share(self, pair: Pair) -> float | None:
        """Return the pair's bandwidth over what is usual; None if it failed."""
        return None if pair.busbw is None else pair.busbw / self.usual


def heat(probe: Probe, measurements: Sequence[Measurement], most: int = MOST) -> tuple[HeatMap, ...]:
    """Return the matrix of each operation; none for fewer than two pairs, or if all failed."""
    ops = dict.fromkeys(pair.op for pair in probe.pairs)
    drawn = [
        _heat_map(
            tuple(pair for pair in probe.pairs if pair.op == op), [one for one in measurements if one.op == op], most
        )
        for op in ops
    ]
    return tuple(replace(one, op=one.pairs[0].op if len(ops) > 1 else "") for one in drawn if one)


def _heat_map(pairs: tuple[Pair, ...], measurements: Sequence[Measurement], most: int) -> HeatMap | None:
    if len(pairs) < 2 or not any(pair.busbw for pair in pairs):  # noqa: PLR2004  one pair is no picture
        return None
    should = {one.expected for one in measurements if one.stage == "pair" and one.measured is not None}
    expected = min((value for value in should if value), default=None) if None not in should else None
    usual = expected or _usual(pairs)
    odd = sorted((pair for pair in pairs if tone(pair.standing) in (WARNED, BAD)), key=lambda p: p.busbw or 0.0)
    names = _shown(pairs, odd, most)
    shown = [pair for pair in pairs if set(pair.nodes) <= set(names)]
    cells = {order: pair for pair in shown for order in (pair.nodes, pair.nodes[::-1])}
    return HeatMap(names, labels(names), cells, usual, bool(expected), tuple(odd), len(pairs) - len(shown), pairs)


def _usual(pairs: Sequence[Pair]) -> float:
    """Return the median of what nodes reach at their best: a slow node makes all its pairs slow."""
    from statistics import median_high

    best: dict[str, float] = {}
    for pair in pairs:
        for node in pair.nodes:
            best[node] = max(best.get(node, 0.0), pair.busbw or 0.0)
    return median_high(one for one in best.values() if one)


@dataclass(frozen=True)
class Odd:
    """Low or failed pairs with one likely cause: all pairs of one node, or a single pair."""

    nodes: tuple[str, ...]
    pairs: tuple[Pair, ...]

    @property
    def best(self) -> float | None:
        """The best of them in GB/s; None if all failed."""
        return max((pair.busbw for pair in self.pairs if pair.busbw is not None), default=None)

    @property
    def tone(self) -> str:
        """The style of the worst of them."""
        return BAD if any(tone(pair.standing) == BAD for pair in self.pairs) else WARNED


def gathered(drawn: HeatMap) -> tuple[Odd, ...]:
    """Return the low and failed pairs, grouped by node if all pairs of it are such, the largest group first."""
    well, left, found = _ever_well(drawn), list(drawn.odd), []
    while left:
        counts = Counter(node for pair in left for node in pair.nodes if node not in well)
        node, number = max(counts.items(), key=lambda one: one[1], default=("", 0))
        if number > 1:
            same = tuple(pair for pair in left if node in pair.nodes)
            found.append(Odd((node,), same))
        else:
            same = (left[0],)
            found.append(Odd(left[0].nodes, same))
        taken = frozenset(same)
        left = [pair for pair in left if pair not in taken]
    return tuple(found)


def odd_words(drawn: HeatMap, odd: Odd) -> str:
    """Return "gpu03 with each of 3 others: 21.4 GB/s at best, 43 % of the usual"."""
    nodes = tr(" and ").join(odd.nodes)
    if len(odd.nodes) == 1:
        nodes = tr("{node} with each of {number} others", node=nodes, number=len(odd.pairs))
    if odd.best is None:
        return tr("{nodes}: failed", nodes=nodes)
    best = tr("{rate} GB/s at best", rate=rate(odd.best)) if len(odd.pairs) > 1 else f"{rate(odd.best)} GB/s"
    share = percent(odd.best / drawn.usual)
    of = (
        tr("{share} of the expected value", share=share)
        if drawn.expected
        else tr("{share} of the usual value", share=share)
    )
    return tr("{nodes}: {rate}, {share}", nodes=nodes, rate=best, share=of)


def _ever_well(drawn: HeatMap) -> frozenset[str]:
    """Return the nodes that have at least one good pair."""
    odd = frozenset(drawn.odd)
    return frozenset(node for pair in drawn.pairs if pair not in odd for node in pair.nodes)


def _shown(pairs: Sequence[Pair], odd: Sequence[Pair], most: int) -> tuple[str, ...]:
    """Return all nodes in natural order, or those of the worst pairs if all are too many."""
    every = {node for pair in pairs for node in pair.nodes}
    if len(every) > most:
        every = set(list(dict.fromkeys(node for pair in odd for node in pair.nodes))[:most])
    return tuple(sorted(every, key=_natural))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,9})", name)]


def labels(names: Sequence[str]) -> tuple[str, ...]:
    """Return the part in which the names differ ("01" of gpu01), or their positions if that is long."""
    if len(names) < 2:  # noqa: PLR2004  one name differs from none
        return tuple(f"{place}" for place in range(1, len(names) + 1))
    before = _shared(names).rstrip("0123456789")
    after = _shared([name[len(before) :][::-1] for name in names])[::-1].lstrip("0123456789")
    cut = tuple(name[len(before) : len(name) - len(after)] for name in names)
    if all(0 < len(label) <= LONGEST_LABEL for label in cut):
        return cut
    return tuple(str(place) for place in range(1, len(names) + 1))


def _shared(names: Sequence[str]) -> str:
    """Return the common prefix."""
    first, last = min(names), max(names)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
