"""NCCL's cost model: the time of a collective by each algorithm and protocol, and which NCCL takes.

Source: NCCL's source, src/graph/tuning.cc (ncclTopoTuneModel, ncclTopoGetAlgoTime) and src/enqueue.cc (getAlgoInfo).
Collectives by CollNet (SHARP) are left out. Figures and their releases: ncheck.predict.releases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.predict.releases import NVLS, NVLS_TREE, PAT, RING, TREE, Algorithm, Protocol, Rules

LL, LL128, SIMPLE = Protocol

# The kinds of paths between two GPUs, or a GPU and a NIC, from near to far; PXN goes by the GPU next to the NIC.
NEAR_TO_FAR = ("LOC", "NVL", "PIX", "PXB", "PXN", "PHB", "SYS")

ALLOWED: Mapping[Op, tuple[Algorithm, ...]] = {
    Op.ALL_REDUCE: (TREE, RING, NVLS, NVLS_TREE),
    Op.ALL_GATHER: (RING, NVLS, PAT),
    Op.REDUCE_SCATTER: (RING, NVLS, PAT),
    Op.BROADCAST: (RING,),
}


@dataclass(frozen=True)
class Graph:
    """What NCCL's search found for one algorithm on the node that has the least.

    `channels` and the GB/s of each, `inside` a node and `between` nodes; the farthest path that one takes, between GPUs
    (`near`) and to a NIC (`far`), as in NEAR_TO_FAR. `same`: all take the GPUs in one order. `chain`: the tree inside a
    node is a chain whose first GPU does all that goes over the network. `latency`: microseconds that the network
    itself names; a plug-in may, NCCL's own networks name none.
    """

    channels: int
    inside: float
    between: float
    near: str = "NVL"
    far: str = "PIX"
    same: bool = True
    chain: bool = False
    latency: float = 0.0


@dataclass(frozen=True)
class Job:
    """The communicator: its ranks, its nodes, the compute capability of its GPUs (90: 9.0), the least and the greatest,
    and the vendors of its nodes' processors.
    """

    ranks: int
    nodes: int
    capability: int
    most: int
    vendors: frozenset[str]
    x86: bool = True

    @property
    def on_amd(self) -> bool:
        return self.vendors == {"AuthenticAMD"}

    @property
    def mixed(self) -> bool:
        return len(self.vendors) > 1


@dataclass(frozen=True)
class Cost:
    """`latency` in microseconds, `bandwidth` in GB/s: bytes over seconds, without the latency."""

    latency: float
    bandwidth: float


Costs = Mapping[tuple[Algorithm, Protocol], Cost]
Graphs = Mapping[Algorithm, Graph]


def costs(rules: Rules, job: Job, op: Op, graphs: Graphs) -> Costs:
    """Return what each algorithm and protocol costs that this release has for an operation, whatever is turned off."""
    found = {}
    for algorithm in ALLOWED.get(op, ()):
        graph = graphs.get(algorithm)
        for protocol in Protocol:
            if graph and graph.channels and _exists(rules, job, op, algorithm, protocol):
                bandwidth = _bandwidth(rules, job, op, algorithm, protocol, graph)
                if bandwidth > 0:
                    found[algorithm, protocol] = Cost(
                        _latency(rules, job, op, algorithm, protocol, graph), bandwidth
                    )  # fmt: skip
    return found


def _exists(rules: Rules, job: Job, op: Op, algorithm: Algorithm, protocol: Protocol) -> bool:
    if algorithm in (NVLS, NVLS_TREE, PAT) and protocol is not SIMPLE:
        return False
    if algorithm is NVLS:  # between nodes it needs CollNet
        return job.nodes == 1 and (op is Op.ALL_REDUCE or rules.since >= (2, 19))
    if algorithm is NVLS_TREE:
        return job.nodes > 1
    if algorithm is PAT:
        return rules.since >= (2, 23) and job.nodes == job.ranks and job.capability >= 60  # noqa: PLR2004
    return True


def by_default(rules: Rules, job: Job, graph: Graph, protocol: Protocol) -> bool:
    """Return whether NCCL uses a protocol where NCCL_PROTO is not set: LL128 needs links that keep the order of stores.

    One exception is left out: two Hopper GPUs with CUDA 11.8.
    """
    if protocol is not LL128:
        return True
    far = "PXN" if job.capability >= 90 else "PXB"  # noqa: PLR2004
    models = job.capability == job.most or (rules.since >= (2, 30) and job.capability >= 90)  # noqa: PLR2004
    known = (70, 80, 90) if rules.since < (2, 25) else (70, 80, 90, 100, 120)
    fit = job.capability in known if rules.since < (2, 27) else job.capability >= 70  # noqa: PLR2004
    return models and fit and graph.near in ("LOC", "NVL") and within(graph.far, far)


def within(path: str, most: str) -> bool:
    """Return whether a path is no farther than `most`, as in NEAR_TO_FAR."""
    return NEAR_TO_FAR.index(path) <= NEAR_TO_FAR.index(most)


def generation(rules: Rules, capability: int) -> int:
    """Return the row of a table of bandwidths."""
    row = 3 if capability >= 100 else 2 if capability >= 90 else 1 if capability >= 80 else 0  # noqa: PLR2004
    return min(row, len(rules.tree) - 1)


def _steps(op: Op, ranks: int) -> int:
    """Return the steps of a ring."""
    if op is Op.ALL_REDUCE:
        return 2 * (ranks - 1)
    return ranks if op is Op.BROADCAST else ranks - 1


def _bandwidth(  # noqa: PLR0913, PLR0917  what the model is of
    rules: Rules, job: Job, op: Op, algorithm: Algorithm, protocol: Protocol, graph: Graph
) -> float:
    row, column = generation(rules, job.capability), min(job.nodes, 3) - 1
    count = graph.channels
    if algorithm in (NVLS, NVLS_TREE):
        total = count * _of_nvls(rules, job, op, algorithm, graph)
    else:
        total = count * (graph.inside if job.nodes <= 2 else graph.between)  # noqa: PLR2004
    if algorithm is RING:
        total = _of_ring(rules, job, op, protocol, total, count, row, column)
    elif algorithm is TREE:
        total = min(total * 0.92, count * rules.tree[row][column])
        if protocol is LL:
            total = min(total / 3.8, _most_of_ll(rules, job, row, column))
        elif protocol is LL128:
            share = 7 / 9 if job.nodes == 1 else 120 / 128
            total = min(total * share, count * rules.tree_ll128[row][column])
        total *= 0.85 if graph.chain else 1
    elif algorithm is PAT:
        total *= 0.75 if rules.since >= (2, 24) else 0.85
    return total * _of_bus(rules, job, op, algorithm)


def _of_ring(  # noqa: PLR0913, PLR0917  the same
    rules: Rules, job: Job, op: Op, protocol: Protocol, total: float, count: int, row: int, column: int
) -> float:
    if protocol is LL:
        share = 1 / 4 if job.nodes > 1 or op is Op.ALL_REDUCE else 1 / 3
        return min(_most_of_ll(rules, job, row, column), total * (0.5 if rules.since >= (2, 21) else share))
    if protocol is LL128:
        share = 0.7 if rules.since < (2, 23) and job.ranks < 2 * job.nodes else 0.92
        return min(total * share, count * rules.ring_ll128[row][column])
    return total


def _of_nvls(rules: Rules, job: Job, op: Op, algorithm: Algorithm, graph: Graph) -> float:
    """Return the GB/s of a channel."""
    inside, between, two = graph.inside, graph.between, job.nodes <= 2  # noqa: PLR2004
    gather, of_others = op is not Op.ALL_REDUCE, 1 - job.nodes / job.ranks
    if rules.since >= (2, 28):
        if graph.channels < 2:  # noqa: PLR2004  it is not used then
            return 0
        row = generation(rules, job.capability)
        inside *= _NVLS[row] * (graph.channels - 1) / graph.channels * (of_others if gather else 2)
        if algorithm is NVLS_TREE:
            return min(inside, between * (2 if two else 1), rules.nvls_tree[row][min(job.nodes, 3) - 1])
    elif rules.since < (2, 19):
        return inside if two else between
    elif algorithm is NVLS_TREE:
        between /= 1 if two else 2
    elif gather and rules.since >= (2, 27):
        inside, between = inside * of_others, between * 0.9
    return min(inside, between)


_NVLS = (0, 0, 0.85, 0.74)  # what NVLS reaches of the NVLinks, by generation


def _of_bus(rules: Rules, job: Job, op: Op, algorithm: Algorithm) -> float:
    """Return bytes over seconds as a share of what all channels carry together."""
    of_ring = job.ranks / _steps(op, job.ranks)
    if algorithm is RING:
        return of_ring
    if op is not Op.ALL_REDUCE and (rules.since >= (2, 23) or algorithm is PAT):
        return 1
    if algorithm in (NVLS, NVLS_TREE):
        if rules.since >= (2, 28):
            return of_ring
        if algorithm is NVLS_TREE and rules.since < (2, 19):
            return 0.70 * job.nodes / (2 * (job.nodes - 1))
        return 5 / 6
    return 0.5


def _most_of_ll(rules: Rules, job: Job, row: int, column: int) -> float:
    amd = job.on_amd or (job.mixed and rules.since >= (2, 24))
    return rules.ll[row if job.nodes == 1 else 1 if amd else 0][column]


def _latency(  # noqa: PLR0913, PLR0917  the same
    rules: Rules, job: Job, op: Op, algorithm: Algorithm, protocol: Protocol, graph: Graph
) -> float:
    place = list(Protocol).index(protocol)
    base, links = rules.base[algorithm][place], rules.nvlink if graph.near == "NVL" else rules.pci
    inside, own = links[algorithm][place], job.ranks // job.nodes
    alone = job.ranks == job.nodes and rules.since >= (2, 23)  # nothing hides the network then
    between = rules.net[TREE if alone else algorithm][place] + graph.latency * (2 if protocol is SIMPLE else 1)
    rounds = job.nodes.bit_length() - 1
    if algorithm is RING:
        return base + _of_rings(rules, job, op, protocol, inside, between, graph)
    if algorithm is TREE:
        return base + 2 * ((own - 1) * inside + rounds * between)
    if algorithm is PAT:
        return 8 + rounds * between / 3.5 + job.ranks * 2.8
    if rules.since < (2, 19):
        return base + (2 * (job.nodes - 1) * rules.net[NVLS_TREE][place] if algorithm is NVLS_TREE else 0)
    return inside if algorithm is NVLS else base + inside + 2 * rounds * between


def _of_rings(  # noqa: PLR0913, PLR0917  the same
    rules: Rules, job: Job, op: Op, protocol: Protocol, inside: float, between: float, graph: Graph
) -> float:
    steps, place = _steps(op, job.ranks), list(Protocol).index(protocol)
    if op is Op.BROADCAST:
        own = rules.net if job.nodes > 1 else rules.nvlink if graph.near == "NVL" else rules.pci
        if graph.same:
            return own[RING][place]
        return steps * own[TREE if protocol is SIMPLE else RING][place]
    if job.nodes > 1:
        inside = max(inside, (2.0 if job.on_amd else 1.0) * (3 if protocol is SIMPLE else 1))
    far = 0 if job.nodes == 1 else (2 if op is Op.ALL_REDUCE else 1) * (job.nodes - 1)
    if rules.since < (2, 23) and op is Op.ALL_REDUCE and job.nodes > 1:
        far = 2 * job.nodes
    return (steps - far) * inside + far * between


# What a tree reaches of its bandwidth, by the size: 64 B, 128 B ... 256 MiB.
_TREE_BY_SIZE: Mapping[Protocol, tuple[float, ...]] = {
    LL: (1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
    LL128: (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
    SIMPLE: (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9),
}  # fmt: skip


def seconds(  # noqa: PLR0913, PLR0917  what the model is of
    rules: Rules,
    job: Job,
    op: Op,
    which: tuple[Algorithm, Protocol],
    cost: Cost,
    size: int,
    channels: int,
    scale: float,
) -> float:
    """Return the time of a collective of `size` bytes; `scale` is what the links carry over what NCCL assumes."""
    algorithm, protocol = which
    latency, bandwidth = cost.latency, cost.bandwidth * scale
    power = (size >> 6).bit_length() - 1
    steps = _TREE_BY_SIZE[protocol]
    if algorithm is TREE and op is Op.ALL_REDUCE and 0 <= power < len(steps):
        bandwidth *= steps[power]
    joined = algorithm is NVLS_TREE and rules.since >= (2, 29) and job.capability >= 100 and job.x86  # noqa: PLR2004
    if joined and op is Op.ALL_REDUCE and 0 <= power <= len(steps):
        bandwidth *= (*steps, steps[-1])[power]
    far = job.nodes > 1 and op is Op.ALL_REDUCE and size // (channels * job.ranks) >= 64  # noqa: PLR2004
    if which == (RING, SIMPLE) and far:
        latency *= 1.9 if job.capability < 80 else 1.4  # noqa: PLR2004
    return latency / 1e6 + size / (bandwidth * 1e9)


def allowed(  # noqa: PLR0913, PLR0917  what the model is of
    rules: Rules,
    job: Job,
    graphs: Graphs,
    found: Costs,
    algorithms: Collection[str],
    protocols: Collection[str] | None,
) -> Iterator[tuple[Algorithm, Protocol]]:
    """Yield what NCCL chooses from. `algorithms` are those that NCCL_ALGO leaves; `protocols` those that NCCL_PROTO
    does, None where it is not set.
    """
    for which in found:
        algorithm, protocol = which
        if algorithm.lower() not in algorithms:
            continue
        if protocols is None:
            used = by_default(rules, job, graphs[algorithm], protocol)
        else:
            used = protocol.lower() in protocols
        if used:
            yield which


_THREADS: Mapping[tuple[Algorithm, Protocol], tuple[int, int]] = {
    (algorithm, protocol): threads
    for algorithm in (TREE, RING, PAT)
    for protocol, threads in ((LL, (512, 8)), (LL128, (640, 8)), (SIMPLE, (512, 64)))
}


def channels_for(  # noqa: PLR0913, PLR0917  the same
    job: Job, which: tuple[Algorithm, Protocol], graph: Graph, size: int, most: int, of_nvls: int
) -> int:
    """Return how many of the `most` channels of a communicator a collective of this size takes, at most."""
    if which[0] in (NVLS, NVLS_TREE):
        return of_nvls
    threads, least = _THREADS[which]
    if which == (RING, SIMPLE) and graph.inside * graph.channels <= _PCIE_3:
        threads = 256
    if which == (RING, LL):
        least *= job.ranks
    return max(1, min(most, size // (threads * least)))


_PCIE_3 = 12.0  # GB/s of PCIe 3.0 x16
