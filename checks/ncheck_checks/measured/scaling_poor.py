"""Scaling efficiency is poor

## What it finds
The bus bandwidth of 2, 4, 8 ... and all nodes, each compared with the best of fewer nodes in the same operation. Bus
bandwidth stays the same as long as the same links limit it; because the limit differs between one node and several,
each is first divided by what its own links should give. The first number of nodes that keeps less than 80 % is
reported, the usual limit in evaluations of clusters. Operations that lose it with the same nodes are one finding.

## Why it matters
Every rank loses this in every step, and more with each added node. Causes are an oversubscribed switch, a missing rail,
or one slow node among those that were added.

## What to type
`sudo iblinkinfo` shows links between switches that are down or slow, `sudo ethtool -S NAME` the errors and pauses of an
Ethernet interface. `ncheck probe nodes.txt --probe-time 300` searches longer for a slow node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck import HERE, SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.model.op import Op
from ncheck.model.report import LEAST_KEPT
from ncheck.probe.expected import expectation
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, NodeHardware, hardware_in
from ncheck.probe.node_result import Stage
from ncheck.probe.results import by_op, collectives
from ncheck.probe.shortfalls import Scaled, compared, scaled, shows_links, without_expectation, without_measurement
from ncheck.text import rates


@cluster_check("NC712", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS)
def scaling_poor(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    hardware, probed = hardware_in(cluster), cluster.facts(ProbeFacts)
    expect = expectation(hardware)
    every = [scaled(own, expect) for own in by_op(collectives(probed)).values()] or [()]
    together = [one for one in compared(probed, hardware) if one.run.step.stage in (Stage.SCALING, Stage.ALL)]
    yield from (why for why in without_expectation(together, hardware) if isinstance(why, Inconclusive))
    yield from without_measurement(probed)
    if not any(steps and steps[-1].efficiency is not None for steps in every):
        steps = every[0]
        nodes = steps[-1].nodes if any(one.efficiency is not None for one in steps) else cluster.names
        yield NotApplicable("no two groups of nodes were measured whose bandwidths can be compared", nodes)
    causes = {one.run.step.op: one.cause for one in together}
    same: dict[tuple[str, ...], list[tuple[Scaled, tuple[Scaled, ...]]]] = {}
    for steps in every:
        low = next((one for one in steps if one.efficiency is not None and one.efficiency < LEAST_KEPT), None)
        if low and low.best:
            same.setdefault(low.nodes, []).append((low, steps))
    for found in same.values():
        yield _problem(found, hardware, causes, several=len(every) > 1)


def _problem(
    found: Sequence[tuple[Scaled, tuple[Scaled, ...]]],
    hardware: Mapping[str, NodeHardware],
    causes: Mapping[Op, str],
    *,
    several: bool,
) -> Problem:
    """Return one problem for the operations that scale poorly to the same nodes."""
    low = found[0][0]
    messages = [
        f"{one.op.value}: {_message(one, one.best)}" if several else _message(one, one.best)
        for one, _ in found if one.best
    ]  # fmt: skip
    evidence = tuple(f"{one.op.value}, {_line(one)}" if several else _line(one) for _, steps in found for one in steps)
    return Problem(
        "; ".join(messages),
        "ncheck probe nodes.txt --probe-time 300" if low.share is None else shows_links(low.results, hardware),
        evidence,
        low.nodes,
        where=HERE if low.share is None else low.nodes[0],
        look=True,
        follows=causes.get(low.op, SLOW_NETWORK),
    )


def _message(low: Scaled, best: Scaled) -> str:
    shares = ""
    if low.share is not None and best.share is not None:
        shares = f" ({low.share:.2f} and {best.share:.2f} of what their links should give)"
    measured = f"{_count(low)} reach {rates([low.busbw])}, {_count(best)} {rates([best.busbw])}{shares}"
    efficiency = f"{100 * (low.efficiency or 0.0):.0f} % (minimum {100 * LEAST_KEPT:.0f} %)"
    return f"scaling efficiency {efficiency}: {measured}"


def _line(one: Scaled) -> str:
    share = f", {one.share:.2f} of what their links should give" if one.share is not None else ""
    efficiency = f", efficiency {one.efficiency:.2f}" if one.efficiency is not None else ""
    return f"{_count(one)} ({fold(one.nodes)}): {rates([one.busbw])}{share}{efficiency}"


def _count(one: Scaled) -> str:
    return f"{len(one.nodes)} node{'' if len(one.nodes) == 1 else 's'}"
