"""The bus bandwidth that an operation should reach on the detected hardware, and what limits it.

For large messages it is the lower of two: the links between the GPUs of a node, and the network between nodes. There a
ring carries R, the sum of a node's NICs; a tree carries R(n-1)/n with n ranks. Between two nodes each sends its data
only once: a tree that joins NVLS of both carries twice that; any other tree is somewhere between R and 2R, so R is the
least. Nodes of one NVLink domain have the NVLinks between them. Published measurements reach 0.93 to 1.0 of it
(sources: NCCL source, graph/tuning.cc; those in tests/ncheck/probe/published.toml).

All-gather, reduce-scatter and broadcast are rings: R between any number of nodes. Of an all-to-all of N ranks, g on
each node, the part (N-g)/(N-1) leaves the node, and a rank has one NIC for it (nccl-tests issues 130 and 267). In
send-recv one rank of each node sends to the next node, by one NIC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.probe.links.algorithms import RING, TREE, allows, settings_on
from ncheck.probe.links.ceiling import Ceiling, Component, lowest, unknown
from ncheck.probe.links.domains import Domains, across, domains_of
from ncheck.probe.links.gpu_links import COPIED, carries_nvls_tree, inside, inside_by
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.links.nic_links import Rails, by_few_gpus, by_rdma, by_tcp, nic_sum, of_each_rank, one_rail, rails_of
from ncheck.probe.node_result import Method, NodeResult, Stage, Step
from ncheck.probe.results import LARGE, MOST_START, Collective, busbw, start_up
from ncheck.probe.search import Expect
from ncheck.text import size

_BARE = NodeHardware()
NAMED = "--expect"  # the limiting term where the user gives the expected bandwidth


@dataclass(frozen=True)
class Expected:
    """The bus bandwidth in GB/s of the largest size, None if a part of the chain is `unknown`.

    `unknown_on` are the nodes whose own part is unknown. `limited_by` describes what limits it; `lowered_by` are
    observed facts that make it less than the hardware's best ("7 of 8 rails on node03"). `component` and `narrow` are
    as in Ceiling.
    """

    busbw: float | None
    limited_by: str = ""
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    component: Component = field(default=Component.OTHER, compare=False)
    narrow: bool = field(default=False, compare=False)
    unknown_on: tuple[str, ...] = field(default=(), compare=False)


def expected(collective: Collective, hardware: Mapping[str, NodeHardware]) -> Expected:
    """Return what this collective should reach; `hardware` is by node (ncheck.probe.links.hardware).

    --expect sets the value of an all-reduce on all nodes, whatever the hardware is.
    """
    step = collective.step
    if step.expect is not None and step.stage is Stage.ALL and step.op is Op.ALL_REDUCE:
        return Expected(step.expect, NAMED)
    if step.method is Method.LOOPBACK:
        return Expected(None)  # judged by the rate of its port
    if step.world == 1:
        return Expected(None, unknown=("the bandwidth of a single rank, which uses no link",))
    chain = tuple(_chain(collective, hardware))
    limit = at_size(lowest(ceiling for _, ceiling in chain), collective)
    on = tuple(dict.fromkeys(node for node, ceiling in chain if node and ceiling.unknown))
    return Expected(limit.busbw, limit.term, limit.lowered_by, limit.unknown, limit.component, limit.narrow, on)


def expectation(hardware: Mapping[str, NodeHardware]) -> Expect:
    """Return a function that gives what a collective should reach on this hardware."""
    return lambda pair: expected(pair, hardware).busbw


Chain = Iterator[tuple[str, Ceiling]]  # each with the node whose part it is, "" for what all nodes share


def _chain(collective: Collective, hardware: Mapping[str, NodeHardware]) -> Chain:
    """Yield the ceilings of all nodes of the group, by what carried the data."""
    step = collective.step
    parts = [
        (node, hardware.get(node, _BARE), collective.results.get(node, NodeResult(step, ()))) for node in step.group
    ]
    if step.method.by_nccl:
        yield from _by_nccl(step, parts)
    elif step.method is Method.NICS:
        yield from ((node, _by_nics(step, node, held, result)) for node, held, result in parts)
    elif step.method in (Method.TCP, Method.RDMA):
        for node, held, result in parts:
            yield node, by_tcp(node, held, result) if step.method is Method.TCP else _railed(node, held, result)
    else:
        what = f"the bandwidth of {step.method.value} on CPUs" if step.method is Method.GLOO else "its bandwidth"
        yield "", unknown(what)


# Of a node's NICs, where each step of the ring inside it crosses them: passed by 18 of 25 GB/s (8 x 200 Gb/s) and 40 of
# 50 (8 x 400 Gb/s) in azurehpc-health-checks (check_nccl_allreduce_ib_loopback), both above 0.85 of this.
_OVER_NICS = 0.84


def _by_nics(step: Step, node: str, hardware: NodeHardware, result: NodeResult) -> Ceiling:
    """Return what a node's NICs give when all its ranks send over them at the same time."""
    rails = rails_of(node, hardware, result)
    if not isinstance(rails, Rails):
        return rails
    nics = nic_sum(node, hardware, rails, len(rails.used), max(port.rate or 0.0 for port in rails.used))
    shared = _OVER_NICS * (nics.busbw or 0.0) / step.world
    return replace(nics, busbw=shared, term=f"{nics.term}, shared by {step.world} ranks, {_OVER_NICS} of it")


Parts = list[tuple[str, NodeHardware, NodeResult]]


def _by_nccl(step: Step, parts: Parts) -> Chain:
    domains = domains_of([(node, held, result.version) for node, held, result in parts])
    if domains.count:
        yield from ((node, across(node, held, step.op)) for node, held, _ in parts)
    for (node, held, result), ranks in zip(parts, step.ranks, strict=True):
        if ranks > 1:
            yield node, _inside(step, node, held, ranks, result.version)
    if len(parts) > 1 and domains.count != 1:
        yield from _between(step, parts, domains)


def _inside(step: Step, node: str, hardware: NodeHardware, ranks: int, version: str) -> Ceiling:
    elsewhere = step.world - ranks
    if step.op is Op.ALL_REDUCE:
        return inside(node, hardware, ranks, version, elsewhere)
    return inside_by(step.op, node, hardware, ranks, elsewhere)


def _between(step: Step, parts: Parts, domains: Domains) -> Chain:
    fabrics = {by_rdma(step, result) for _, _, result in parts}
    if fabrics == {True}:
        yield from _over_rails(step, parts, domains)
    elif fabrics == {False}:
        yield from _over_sockets(step, parts)
    else:
        yield "", unknown("which network NCCL used" if len(fabrics) > 1 else "the bandwidth of the network plug-in")


def _over_rails(step: Step, parts: Parts, domains: Domains) -> Chain:
    if domains.count and step.op is not Op.ALL_REDUCE:
        yield "", unknown(f"the {step.op.value} between NVLink domains")
    elif step.op in COPIED:
        yield from _by_copies(step, parts)
    elif step.world == len(parts):
        yield from ((node, _railed(node, held, result)) for node, held, result in parts)
    else:
        yield from _by_all_rails(step, parts, domains)


# Between more than two nodes the pairs of an all-to-all meet in the switches. Published: 0.78 of the NICs on 4 nodes.
_MET = 0.85
_MOST_SENDING = 16  # ranks; among more NCCL gives a pair fewer channels (NCCL issue 1272), and published runs differ
_FASTEST_SENDING = 200  # Gb/s; of a NIC of 400 Gb/s one pair was seen to fill 0.68 to 0.9


def _by_copies(step: Step, parts: Parts) -> Chain:
    """Yield what the NICs give where ranks send to single other ones: an all-to-all, or a send-recv."""
    sends = step.op is Op.SEND_RECV
    if sends and step.world > _MOST_SENDING:
        yield "", unknown(f"how many channels NCCL has for one pair of {step.world} ranks")
        return
    for (node, held, result), ranks in zip(parts, step.ranks, strict=True):
        rails = rails_of(node, held, result)
        if not isinstance(rails, Rails):
            yield node, rails
            continue
        if sends and max(port.rate or 0.0 for port in rails.used) > _FASTEST_SENDING:
            yield "", unknown("how much of a NIC above 200 Gb/s one pair of ranks fills")
            return
        own = len(rails.used) if sends else ranks
        nic = of_each_rank(node, held, rails, own) if ranks > 1 else one_rail(node, held, rails, result)
        yield node, nic if sends else _leaving(step, nic, ranks)


def _leaving(step: Step, nic: Ceiling, ranks: int) -> Ceiling:
    """Return what an all-to-all reaches where each rank has this NIC for the part that leaves its node."""
    if nic.busbw is None:
        return nic
    part = (step.world - ranks) / (step.world - 1)
    few = len(step.group) <= _TWO
    term = nic.term if ranks == 1 else f"{nic.term} for the {part:.0%} of the data that leaves the node"
    return replace(nic, busbw=nic.busbw / part * (1 if few else _MET), term=term if few else f"{_MET:g} of {term}")


def _by_all_rails(step: Step, parts: Parts, domains: Domains) -> Chain:
    found = {node: rails_of(node, held, result) for node, held, result in parts}
    known = [rails for rails in found.values() if isinstance(rails, Rails)]
    peers = max((len(rails.used) for rails in known), default=0)
    fastest = max((port.rate or 0.0 for rails in known for port in rails.used), default=0.0)
    factor, why = _carried(step, parts, domains)
    for (node, held, _), ranks in zip(parts, step.ranks, strict=True):
        rails = found[node]
        if not isinstance(rails, Rails):
            yield node, rails
            continue
        nics = nic_sum(node, held, rails, peers, fastest)
        if bus := by_few_gpus(node, held, ranks):
            nics = lowest((nics, bus))
        lowered = (*nics.lowered_by, domains.without) if domains.without else nics.lowered_by
        busbw = factor * (nics.busbw or 0.0)
        yield node, replace(nics, busbw=busbw, term=f"{nics.term}{why}", lowered_by=lowered)


_TWO = 2


def _carried(step: Step, parts: Parts, domains: Domains) -> tuple[float, str]:
    """Return how often the sum of a node's NICs counts, and the words for it.

    Between domains of several nodes it counts as often as each has nodes, but for what the rings do not use: twenty
    domains were seen at twice (published.toml).
    """
    if step.op is not Op.ALL_REDUCE:
        return 1, ""
    settings, of_tree = [settings_on(held) for _, held, _ in parts], (step.world - 1) / step.world
    ring, tree = (all(allows(own, name) for own in settings) for name in (RING, TREE))
    if domains.count:
        return 2, f", at least twice between {domains.count} NVLink domains"
    if len(parts) == _TWO:
        if all(carries_nvls_tree(node, held, result.version) for node, held, result in parts):
            return max(1.0, 2 * of_tree), ", twice between two nodes"
        return 1, ", at least: a tree between two nodes can carry more" if tree else ""
    return (1, "") if ring or not tree else (of_tree, ", by a tree (NCCL_ALGO)")


def _railed(node: str, hardware: NodeHardware, result: NodeResult) -> Ceiling:
    rails = rails_of(node, hardware, result)
    return one_rail(node, hardware, rails, result) if isinstance(rails, Rails) else rails


def _over_sockets(step: Step, parts: Parts) -> Chain:
    if len(parts) > _TWO or step.world > len(parts):  # not one pair with one rank each
        yield "", unknown("the bandwidth of sockets between more than two ranks")
        return
    yield from ((node, by_tcp(node, held, result)) for node, held, result in parts)


_MANY = 64  # nodes: with more, the start-up still shows at LARGE
_MANY_OF_OTHERS = 8  # the same of other operations: half the data, and as many steps as ranks
_STREAMS = frozenset({Method.TCP, Method.RDMA})  # streaming runs at full speed for any size
_LEAST = 0.005  # seconds at full speed


def at_size(ceiling: Ceiling, collective: Collective) -> Ceiling:
    """Return the ceiling for the largest size that was measured; unknown if the sizes are too small."""
    most = _MANY if collective.step.op is Op.ALL_REDUCE else _MANY_OF_OTHERS
    largest, many = collective.largest, len(collective.step.group) > most
    if ceiling.busbw is None or largest is None or collective.step.method in _STREAMS:
        return ceiling
    if largest.size >= LARGE and not many:
        return ceiling
    start, named = start_up(collective), size(largest.size)
    full = busbw(collective.step, replace(largest, seconds=1.0)) / ceiling.busbw
    if start is None or full < _LEAST or start > MOST_START * largest.seconds:
        larger = "4G,8G" if many else "1G"
        return unknown(f"the bandwidth of messages of {named}: too small to judge these links (--sizes {larger})")
    term = f"{ceiling.term}; at {named}, with {start * 1e3:.2g} ms of start-up"
    return replace(ceiling, busbw=ceiling.busbw * full / (start + full), term=term)
