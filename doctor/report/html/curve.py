"""Where each thing of the curve lies on its drawing: sizes by their logarithm, bandwidth from nothing upwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log2, log10

from doctor import byte_words
from doctor.model.report import Measurement, Point
from doctor.report import measured_words as say

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 30, 44
_TICKS = 5
_LABEL = 62  # the room that a size needs below the drawing


@dataclass(frozen=True)
class Dot:
    """One size at its place, with the words that a pointer over it shows."""

    x: float
    y: float
    told: str
    wrong: bool


@dataclass(frozen=True)
class Line:
    """One way of the same all-reduce: a line through its dots."""

    name: str
    in_place: bool
    dots: tuple[Dot, ...]

    @property
    def path(self) -> str:
        """The line as SVG has it."""
        return " ".join(f"{'L' if place else 'M'}{dot.x:.1f},{dot.y:.1f}" for place, dot in enumerate(self.dots))


@dataclass(frozen=True)
class Curve:
    """The drawing. `expected` is the height of the expected line, None where nothing is expected."""

    title: str
    told: str
    lines: tuple[Line, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    expected: float | None
    expected_words: str
    tone: str


def curve_of(one: Measurement, title: str) -> Curve | None:
    """Return the drawing of a measurement; None where it has no curve of two sizes."""
    sizes = sorted({point.size for point in one.curve if point.size > 0})
    if len(sizes) < 2:  # noqa: PLR2004  one size is no curve
        return None
    ticks = _ticks(max([one.expected or 0.0, *(point.busbw for point in one.curve)]))
    frame = _Frame(log2(sizes[0]), log2(sizes[-1]), ticks[-1])
    lines = [_line(one.curve, frame, in_place=in_place) for in_place in (False, True)]
    return Curve(
        title=f"Bus bandwidth by size: {title}",
        told=f"From {byte_words.size(sizes[0])} to {byte_words.size(sizes[-1])} a rank. {say.verdict(one)}.",
        lines=tuple(line for line in lines if line.dots),
        across=tuple((frame.x(size), byte_words.size(size)) for size in _labelled(sizes, frame)),
        up=tuple((frame.y(tick), f"{tick:g}") for tick in ticks),
        expected=frame.y(one.expected) if one.expected else None,
        expected_words=f"expected {say.rate(one.expected)} {one.unit}" if one.expected else "",
        tone=say.standing(one),
    )


@dataclass(frozen=True)
class _Frame:
    least: float
    most: float
    top: float

    def x(self, size: int) -> float:
        return LEFT + (log2(size) - self.least) / (self.most - self.least) * (WIDTH - LEFT - RIGHT)

    def y(self, busbw: float) -> float:
        return HEIGHT - BOTTOM - busbw / self.top * (HEIGHT - TOP - BOTTOM)


def _line(curve: Sequence[Point], frame: _Frame, *, in_place: bool) -> Line:
    points = sorted((p for p in curve if p.in_place is in_place and p.size > 0), key=lambda point: point.size)
    dots = tuple(Dot(frame.x(p.size), frame.y(p.busbw), _told(p), bool(p.wrong)) for p in points)
    return Line("in place" if in_place else "out of place", in_place, dots)


def _told(point: Point) -> str:
    wrong = f", {point.wrong} wrong" if point.wrong else ""
    place = "in place" if point.in_place else "out of place"
    return f"{byte_words.size(point.size)}: {say.rate(point.busbw)} GB/s, {say.time(point.seconds)}, {place}{wrong}"


def _ticks(most: float) -> list[float]:
    """Return round steps from nothing to the first at or above the most."""
    rough = (most or 1.0) / (_TICKS - 1)
    unit = 10.0 ** floor(log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough)
    count = int(-(-(most or 1.0) // step))
    return [float(f"{step * place:.6g}") for place in range(count + 1)]


def _labelled(sizes: Sequence[int], frame: _Frame) -> Sequence[int]:
    """Return the sizes that have room for a label, the largest always; that one ends where the drawing does."""
    kept, free = [sizes[-1]], frame.x(sizes[-1]) - 1.5 * _LABEL
    for size in reversed(sizes[:-1]):
        if frame.x(size) <= free:
            kept.append(size)
            free = frame.x(size) - _LABEL
    return kept[::-1]
