"""What an all-reduce should give on the hardware that was detected, and the term that limits it.

For large messages it is the least of what the GPUs of a node have between them, and what the network has between nodes.
There a ring carries R, the sum of a node's NICs; a tree R(n-1)/n over n ranks, and twice that between two nodes, where
each sends its data only once. Published measurements reach 0.93 to 1.0 of it (sources: NCCL source, graph/tuning.cc;
acceptance gates and reports of clouds).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from doctor.model.facts import Means, Stage, Step, Turn
from doctor.probe.collectives import Collective
from doctor.probe.expect.ceiling import Ceiling, lowest, unknown
from doctor.probe.expect.gpu_links import inside
from doctor.probe.expect.hardware import Hardware
from doctor.probe.expect.nic_links import Rails, by_rdma, by_tcp, nic_sum, one_rail, rails_of
from doctor.probe.expect.size_ramp import at_size
from doctor.probe.search import Expect

_BARE = Hardware()
NAMED = "--expect"  # what stands in place of a limiting term where somebody knew better


@dataclass(frozen=True)
class Expected:
    """The bus bandwidth in GB/s of the largest size, None where a part of the chain is `unknown`.

    `limited_by` names the limiting term in words; `lowered_by` are the observed facts that make it less than the
    hardware's best ("7 of 8 rails on node03").
    """

    busbw: float | None
    limited_by: str = ""
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def expected(collective: Collective, hardware: Mapping[str, Hardware]) -> Expected:
    """Return what this collective should reach; `hardware` is by node (doctor.probe.expect.hardware).

    What --expect names counts for all nodes together, whatever the hardware is.
    """
    step = collective.step
    if step.expect is not None and step.stage is Stage.ALL:
        return Expected(step.expect, NAMED)
    if step.world == 1:
        return Expected(None, unknown=("what one rank alone should give: it moves nothing over any link",))
    found = at_size(lowest(_chain(collective, hardware)), collective)
    return Expected(found.busbw, found.term, found.lowered_by, found.unknown)


def expectation(hardware: Mapping[str, Hardware]) -> Expect:
    """Return the same as a function, for the search: what a pair should reach."""
    return lambda pair: expected(pair, hardware).busbw


def _chain(collective: Collective, hardware: Mapping[str, Hardware]) -> Iterator[Ceiling]:
    """Yield the ceilings of all nodes of the group, by what carried the data."""
    step = collective.step
    parts = [(node, hardware.get(node, _BARE), collective.turns.get(node, Turn(step, ()))) for node in step.group]
    if step.means.by_nccl:
        yield from _by_nccl(step, parts)
    elif step.means in (Means.TCP, Means.RDMA):
        for node, held, turn in parts:
            yield by_tcp(node, held, turn) if step.means is Means.TCP else _railed(node, held, turn)
    else:
        yield unknown(f"what {step.means.value} gives on CPUs" if step.means is Means.GLOO else "what it is to reach")


Parts = list[tuple[str, Hardware, Turn]]


def _by_nccl(step: Step, parts: Parts) -> Iterator[Ceiling]:
    for (node, held, turn), ranks in zip(parts, step.ranks, strict=True):
        if ranks > 1:
            yield inside(node, held, ranks, turn.version)
    if len(parts) > 1:
        yield from _between(step, parts)


def _between(step: Step, parts: Parts) -> Iterator[Ceiling]:
    fabrics = {by_rdma(step, turn) for _, _, turn in parts}
    if fabrics == {True}:
        yield from _over_rails(step, parts)
    elif fabrics == {False}:
        yield from _over_sockets(step, parts)
    else:
        yield unknown("which network NCCL used" if len(fabrics) > 1 else "what the network plug-in carries")


def _over_rails(step: Step, parts: Parts) -> Iterator[Ceiling]:
    if step.world == len(parts):
        yield from (_railed(node, held, turn) for node, held, turn in parts)
        return
    found = {node: rails_of(node, held, turn) for node, held, turn in parts}
    known = [rails for rails in found.values() if isinstance(rails, Rails)]
    peers = max((len(rails.used) for rails in known), default=0)
    fastest = max((port.rate or 0.0 for rails in known for port in rails.used), default=0.0)
    for node, held, _ in parts:
        rails = found[node]
        yield _two_nodes(step, nic_sum(node, held, rails, peers, fastest)) if isinstance(rails, Rails) else rails


def _two_nodes(step: Step, nics: Ceiling) -> Ceiling:
    """Return what a tree makes of two nodes' NICs: each sends its data once, not twice."""
    if len(step.group) != 2 or nics.busbw is None:  # noqa: PLR2004  two-node rule
        return nics
    tree = 2 * nics.busbw * (step.world - 1) / step.world
    return Ceiling(max(nics.busbw, tree), f"{nics.term}, twice between two nodes", nics.lowered_by)


def _railed(node: str, hardware: Hardware, turn: Turn) -> Ceiling:
    rails = rails_of(node, hardware, turn)
    return one_rail(node, hardware, rails, turn) if isinstance(rails, Rails) else rails


def _over_sockets(step: Step, parts: Parts) -> Iterator[Ceiling]:
    if len(parts) > 2 or step.world > len(parts):  # noqa: PLR2004  one pair, one rank each
        yield unknown("what sockets give to more than one pair")
        return
    yield from (by_tcp(node, held, turn) for node, held, turn in parts)
