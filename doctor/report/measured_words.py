"""What was measured, in words: times, rates, and one sentence a measurement; for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.model.report import FAR_TOO_LOW, LOW, Measurement, Point
from doctor.report import text as words

ROWS = 10  # sizes of a curve that are shown
WELL, WARNED, BAD, UNJUDGED = "well", "warned", "bad", "unjudged"
_WHOLE = 100  # rates from here on need no decimals
_PLAIN = 20  # rates from here on need none where room is short
_LEAST = 0.01  # GB/s: less is not told apart
_KINDS = ("all", "scaling", "inside", "pair", "rail")  # the first that is there speaks for the run


def tone(ratio: float | None) -> str:
    """Return how a share of what is expected, or usual, stands."""
    if ratio is None:
        return UNJUDGED
    return WELL if ratio >= LOW else WARNED if ratio >= FAR_TOO_LOW else BAD


def standing(one: Measurement) -> str:
    """Return how a measurement stands: what failed is bad, whatever was expected."""
    return BAD if one.failed else tone(one.ratio)


def foremost(measurements: Sequence[Measurement]) -> Measurement | None:
    """Return the one that speaks for the run: all nodes, or what comes nearest to it."""
    for stage in _KINDS:
        if same := [one for one in measurements if one.stage == stage]:
            return max(same, key=lambda one: (one.ranks, bool(one.curve)))
    return measurements[0] if measurements else None


def title(one: Measurement, by: str) -> str:
    """Return "all-reduce on 4 nodes, 32 ranks"; what carried it only where that is not `by`, what carries the rest."""
    nodes = words.node_set(one.nodes)
    where = "" if one.stage == "all" or not nodes else f" ({nodes})" if one.stage == "scaling" else f" on {nodes}"
    ranks = f", {words.count(one.ranks, 'rank')}" if one.stage in ("all", "scaling") and one.ranks else ""
    other = f", by {one.by}" if one.by and one.by != by else ""
    return words.line(f"{one.what}{where}{ranks}{other}")


def together(measurements: Sequence[Measurement]) -> bool:
    """Tell whether all nodes ran at once, or at least tried to."""
    return any(one.stage == "all" for one in measurements)


def kept(one: Measurement) -> str:
    """Return "98 %", what so many nodes keep of what fewer have; "" where that cannot be told.

    Without an expectation the share is a lower bound (a tree between two nodes carries its data once), so that more
    than all of it says nothing.
    """
    if one.efficiency is None or (one.ratio is None and one.efficiency > 1):
        return ""
    return percent(one.efficiency)


def verdict(one: Measurement) -> str:
    """Return "381 of 400 GB/s expected (95 %): limited by the NICs; 7 of 8 rails", or why there is less to say."""
    if one.failed or one.measured is None:
        return words.line(f"failed: {one.failed}" if one.failed else "not measured")
    seen = f"{rate(one.measured)} {one.unit}"
    if one.expected is None or one.ratio is None:
        return words.line(
            f"{seen}; what to expect is not known" + (f": {'; '.join(one.unknown)}" if one.unknown else "")
        )
    named = one.limited_by.startswith("--")  # --expect: no term, but an option that says so
    terms = [f"{'as' if named else 'limited by'} {one.limited_by}{' says' if named else ''}"] if one.limited_by else []
    why = ": " + "; ".join([*terms, *one.lowered_by]) if terms or one.lowered_by else ""
    return words.line(f"{rate(one.measured)} of {rate(one.expected)} {one.unit} expected ({percent(one.ratio)}){why}")


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def rate(value: float) -> str:
    """Return a rate in GB/s with the figures that tell something: "381", "47.9", "0.012"."""
    if value >= _WHOLE:
        return f"{value:.0f}"
    if value >= 1 or value == 0:
        return f"{value:.1f}"
    return f"{value:.2g}" if value >= _LEAST else f"<{_LEAST}"


def short(value: float) -> str:
    """Return a rate in GB/s in three characters, for a cell."""
    return f"{value:.0f}" if value >= _PLAIN else f"{value:.2g}"


def time(seconds: float) -> str:
    """Return how long one all-reduce took."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}" if seconds < 1000 * unit else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 1e-6:.3g} us"


def rows(curve: Sequence[Point]) -> tuple[Point, ...]:
    """Return the out-of-place points by size, some of them where they are many: the largest always."""
    points = sorted((point for point in curve if not point.in_place), key=lambda point: point.size)
    points = points or sorted(curve, key=lambda point: point.size)
    if len(points) <= ROWS:
        return tuple(points)
    last = len(points) - 1
    return tuple(points[place] for place in sorted({round(last * step / (ROWS - 1)) for step in range(ROWS)}))
