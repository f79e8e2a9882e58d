"""What an all-reduce should give on the hardware that was detected, and the term that limits it.

For large messages it is the least of what the GPUs of a node have between them, and what the network has between nodes.
There a ring carries R, the sum of a node's NICs; a tree R(n-1)/n over n ranks, and twice that between two nodes, where
each sends its data only once. Published measurements reach 0.93 to 1.0 of it (sources: NCCL source, graph/tuning.cc;
acceptance gates and reports of clouds).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ncheck.facts.probe import Means, Stage, Step, Turn
from ncheck.probe.collectives import Collective, busbw
from ncheck.probe.search import Expect
from ncheck.topology.ceiling import Ceiling, lowest, unknown
from ncheck.topology.gpu_links import inside
from ncheck.topology.hardware import Hardware
from ncheck.topology.nic_links import Rails, by_rdma, by_tcp, nic_sum, one_rail, rails_of

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
    """Return what this collective should reach; `hardware` is by node (ncheck.topology.hardware).

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
