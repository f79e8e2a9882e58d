"""The report as one self-contained HTML page: nothing is fetched, light and dark, fit for a phone and for printing.

Its one script searches and copies; the page allows it by its hash, and no other.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import ceil, floor, log2, log10
from operator import attrgetter
from typing import TextIO

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome, Verdict
from ncheck.model.report import Measurement, NodeSummary, Pair, Point, Report
from ncheck.report import measured as say
from ncheck.report import text as words
from ncheck.report.check_matrix import CheckMatrix, check_matrix
from ncheck.report.gpus_alone import GpuTable, gpu_table
from ncheck.report.language import marked, spoken, tr
from ncheck.report.measured import HeatMap, TrafficLine, carried, gathered, heat, odd_words
from ncheck.report.summary import (
    DOUBTFUL,
    NOT_RUN,
    OUTCOMES,
    Headline,
    blocked,
    by_outcome,
    caveats,
    consequences,
    counts_of_outcomes,
    exit_code_meaning,
    headline,
    interpreter,
    node_topics,
    origin,
    plan_settings,
    read_more,
    totals,
    urgency,
)
from ncheck.report.text import (
    FoldedFinding,
    counted,
    fix_label,
    fold_findings,
    fold_verdicts,
    grouped,
    lines,
    next_of,
    node_set,
)
from ncheck.report.topics import TopicLine, topic_lines
from ncheck.text import size as size_text

_LONGEST_NAME = 18  # of a node, beside the picture of the pairs


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  the page has its own colours
    """Write the report as a page."""
    stream.write(as_html(report))


def as_html(report: Report) -> str:
    """Return the page. Text from nodes is escaped, whatever it looks like."""
    own_script = _template("page.js").render().encode("ascii", "backslashreplace").decode("ascii")
    style, script = Markup(_own("page.css")), Markup(own_script)  # noqa: S704  our own files
    allowed = b64encode(sha256(script.encode("ascii")).digest()).decode()
    text = _template("page.html").render(view=view_of(report), style=style, script=script, allowed=allowed)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")  # the same in every encoding


@cache
def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True, finalize=_clean, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(
        folded=node_set, fix_label=fix_label, next_of=next_of, label=attrgetter("label"), place=_place, cut=_cut
    )
    environment.filters.update(tr=tr, count=words.count)
    environment.globals.update(tr=tr, lang=spoken)
    return environment.from_string(_own(name))


def _own(name: str) -> str:
    return files("ncheck.report").joinpath(name).read_text(encoding="utf-8")


def _clean(value: object) -> object:
    """Replace invisible and bidirectional characters by `?`; keep line ends."""
    return "\n".join(lines(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _place(number: float) -> str:
    return f"{number:.1f}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 30, 44
_DECADES = 6  # of bandwidth that are drawn
_FEW = 2
_LABEL = 62  # room for a size below the drawing


@dataclass(frozen=True)
class Dot:
    """One size at its position; `description` is shown by a pointer over it."""

    x: float
    y: float
    description: str
    wrong: bool


@dataclass(frozen=True)
class CurveLine:
    """The all-reduce in place or out of place: a line through its dots."""

    name: str
    in_place: bool
    dots: tuple[Dot, ...]

    @property
    def path(self) -> str:
        """The line in SVG."""
        return " ".join(f"{'L' if place else 'M'}{dot.x:.1f},{dot.y:.1f}" for place, dot in enumerate(self.dots))


@dataclass(frozen=True)
class Curve:
    """The drawing. `expected` is the height of the expected line, None if no value is expected."""

    title: str
    description: str
    lines: tuple[CurveLine, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    expected: float | None
    expected_words: str
    tone: str


def curve_of(one: Measurement, title: str) -> Curve | None:
    """Return the drawing of a measurement; None if it has fewer than two sizes."""
    sizes = sorted({point.size for point in one.curve if point.size > 0})
    if len(sizes) < 2:  # noqa: PLR2004  one size is no curve
        return None
    ticks = _ticks([one.expected or 0.0, *(point.busbw for point in one.curve)])
    frame = _Frame(log2(sizes[0]), log2(sizes[-1]), log10(ticks[0]), log10(ticks[-1]))
    lines = [_line(one.curve, frame, in_place=in_place) for in_place in (False, True)]
    return Curve(
        title=tr("Bus bandwidth by size: {title}", title=title),
        description=tr(
            "From {least} to {most} per rank. {verdict}.",
            least=size_text(sizes[0]),
            most=size_text(sizes[-1]),
            verdict=say.verdict(one),
        ),
        lines=tuple(line for line in lines if line.dots),
        across=tuple((frame.x(size), size_text(size)) for size in _labelled(sizes, frame)),
        up=tuple((frame.y(tick), f"{tick:g}") for tick in ticks),
        expected=frame.y(one.expected) if one.expected else None,
        expected_words=tr("expected {rate}", rate=f"{say.rate(one.expected)} {one.unit}") if one.expected else "",
        tone=say.tone_of(one),
    )


@dataclass(frozen=True)
class _Frame:
    """Both axes are logarithmic: small messages reach a thousandth of what large ones do."""

    least: float
    most: float
    bottom: float
    top: float

    def x(self, size: int) -> float:
        return LEFT + (log2(size) - self.least) / (self.most - self.least) * (WIDTH - LEFT - RIGHT)

    def y(self, busbw: float) -> float:
        share = (log10(max(busbw, 10**self.bottom)) - self.bottom) / (self.top - self.bottom)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _line(curve: Sequence[Point], frame: _Frame, *, in_place: bool) -> CurveLine:
    points = sorted((p for p in curve if p.in_place is in_place and p.size > 0), key=lambda point: point.size)
    dots = tuple(Dot(frame.x(p.size), frame.y(p.busbw), _description(p), bool(p.wrong)) for p in points)
    return CurveLine(tr("in place") if in_place else tr("out of place"), in_place, dots)


def _description(point: Point) -> str:
    parts = [
        f"{say.rate(point.busbw)} GB/s",
        say.time(point.seconds),
        tr("in place" if point.in_place else "out of place"),
    ]
    parts += [tr("{number} wrong", number=point.wrong)] if point.wrong else []
    return f"{size_text(point.size)}{tr(': ')}{tr(', ').join(parts)}"


def _ticks(values: Sequence[float]) -> list[float]:
    """Return powers of ten around the values, at most _DECADES of them; with 2 and 5 between them if they are few.

    The last one is the first of 1, 2, 5, 10 ... at or above all values.
    """
    there = [value for value in values if value > 0] or [1.0]
    top = ceil(log10(max(there)))
    bottom = min(max(floor(log10(min(there))), top - _DECADES), top - 1)
    fine = [float(f"{step}e{power}") for power in range(bottom, top) for step in (1, 2, 5)]
    until = next((tick for tick in fine[1:] if tick >= max(there)), 10.0**top)
    ticks = fine if top - bottom <= _FEW else fine[::3]
    return [tick for tick in ticks if tick < until] + [until]


def _labelled(sizes: Sequence[int], frame: _Frame) -> Sequence[int]:
    """Return the sizes that have room for a label, always including the largest, which ends at the right edge."""
    kept, free = [sizes[-1]], frame.x(sizes[-1]) - 1.5 * _LABEL
    for size in reversed(sizes[:-1]):
        if frame.x(size) <= free:
            kept.append(size)
            free = frame.x(size) - _LABEL
    return kept[::-1]


MATRIX = 48  # nodes that a picture of the pairs has room for
NUMBERED = 24  # up to this many nodes, each cell shows its number


@dataclass(frozen=True)
class Cell:
    """One cell of the picture of pairs."""

    column: int
    row: int
    text: str
    description: str
    tone: str


@dataclass(frozen=True)
class Pairs:
    """The picture of node by node: cells by column and row, and the odd pairs in words."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    usual: str
    odd: tuple[str, ...]
    left_out: int
    op: str


@dataclass(frozen=True)
class SizeRow:
    """One size as nccl-tests tabulates it: out of place, then in place; None if it was not measured."""

    size: int
    out: Point | None
    within: Point | None


@dataclass(frozen=True)
class MeasuredSection:
    """One measurement: its title, its result in words, and how good it is (`tone`)."""

    title: str
    description: str
    tone: str
    share: float | None
    curve: Curve | None
    rows: tuple[SizeRow, ...]


@dataclass(frozen=True)
class Outcomes:
    """All verdicts with one outcome: rows of checks, nodes and reason."""

    name: str
    count: int
    rows: tuple[tuple[tuple[str, ...], str, str], ...]


@dataclass(frozen=True)
class Card:
    """A cause with its anchor, what follows from it with theirs, and the page of its check, once per check: its address
    in a site, or HTML.
    """

    anchor: str
    finding: FoldedFinding
    following: tuple[tuple[str, FoldedFinding], ...]
    site: str
    page: Markup


@dataclass(frozen=True)
class View:
    """Everything on the page, in its order."""

    report: Report
    origin: tuple[str, ...]
    headline: Headline
    caveats: tuple[str, ...]
    figures: tuple[tuple[str, str, str], ...]  # a number, its label, its tone
    kinds: tuple[tuple[str, int], ...]  # how many findings of each kind
    findings: tuple[Card, ...]  # worst first
    looked_at: tuple[TopicLine, ...]
    matrix: CheckMatrix
    foremost: MeasuredSection | None
    measured: tuple[MeasuredSection, ...]
    gpus: GpuTable | None
    how_measured: str  # or why nothing was
    timed: str  # how often each size was timed, or nothing
    pairs: tuple[Pairs, ...]
    carried: tuple[TrafficLine, ...]
    settings: tuple[tuple[str, str], ...]  # a line to type, its reason
    unusable: str  # why the plan must not be used, or nothing
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]
    topics: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    table: tuple[tuple[NodeSummary, str], ...]
    outcomes: tuple[Outcomes, ...]
    totals: str
    read_more: str
    exit_code: str


def view_of(report: Report) -> View:
    """Return what the page shows of this report."""
    findings = fold_findings(report.findings)
    first = say.foremost(report.measurements) if report.probe.ran else None
    by = first.by if first else ""
    return View(
        report=report,
        origin=tuple(origin(report)),
        headline=headline(report, findings),
        caveats=tuple(caveats(report)),
        figures=tuple(_figures(report, findings, first)),
        kinds=tuple(Counter(one.label for one in sorted(findings, key=urgency) if not one.see).items()),
        findings=tuple(_cards(findings)),
        looked_at=topic_lines(report, findings),
        matrix=check_matrix(report),
        foremost=_measured(first, by) if first else None,
        measured=tuple(_measured(one, by) for one in report.measurements if one is not first),
        gpus=gpu_table(report),
        how_measured=say.how_measured(report),
        timed=say.protocol(report.measurements),
        pairs=tuple(_pairs(drawn) for drawn in heat(report.probe, report.measurements, MATRIX)),
        carried=carried(report.probe.traffic),
        settings=tuple(_settings(report)),
        unusable=blocked(report.plan),
        lines=tuple(
            (launcher, line, report.plan.reasons.get(launcher, ())) for launcher, line in report.plan.lines.items()
        ),
        topics=tuple(_topics(report)),
        table=tuple((node, interpreter(node) if node.reached else "") for node in report.nodes),
        outcomes=tuple(_outcomes(report)),
        totals=" \N{MIDDLE DOT} ".join(totals(report, findings)),
        read_more=read_more(findings),
        exit_code=exit_code_meaning(report),
    )


def _cards(findings: Sequence[FoldedFinding]) -> Iterator[Card]:
    """Yield the causes, worst first, with anchors: NC402, and NC402-2 for the next one of that check."""
    following, seen = consequences(findings), Counter[str]()

    def anchored(one: FoldedFinding) -> str:
        seen[one.code] += 1
        return one.code if seen[one.code] == 1 else f"{one.code}-{seen[one.code]}"

    for one in sorted((one for one in findings if not one.see), key=urgency):
        anchor = anchored(one)
        also = tuple((anchored(consequence), consequence) for consequence in following.get(one, ()))
        site = one.page if one.page.startswith("http") else ""
        yield Card(anchor, one, also, site, _page_of(one.code) if anchor == one.code and not site else Markup(""))


def _page_of(code: str) -> Markup:
    """Return the page of a check, as `ncheck explain` prints it, in HTML."""
    from markdown_it import MarkdownIt

    from ncheck.steps.registry import load_checks

    registry = load_checks()
    if registry.find(code) is None:
        return Markup("")
    (check,) = registry.select((code,))
    made = MarkdownIt("commonmark", {"html": False}).disable(["link", "autolink", "image"])
    return Markup(made.render(check.page.partition("\n")[2]).replace("<h2>", "<h4>").replace("</h2>", "</h4>"))  # noqa: S704  HTML in it is text


def _figures(
    report: Report, findings: Sequence[FoldedFinding], first: Measurement | None
) -> Iterator[tuple[str, str, str]]:
    if first and first.measured is not None:
        yield f"{say.rate(first.measured)} {first.unit}", words.line(first.what), say.tone_of(first)
        if first.ratio is not None and first.expected is not None:
            yield (
                say.percent(first.ratio),
                tr("of {rate} expected", rate=f"{say.rate(first.expected)} {first.unit}"),
                say.tone_of(first),
            )
    reached = sum(node.reached for node in report.nodes)
    yield (
        tr("{number} of {total}", number=reached, total=len(report.nodes)),
        tr("nodes reached"),
        say.WELL if reached == len(report.nodes) else say.BAD,
    )
    counts = counted(findings)
    shown = (
        (counts.errors, "error", marked("errors"), say.BAD),
        (counts.warnings, "warning", marked("warnings"), say.WARNED),
    )
    for number, noun, several, tone in shown:
        yield str(number), tr(noun if number == 1 else several), tone if number else say.WELL
    outcomes = counts_of_outcomes(report)
    for word in (Outcome.CRASHED.value, NOT_RUN, Outcome.UNKNOWN.value):
        number = outcomes.get(word, 0)
        if number or word == Outcome.UNKNOWN.value:
            yield (
                str(number),
                tr("verdict {outcome}" if number == 1 else "verdicts {outcome}", outcome=tr(word)),
                DOUBTFUL if number else say.WELL,
            )


def _measured(one: Measurement, by: str) -> MeasuredSection:
    points = {(point.size, point.in_place): point for point in one.curve}
    sizes = sorted({point.size for point in one.curve})
    rows = tuple(SizeRow(size, points.get((size, False)), points.get((size, True))) for size in sizes)
    title = say.title(one, by)
    kept = [tr("keeps {share} of what fewer nodes have", share=share)] if (share := say.kept(one)) else []
    return MeasuredSection(
        title, tr("; ").join([say.verdict(one), *kept]), say.tone_of(one), one.ratio, curve_of(one, title), rows
    )


def _pairs(drawn: HeatMap) -> Pairs:
    cells = tuple(
        _cell(drawn, column, row, pair)
        for row, one in enumerate(drawn.names)
        for column, other in enumerate(drawn.names)
        if (pair := drawn.cells.get((one, other)))
    )
    odd = tuple(odd_words(drawn, one) for one in gathered(drawn))
    usual = tr("{rate} is expected" if drawn.expected else "{rate} is usual here", rate=f"{say.rate(drawn.usual)} GB/s")
    return Pairs(drawn.names, drawn.labels, cells, usual, odd, drawn.left_out, words.line(drawn.op))


def _cell(drawn: HeatMap, column: int, row: int, pair: Pair) -> Cell:
    share = drawn.share(pair)
    pair_name = tr(" and ").join((drawn.names[row], drawn.names[column]))
    if pair.busbw is None or share is None:
        return Cell(column, row, "\N{MULTIPLICATION SIGN}", tr("{nodes}: failed", nodes=pair_name), say.BAD)
    shown = say.short(pair.busbw) if len(drawn.names) <= NUMBERED else ""
    return Cell(
        column,
        row,
        shown,
        tr("{nodes}: {rate}, {share}", nodes=pair_name, rate=f"{say.rate(pair.busbw)} GB/s", share=say.percent(share)),
        say.tone(pair.standing),
    )


def _settings(report: Report) -> Iterator[tuple[str, str]]:
    """Yield each variable as a line to type with its reason; if there is nothing to type, a sentence and the reason."""
    for exports, sentence, reason in plan_settings(report.plan):
        yield from ((line, reason) for line in exports)
        if not exports:
            yield "", tr("{sentence}: {reason}", sentence=sentence, reason=reason) if reason else sentence


def _topics(report: Report) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield what the nodes have by topic: each value with its nodes, the most common first."""
    python = {node.name: interpreter(node) for node in report.nodes if node.reached}
    lost = {node.name: node.cause or tr("cause unknown") for node in report.nodes if not node.reached}
    for topic, values in {"python": python, **node_topics(report), "unreachable": lost}.items():
        if values:
            yield tr(topic), tuple((value, words.node_set(nodes)) for value, nodes in grouped(values))


def _outcomes(report: Report) -> Iterator[Outcomes]:
    """Yield the verdicts by outcome, folded: the checks, the nodes, the reason."""
    same: dict[str, list[Verdict]] = {}
    for word, verdict in by_outcome(report):
        same.setdefault(word, []).append(verdict)
    for word in OUTCOMES:
        if found := same.get(word):
            folded = fold_verdicts(found)
            rows = tuple((group.checks, words.node_set(group.nodes), group.reason) for group in folded)
            yield Outcomes(word, sum(len(verdict.nodes) for verdict in found), rows)
