"""Small messages do not fill a link: what a ceiling comes to at the size that was measured.

The ceilings hold from 1 GiB on. Below, one all-reduce takes t = alpha + S/B; alpha is what the two largest sizes that
were measured leave over, and B what the ceiling says. What is over in a few milliseconds follows no such line:
published curves of fast networks reach nine tenths of their end at about five, and before that nothing is judged.
"""

from __future__ import annotations

from dataclasses import replace

from doctor.model.facts import Means
from doctor.probe.collectives import Collective, busbw
from doctor.probe.expect.ceiling import Ceiling, unknown

LARGE = 2**30
_MIB = 2**20
_STREAMS = frozenset({Means.TCP, Means.RDMA})  # what is measured by streaming is at its full speed at any size
_LEAST = 0.005  # seconds at full speed
_MOST_START = 0.5  # of the time of the largest size: beyond it little is seen of the links


def at_size(ceiling: Ceiling, collective: Collective) -> Ceiling:
    """Return the ceiling as it is at the largest size; unknown where the sizes are too small to tell by."""
    largest = collective.largest
    if ceiling.busbw is None or largest is None or largest.size >= LARGE or collective.step.means in _STREAMS:
        return ceiling
    start, size = _start(collective), f"{largest.size / _MIB:.4g} MiB"
    full = busbw(collective.step, replace(largest, seconds=1.0)) / ceiling.busbw
    if start is None or full < _LEAST or start > _MOST_START * largest.seconds:
        return unknown(f"what messages of {size} reach: too small to judge these links by (--sizes 1G)")
    term = f"{ceiling.term}; at {size}, with {start * 1e3:.2g} ms of start-up"
    return replace(ceiling, busbw=ceiling.busbw * full / (start + full), term=term)


def _start(collective: Collective) -> float | None:
    """Return the seconds before anything flows, fitted to the two largest sizes; None where they do not tell it.

    Of one size the row counts that Collective.largest prefers: gloo's are all in place.
    """
    by_size = {row.size: row for row in sorted(collective.rows, key=lambda row: not row.in_place)}
    rows = [by_size[size] for size in sorted(by_size)[-2:]]
    if len(rows) < 2 or rows[1].seconds <= rows[0].seconds:  # noqa: PLR2004  it takes two for a slope
        return None
    small, large = rows
    slope = (large.seconds - small.seconds) / (large.size - small.size)
    return max(0.0, large.seconds - slope * large.size)
