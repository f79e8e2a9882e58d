"""What NCCL will do on a cluster, by its facts: algorithm, protocol, channels, NICs, time, and what limits it.

Which algorithm and protocol: NCCL's own cost model (cost.py). How fast the links are: the model that judges what a
bandwidth test measured (ncheck.probe.expected), so that both say the same of large messages. Where no node has a GPU,
gloo is what a job uses (gloo.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.nccl.settings import PlacedSetting, is_on, release_of
from ncheck.predict import gloo
from ncheck.predict.case import LARGE, Case, links_of, speeds_of
from ncheck.predict.cost import (
    ALLOWED,
    NEAR_TO_FAR,
    Cost,
    Costs,
    Graph,
    Graphs,
    Job,
    allowed,
    channels_for,
    costs,
    seconds,
)
from ncheck.predict.graphs import NOTHING, Machine, channels_of, graphs_of
from ncheck.predict.machine import UnknownError, machine_of
from ncheck.predict.releases import PAT, RING, TREE, Algorithm, Protocol, Rules, rules_of
from ncheck.probe.links.algorithms import allows
from ncheck.probe.links.domains import domains_of
from ncheck.probe.node_result import Method

SOURCE = "https://github.com/NVIDIA/nccl (src/graph/tuning.cc, src/graph/search.cc)"


@dataclass(frozen=True)
class Predicted:
    """One size of one operation.

    size: Bytes, as nccl-tests counts them.
    algorithm: Ring, Tree, NVLS, NVLSTree or PAT; empty if it is unknown, or if the operation has none.
    protocol: LL, LL128 or Simple; empty if it is unknown, and for gloo, which has none.
    channels: The most channels that NCCL uses for it; null if it is unknown, and for gloo.
    seconds: The time of one collective; null if it is unknown.
    busbw: GB/s of bus bandwidth; null if it is unknown.
    """

    size: int
    algorithm: str = ""
    protocol: str = ""
    channels: int | None = None
    seconds: float | None = None
    busbw: float | None = None


@dataclass(frozen=True)
class OpPrediction:
    """One operation.

    op: The operation.
    rows: By size.
    limited_by: What limits large sizes.
    lowered_by: What makes it less than the hardware's best.
    unknown: What is not known of it, and why.
    at_most: GB/s of bus bandwidth that the interfaces of the nodes let through, where that alone is known; else null.
    """

    op: Op
    rows: tuple[Predicted, ...]
    limited_by: str = ""
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    at_most: float | None = None


@dataclass(frozen=True)
class Change:
    """What one change would bring.

    change: What to change, such as NCCL_IB_HCA==mlx5_0:1,mlx5_1:1.
    nodes: Where; empty: in the environment of the job.
    reason: What it changes.
    op: The operation that gains most.
    size: The size at which it does, in bytes.
    before: GB/s of bus bandwidth now; null if it is unknown.
    after: GB/s with the change.
    fix: A command to type on those nodes; may be empty.
    """

    change: str
    nodes: tuple[str, ...]
    reason: str
    op: Op
    size: int
    before: float | None
    after: float
    fix: str = ""

    @property
    def gain(self) -> float | None:
        """The share by which it is faster: 0.38 for 38 %; None if nothing is known of now."""
        return self.after / self.before - 1 if self.before else None


@dataclass(frozen=True)
class Prediction:
    """What NCCL will do on these nodes, or gloo where none of them has a GPU.

    schema: The name and the version of this form.
    library: NCCL or gloo.
    version: NCCL's release; empty if it is unknown.
    source: Where the rules come from.
    checked: Whether the source of this very release was read for the rules.
    ranks: By node, the number of ranks.
    nics: By node, the HCA ports that carry data to other nodes, or the interface that does.
    ops: By operation.
    changes: What single changes would bring, the best first.
    notes: What is assumed, or left out.
    unreachable: The nodes that could not be asked, which are left out.
    """

    version: str
    checked: bool
    ranks: Mapping[str, int]
    nics: Mapping[str, tuple[str, ...]]
    ops: tuple[OpPrediction, ...]
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    source: str = SOURCE
    library: str = "NCCL"
    schema: str = "ncheck.predict/1"

    @property
    def whole(self) -> bool:
        """Whether every node could be asked, and every bandwidth that was asked for is known."""
        return not self.unreachable and all(row.busbw is not None for one in self.ops for row in one.rows)


_MANY = 64  # nodes: with more it still shows at 1 GiB


def predicted(case: Case, op: Op, sizes: Sequence[int]) -> OpPrediction:
    """Return the prediction of one operation for these nodes; what several nodes or HCAs have is said once."""
    found = _predicted(case, op, sizes)
    hcas = {port.hca for part in case.values() for port in part.ports}
    lowered_by, unknown = (_said_once(_said_once(each, case), hcas) for each in (found.lowered_by, found.unknown))
    found = replace(found, lowered_by=lowered_by, unknown=unknown)
    speeds = speeds_of(case) if all(row.busbw is None for row in found.rows) else ()
    if not speeds:
        return found
    at_most = _at_most(op, [part.ranks for part in case.values()], [speed / 8 for speed in speeds])
    return replace(found, at_most=at_most, limited_by=f"one interface of {min(speeds):g} Gb/s")


def _at_most(op: Op, ranks: Sequence[int], rates: Sequence[float]) -> float:
    """Return the most bus bandwidth that any algorithm reaches; by node, its ranks and the GB/s of its interface.

    What a node sends or receives of each byte: all that its ranks have not, of a gather; what it has for others, of an
    all-to-all. Of an all-reduce it is one byte, and 2(n-1) of all n nodes together; else one.
    """
    world, nodes = sum(ranks), list(zip(ranks, rates, strict=True))
    if op in (Op.ALL_GATHER, Op.REDUCE_SCATTER):
        time = max((world - own) / world / rate for own, rate in nodes)
    elif op is Op.ALL_TO_ALL:
        time = max(own * (world - own) / world / rate for own, rate in nodes)
    else:
        time = 1 / min(rates)
    if op is Op.ALL_REDUCE:
        time = max(time, 2 * (len(nodes) - 1) / sum(rates))
    return op.bus_factor(world) / time


_WORD = re.compile(r"[\w.-]+")


def _said_once(messages: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Join messages that differ in the first of these names alone: "PCIe x8 of x16 at mlx5_0 of gpu[01-16]"."""
    groups: dict[tuple[str, str], list[str]] = {}
    for message in messages:
        word = next((word for word in _WORD.finditer(message) if word[0] in names), None)
        around = (message[: word.start()], message[word.end() :]) if word else (message, "")
        groups.setdefault(around, []).append(word[0] if word else "")
    return tuple(f"{before}{fold(found)}{after}" for (before, after), found in groups.items())


def _predicted(case: Case, op: Op, sizes: Sequence[int]) -> OpPrediction:
    ranks = sum(part.ranks for part in case.values())
    if ranks < 2:  # noqa: PLR2004  it takes two
        return OpPrediction(op, tuple(map(Predicted, sizes)), unknown=("all of it: a single rank sends nothing",))
    if all(part.cpus for part in case.values()):
        return _by_gloo(case, op, sizes)
    limit = links_of(case, op)
    try:
        model = _model_of(case, op)
    except UnknownError as why:
        simple = all(allows(part.settings, "simple", op, "NCCL_PROTO") for part in case.values())
        filled = op not in ALLOWED or simple  # LL and LL128 do not fill the links
        rows = tuple(_bounded(size, limit.busbw if filled else None, case, op) for size in sizes)
        unknown = (f"algorithm, protocol and start-up time, because {why}", *limit.unknown)
        return OpPrediction(op, rows, limit.limited_by, limit.lowered_by, unknown)
    scale = model.scale(limit.busbw)
    rows = tuple(model.row(size, scale) for size in sizes)
    return OpPrediction(op, rows, limit.limited_by, limit.lowered_by, limit.unknown)


def _by_gloo(case: Case, op: Op, sizes: Sequence[int]) -> OpPrediction:
    ranks, algorithm = [part.ranks for part in case.values()], gloo.ALGORITHMS.get(op, "")
    limit, why = links_of(case, op, Method.TCP), gloo.unknown(op, ranks)
    if why or limit.busbw is None:
        rows = tuple(Predicted(size, algorithm) for size in sizes)
        return OpPrediction(op, rows, unknown=(why,) if why else limit.unknown)
    busbw, factor = limit.busbw * gloo.share(op, ranks), op.bus_factor(sum(ranks))
    times = [size * factor / busbw / 1e9 for size in sizes]
    hidden = [gloo.start_up_hidden(op, sum(ranks), time) for time in times]
    rows = tuple(
        Predicted(size, algorithm, seconds=time, busbw=busbw) if known else Predicted(size, algorithm)
        for size, time, known in zip(sizes, times, hidden, strict=True)
    )
    unknown = () if all(hidden) else ("the start-up of small messages by TCP",)
    return OpPrediction(op, rows, limit.limited_by, limit.lowered_by, unknown)


def _bounded(size: int, busbw: float | None, case: Case, op: Op) -> Predicted:
    """Return a size whose start-up is not known: only one that is large for so many nodes has a bandwidth then."""
    factor = op.bus_factor(sum(part.ranks for part in case.values()))
    if busbw is None or size < (LARGE if len(case) > _MANY else 2**30):
        return Predicted(size)
    return Predicted(size, seconds=size * factor / busbw / 1e9, busbw=busbw)


@dataclass(frozen=True)
class _Model:
    """NCCL's cost model of one communicator and operation."""

    rules: Rules
    job: Job
    op: Op
    graphs: Graphs
    costs: Costs
    possible: tuple[tuple[Algorithm, Protocol], ...]
    channels: int
    of_nvls: int
    most: int = field(default=2**30)

    def choose(self, size: int) -> tuple[Algorithm, Protocol]:
        """Return the algorithm and protocol that NCCL takes: the first of those with the least time."""
        return min(self.possible, key=lambda which: self._seconds(which, size, 1))

    def _seconds(self, which: tuple[Algorithm, Protocol], size: int, scale: float) -> float:
        return seconds(self.rules, self.job, self.op, which, self.costs[which], size, self.channels, scale)

    def scale(self, busbw: float | None) -> float | None:
        """Return what the links carry over what NCCL assumes, which knows them by rounded speeds. Simple alone fills
        them: LL and LL128 send flags, too.
        """
        algorithm, _ = self.choose(LARGE)
        cost: Cost = self.costs[algorithm, Protocol.SIMPLE]
        return busbw / (cost.bandwidth * self.op.bus_factor(self.job.ranks)) if busbw else None

    def row(self, size: int, scale: float | None) -> Predicted:
        which = self.choose(size)
        count = channels_for(self.job, which, self.graphs[which[0]], size, self.channels, self.of_nvls)
        row = Predicted(size, which[0].value, which[1].value, min(count, self.most))
        if scale is None:
            return row
        time = self._seconds(which, size, scale)
        return replace(row, seconds=time, busbw=size / time / 1e9 * self.op.bus_factor(self.job.ranks))


def _model_of(case: Case, op: Op) -> _Model:
    """Return NCCL's model of a job on these nodes. Raises UnknownError."""
    if op not in ALLOWED:
        raise UnknownError("NCCL's cost model knows no sends and receives")
    versions = {part.version for part in case.values()}
    if "" in versions:
        raise UnknownError("it is not known which NCCL the nodes load")
    if len(versions) > 1:
        raise UnknownError(f"the nodes load different releases: NCCL {' and '.join(sorted(versions))}")
    version = next(iter(versions))
    if plugin := next((part.plugin for part in case.values() if part.plugin), ""):
        raise UnknownError(f"it depends on what the network plug-in {plugin} tells NCCL")
    for name in ("NCCL_ALGO", "NCCL_PROTO"):
        if len({part.settings[name].value if name in part.settings else "" for part in case.values()}) > 1:
            raise UnknownError(f"the nodes have different values of {name}")
    rules = rules_of(release_of(version))
    machines = _machines(case, rules, version)
    nodes = len(machines)
    settings = next(iter(case.values())).settings
    off = "NCCL_NVLS_ENABLE" in settings and not is_on(settings, "NCCL_NVLS_ENABLE")
    found = [graphs_of(machine, rules, nvls=not off) for machine in dict.fromkeys(machines)]
    if any(NOTHING in own.values() for own in found):
        raise UnknownError("NCCL's search may find no path for a tree on these nodes, and use one channel then")
    graphs = _least(found)
    count = min(graphs[RING].channels, graphs[TREE].channels)
    graphs |= {name: replace(graphs[name], channels=count) for name in (RING, TREE, PAT)}
    slowest = min(machines, key=lambda machine: machine.capability)
    processors = [part.hardware.pcie.processor if part.hardware.pcie else None for part in case.values()]
    vendors = frozenset(one.vendor if one else "" for one in processors)
    job = Job(
        sum(machine.gpus for machine in machines), nodes, slowest.capability,
        max(machine.capability for machine in machines), vendors,
    )  # fmt: skip
    priced = costs(rules, job, op, graphs)
    possible = tuple(_possible(rules, job, op, graphs, priced, settings))
    if not possible:
        raise UnknownError(f"{_excluding(settings)} leaves NCCL nothing for {op.value}")
    channels, of_nvls = channels_of(slowest, rules, graphs, nodes)
    return _Model(rules, job, op, graphs, priced, possible, channels, of_nvls, _most(settings))


def _machines(case: Case, rules: Rules, version: str) -> list[Machine]:
    domains = domains_of([(name, part.hardware, version) for name, part in case.items()])
    if domains.count > 1:
        raise UnknownError(f"how NCCL joins {domains.count} NVLink domains is not predicted")
    several = len(case) > 1 and not domains.count
    if several and not all(part.ports for part in case.values()):
        raise UnknownError(
            "as far as is known, data goes by sockets, and how far their interfaces are from the GPUs is not known"
        )
    machines = [
        machine_of(name, part.hardware, part.ranks, part.ports if several else (), part.settings, part.direct, rules)
        for name, part in case.items()
    ]
    if several or len(case) == 1:
        return machines
    return [replace(machines[0], gpus=sum(machine.gpus for machine in machines))]  # the GPUs of a domain are one node's


def _least(found: Sequence[Graphs]) -> dict[Algorithm, Graph]:
    """Return what all nodes can do: NCCL takes the least of each figure, and the farthest path."""
    first, *others = found
    graphs = dict(first)
    for other in others:
        for algorithm in list(graphs):
            if algorithm not in other:
                del graphs[algorithm]
                continue
            one, two = graphs[algorithm], other[algorithm]
            graphs[algorithm] = replace(
                one,
                channels=min(one.channels, two.channels),
                inside=min(one.inside, two.inside),
                between=min(one.between, two.between),
                near=max(one.near, two.near, key=NEAR_TO_FAR.index),
                far=max(one.far, two.far, key=NEAR_TO_FAR.index),
                same=one.same and two.same,
                chain=one.chain or two.chain,
            )
    return graphs


def _possible(  # noqa: PLR0913, PLR0917  what the model is of
    rules: Rules, job: Job, op: Op, graphs: Graphs, priced: Costs, settings: Mapping[str, PlacedSetting]
) -> list[tuple[Algorithm, Protocol]]:
    """Return what NCCL_ALGO and NCCL_PROTO leave; before 2.24 a ring is left in any case."""
    own = [one.value.lower() for one in Algorithm if allows(settings, one.value.lower(), op)]
    named = None
    if "NCCL_PROTO" in settings:
        named = [one.value.lower() for one in Protocol if allows(settings, one.value.lower(), op, "NCCL_PROTO")]
    left = list(allowed(rules, job, graphs, priced, own, named))
    if not left and rules.since < (2, 24):
        left = list(allowed(rules, job, graphs, priced, [RING.value.lower()], named))
    return left


def _excluding(settings: Mapping[str, PlacedSetting]) -> str:
    return " and ".join(settings[name].described for name in ("NCCL_ALGO", "NCCL_PROTO") if name in settings)


def _most(settings: Mapping[str, PlacedSetting]) -> int:
    """Return the most channels that the user allows."""
    values = [settings[name].value for name in ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS") if name in settings]
    return min((int(value[:6]) for value in values if value.isascii() and value.isdecimal()), default=2**30) or 2**30
