"""Scaling efficiency: what more nodes keep of what fewer have.

A bus bandwidth is made so that it stays the same however many ranks there are, as long as the same links limit it. They
do not from one node to two (NVLink, then NICs), nor from two to more (a tree between two sends its data once): so each
is held against its own expectation first. Where nobody can tell that, two nodes with more than one rank each count as
little as they can: half, as if a tree had carried it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median

from ncheck.facts.probe import ProbeFacts, Stage, Turn
from ncheck.hostlist import fold
from ncheck.model.check import NotApplicable, Problem
from ncheck.model.report import LEAST_KEPT
from ncheck.probe.collectives import Collective, collectives
from ncheck.probe.expected import expectation
from ncheck.probe.search import Expect
from ncheck.probe.wires import shows_links
from ncheck.topology.hardware import Hardware


@dataclass(frozen=True)
class Scaled:
    """So many nodes: their bus bandwidth in GB/s, and its share of what it should be (None: nobody can tell).

    `efficiency` is against `best`, which of the fewer nodes keep most; None where there is none to compare with.
    """

    nodes: tuple[str, ...]
    busbw: float
    share: float | None
    ranks: int
    turns: Mapping[str, Turn]
    efficiency: float | None = None
    best: Scaled | None = None


def scaled(ran: Iterable[Collective], expect: Expect) -> tuple[Scaled, ...]:
    """Return what 1, 2, 4 ... and all nodes reach, the fewest first; one node is the median of all by themselves."""
    whole = [one for one in ran if one.busbw is not None and not one.step.means.on_cpus]
    alone = [_plain(one, expect) for one in whole if one.step.stage is Stage.INSIDE and one.step.world > 1]
    large = [_plain(one, expect) for one in whole if one.step.stage in (Stage.SCALING, Stage.ALL)]
    steps = [*_middle(alone), *sorted(large, key=lambda one: len(one.nodes))]
    return tuple(_against(one, steps[:place]) for place, one in enumerate(steps))


def poor(probed: Mapping[str, ProbeFacts], hardware: Mapping[str, Hardware]) -> Iterator[Problem | NotApplicable]:
    """Yield the first step at which too little is kept."""
    steps = scaled(collectives(probed), expectation(hardware))
    if all(one.efficiency is None for one in steps):
        yield NotApplicable("no two sizes of group were measured whose bandwidths can be compared")
        return
    low = next((one for one in steps if one.efficiency is not None and one.efficiency < LEAST_KEPT), None)
    if low and low.best:
        yield Problem(_message(low, low.best), _fix(low, hardware), tuple(map(_line, steps)), low.nodes)


def _plain(one: Collective, expect: Expect) -> Scaled:
    should, reached = expect(one), one.busbw or 0.0
    return Scaled(one.step.group, reached, reached / should if should else None, one.step.world, one.turns)


def _middle(alone: list[Scaled]) -> list[Scaled]:
    if not alone:
        return []
    middle = median(one.busbw for one in alone)
    return [min(alone, key=lambda one: abs(one.busbw - middle))]


def _against(one: Scaled, fewer: list[Scaled]) -> Scaled:
    kept = [(value, other) for other in fewer if len(other.nodes) < len(one.nodes) and (value := _kept(one, other))]
    if not kept:
        return one
    efficiency, best = min(kept, key=lambda held: held[0])
    return replace(one, efficiency=efficiency, best=best)


def _kept(one: Scaled, fewer: Scaled) -> float | None:
    """Return the share that more nodes keep of what fewer have; None where the two cannot be compared."""
    if one.share is not None and fewer.share is not None:
        return one.share / fewer.share if fewer.share else None
    if len(fewer.nodes) == 1 or one.ranks * len(fewer.nodes) != fewer.ranks * len(one.nodes):
        return None
    least = fewer.busbw
    if len(fewer.nodes) == 2:  # noqa: PLR2004  two-node rule: 2R(n-1)/n at most, where more nodes have R
        least *= 0.5 * fewer.ranks / (fewer.ranks - 1)
    return one.busbw / least if least else None


def _message(low: Scaled, best: Scaled) -> str:
    measured = f"{low.busbw:.3g} GB/s, and {len(best.nodes)} {_node(best)} {best.busbw:.3g}"
    own = ""
    if low.share is not None and best.share is not None:
        own = f" ({low.share:.2f} of what their links give, and {best.share:.2f})"
    kept = f"{100 * (low.efficiency or 0.0):.0f} %"
    return (
        f"{len(low.nodes)} nodes reach {measured}{own}: they keep {kept}, where {100 * LEAST_KEPT:.0f} % are asked for"
    )


def _line(one: Scaled) -> str:
    share = f", {one.share:.2f} of what their links give" if one.share is not None else ""
    kept = f", efficiency {one.efficiency:.2f}" if one.efficiency is not None else ""
    named = one.nodes[0] if len(one.nodes) == 1 else fold(one.nodes)
    return f"{len(one.nodes)} {_node(one)} ({named}): {one.busbw:.3g} GB/s{share}{kept}"


def _node(one: Scaled) -> str:
    return "node" if len(one.nodes) == 1 else "nodes"


def _fix(low: Scaled, hardware: Mapping[str, Hardware]) -> str:
    return "ncheck probe nodes.txt --probe-time 300" if low.share is None else shows_links(low.turns, hardware)
