"""Bandwidths compared with what the links should give, with fewer nodes, and what the run shows about a shortfall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from statistics import mean, median

from ncheck.expression import expression
from ncheck.facts.infiniband import HcaPort
from ncheck.facts.pcie import PcieLink
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import SLOW_NETWORK, Inconclusive, NotApplicable, Problem
from ncheck.model.op import Op
from ncheck.model.report import NOISY, Standing
from ncheck.probe.expected import NAMED, Expected, expectation, expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.gpu_test import SLOW_GPUS, SLOW_MEMBER, SLOW_NODE
from ncheck.probe.links.ceiling import Component
from ncheck.probe.links.hardware import NodeHardware, kinds_of
from ncheck.probe.links.nic_links import by_rdma
from ncheck.probe.node_result import NodeResult, Stage
from ncheck.probe.results import Collective, by_op, collectives, named, spread
from ncheck.probe.search import Expect, Suspect, searched
from ncheck.probe.standing import beside_peers, of_share
from ncheck.text import rates

_BARE = NodeHardware()
_AS_SLOW = 1.15  # a group that is at most so much slower than its slowest node has no other cause


@dataclass(frozen=True)
class Comparison:
    """One collective beside its expectation. `nodes` are those that it says something about.

    `blamed` are the nodes of the group that are slow with every partner and have a finding of their own. `slowest`:
    what the slowest of them reaches of the usual, None if none is blamed or that is unknown.
    """

    run: Collective
    nodes: tuple[str, ...]
    busbw: float
    expected: Expected
    blamed: tuple[str, ...] = ()
    slowest: float | None = None

    @property
    def cause(self) -> str:
        """What it may follow from. An operation is as slow as its slowest node: what that alone explains has no other
        cause, and a rail that is known to be dead is in the expected value already.
        """
        if self.slowest is not None and self.ratio is not None and self.slowest <= self.ratio * _AS_SLOW:
            return SLOW_MEMBER
        return SLOW_NETWORK

    @property
    def ratio(self) -> float | None:
        """Measured over expected; None if nothing is expected."""
        return self.busbw / self.expected.busbw if self.expected.busbw else None

    @property
    def standing(self) -> Standing:
        return of_share(self.ratio, self.run.step.method)

    @property
    def place(self) -> tuple[Stage, tuple[str, ...]]:
        """Where it was measured, whatever ran there."""
        return self.run.step.stage, self.nodes


def compared(probed: Mapping[str, ProbeFacts], hardware: Mapping[str, NodeHardware]) -> tuple[Comparison, ...]:
    """Return what is judged of each operation: each node by itself, its best pair, and all nodes or else the largest
    group that finished.

    A node that the search blames has a finding of its own, so that it and its pairs are left out.
    """
    every = by_op(collectives(probed)).values()
    return tuple(comparison for own in every for comparison in _compared_with(own, hardware))


def _compared_with(every: Sequence[Collective], hardware: Mapping[str, NodeHardware]) -> tuple[Comparison, ...]:
    ran = [one for one in every if one.busbw is not None]
    alone = [one for one in ran if one.step.stage is Stage.INSIDE]
    large = [one for one in ran if one.step.stage in (Stage.ALL, Stage.SCALING)]
    whole = [one for one in large if one.step.stage is Stage.ALL] or sorted(large, key=lambda one: one.step.world)
    search = searched(every, expectation(hardware))
    blamed = [suspect.node for suspect in search.slow]
    return (
        *(_compared(one, one.step.group, hardware) for one in alone),
        *_best_pairs((one for one in ran if one.step.method is search.method), blamed, hardware),
        *(
            replace(_compared(one, one.step.group, hardware), blamed=tuple(blamed), slowest=_slowest(search.slow))
            for one in whole[-1:]
        ),
    )


def _slowest(suspects: Iterable[Suspect]) -> float | None:
    """Return the share of the usual bandwidth that the slowest node reaches; None if it is unknown."""
    shares = [
        [meeting.busbw / meeting.usual for meeting in suspect.meetings if meeting.busbw and meeting.usual]
        for suspect in suspects
    ]
    return min((mean(one) for one in shares if one), default=None)


def _compared(one: Collective, nodes: tuple[str, ...], hardware: Mapping[str, NodeHardware]) -> Comparison:
    return Comparison(one, nodes, one.busbw or 0.0, expected(one, hardware))


def _best_pairs(
    ran: Iterable[Collective], blamed: Sequence[str], hardware: Mapping[str, NodeHardware]
) -> tuple[Comparison, ...]:
    """Return the best pair of each node that is not blamed."""
    best: dict[str, Comparison] = {}
    for one in ran:
        if one.step.stage is Stage.PAIR:
            pair = _compared(one, one.step.group, hardware)
            for node in one.step.group:
                if node not in best or (pair.ratio or 0.0) > (best[node].ratio or 0.0):
                    best[node] = replace(pair, nodes=(node,))
    return tuple(pair for node, pair in best.items() if node not in blamed)


def shortfalls(
    comparisons: Iterable[Comparison], hardware: Mapping[str, NodeHardware], standing: Standing
) -> Iterator[Problem]:
    """Yield what has this standing, one problem for all nodes with the same expectation.

    Operations that are low in the same place have one cause: the worst of them is the problem, and lists the others.
    """
    every = tuple(comparisons)
    low: dict[tuple[Stage, tuple[str, ...]], list[Comparison]] = {}
    for one in every:
        if one.standing in (Standing.LOW, Standing.FAR_TOO_LOW):
            low.setdefault(one.place, []).append(one)
    alike: dict[tuple[object, ...], list[list[Comparison]]] = {}
    for (stage, _), own in low.items():
        worst = Standing.FAR_TOO_LOW if any(one.standing is Standing.FAR_TOO_LOW for one in own) else Standing.LOW
        if worst is standing:
            alike.setdefault((stage, *((one.run.step.op, one.expected) for one in own)), []).append(own)
    for places in alike.values():
        members, *others = sorted(zip(*places, strict=True), key=_lowest)
        yield _problem(members, others, every, hardware)


def _lowest(members: Sequence[Comparison]) -> float:
    return min(one.ratio or 0.0 for one in members)


def without_expectation(
    comparisons: Sequence[Comparison], hardware: Mapping[str, NodeHardware]
) -> Iterator[NotApplicable | Inconclusive]:
    """Yield, for each node, why a bandwidth that it took part in was not compared: it may be good or bad.

    It is unknown where one node stands out, so that there should have been an expectation (the name of its GPU is
    garbled, its HCAs could not be read). Where nothing is known of this hardware or method, it is not applicable.
    """
    models = {node: own.gpus.models if own.gpus else () for node, own in hardware.items()}
    alike: dict[tuple[Op, Stage], list[Comparison]] = {}
    for one in comparisons:
        alike.setdefault((one.run.step.op, one.run.step.stage), []).append(one)
    odd = {place: _odd(of_place, models) for place, of_place in alike.items()}
    for node in hardware:
        own = [one for one in comparisons if node in one.nodes]
        missing = [one for one in own if one.ratio is None and one.run.step.world > 1]
        lost = [
            one for one in missing
            if odd[one.run.step.op, one.run.step.stage].intersection(one.expected.unknown_on)
        ]  # fmt: skip
        if lost or missing:
            yield Inconclusive(_missing(lost), (node,)) if lost else NotApplicable(_missing(missing), (node,))
        elif all(one.ratio is None for one in own):
            yield NotApplicable("no bandwidth was measured that can be compared", (node,))


def _odd(comparisons: Sequence[Comparison], models: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the nodes of which something is unknown that is known of others, or of a GPU model that only they have."""
    group = {node for one in comparisons for node in one.run.step.group}
    unknown = {node for one in comparisons for node in one.expected.unknown_on}
    known, alike = {models.get(node) for node in group - unknown}, Counter(models.get(node) for node in unknown)
    return frozenset(
        node for node in unknown if known and models.get(node) and (models[node] in known or alike[models[node]] == 1)
    )


def without_measurement(probed: Mapping[str, ProbeFacts]) -> Iterator[NotApplicable | Inconclusive]:
    """Yield, for the nodes of each step that has no bandwidth, why: other steps do not show that they are well."""
    ran = [one for one in collectives(probed) if one.step.stage in (Stage.INSIDE, Stage.SCALING, Stage.ALL)]
    finished = {(one.step.op, one.step.stage, one.step.group) for one in ran if one.busbw is not None}
    for one in ran:
        if (one.step.op, one.step.stage, one.step.group) not in finished:
            place = f"{one.step.act} {_where(one.step.stage, one.step.group)}"
            why = f"{fold(one.silent)} reported nothing" if one.silent else "no size was measured on every node"
            yield (
                NotApplicable(f"{place} failed", one.step.group)
                if one.failures
                else Inconclusive(f"no bandwidth of the {place}: {why}", one.step.group)
            )


def _missing(comparisons: Iterable[Comparison]) -> str:
    every = tuple(comparisons)
    missing = tuple(dict.fromkeys(what for one in every for what in one.expected.unknown))
    ops = dict.fromkeys(one.run.step.op for one in every)
    of = f" of {named(ops)}" if missing and list(ops) != [Op.ALL_REDUCE] else ""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"no expected bandwidth{of} (unknown: {missing[0]}{more})" if missing else "no limit"


def _figures(members: Sequence[Comparison]) -> str:
    return f"{rates((one.busbw for one in members), members[0].expected.busbw)} expected ({_lowest(members):.2f})"


def only_in(slow: Sequence[Op], fine: Sequence[Op], where: str) -> str:
    """Return "; only all-to-all shows it: all-reduce between the same nodes is fine", "" if none is fine."""
    if not fine:
        return ""
    verbs = ("shows" if len(slow) == 1 else "show", "is" if len(fine) == 1 else "are")
    return f"; only {named(slow)} {verbs[0]} it: {named(fine)} {where} {verbs[1]} fine"


def _fine(members: Sequence[Comparison], every: Sequence[Comparison]) -> list[Op]:
    """Return the operations that reach what they should wherever these do not."""
    places = {one.place for one in members}
    there: dict[Op, dict[tuple[Stage, tuple[str, ...]], Standing]] = {}
    for one in every:
        if one.place in places:
            there.setdefault(one.run.step.op, {})[one.place] = one.standing
    return [op for op, own in there.items() if own == dict.fromkeys(places, Standing.OK)]


_SAME = {Stage.INSIDE: "inside the same nodes", Stage.PAIR: "between the same nodes"}


def _problem(
    members: Sequence[Comparison],
    others: Sequence[Sequence[Comparison]],
    every: Sequence[Comparison],
    hardware: Mapping[str, NodeHardware],
) -> Problem:
    """Return the problem of these; `others` are the operations that are low there, too, `every` all of them."""
    should, step = members[0].expected, members[0].run.step
    nodes = tuple(dict.fromkeys(node for one in members for node in one.nodes))
    lowered = f", lowered by: {'; '.join(should.lowered_by)}" if should.lowered_by else ""
    runs = [one.run for same in (members, *others) for one in same]
    results = {node: [run.results[node] for run in runs if node in run.results] for node in nodes}
    seen = [one for node in nodes for one in observations(node, hardware.get(node, _BARE), results[node])]
    place = f"{step.act} {_where(step.stage, nodes)}"
    limit = f"set by {NAMED}" if should.limited_by == NAMED else f"limited by {should.limited_by}"
    also = "".join(f"; {same[0].run.step.act} {_figures(same)}" for same in others)
    ops = [step.op, *(same[0].run.step.op for same in others)]
    only = only_in(ops, _fine(members, every), _SAME.get(step.stage, "on the same nodes"))
    message = f"{place}: {_figures(members)}, {limit}{lowered}{also}{only}"
    evidence = [f"{node} is slow with every partner" for node in members[0].blamed if node in nodes]
    spreads = [spread(one.run.step, one.run.largest) or 0.0 for one in members if one.run.largest]
    if (widest := max(spreads, default=0.0)) > NOISY:
        evidence.append(f"noisy: the repeats differ by {widest:.0%} of their median")
    lines = dict.fromkeys(one.text for one in seen)
    fix = _fix(members[0], seen, hardware)
    return Problem(
        message, fix, (*evidence, *lines), nodes, where=nodes[0] if fix == FABRIC else "", look=fix != _PEERMEM,
        summary=f"{step.op.value} {'between' if len(step.group) > 1 else 'inside'} nodes at "
        f"{_lowest(members):.0%} of expected",
        follows=_cause(members[0], nodes),
    )  # fmt: skip


def _cause(one: Comparison, nodes: tuple[str, ...]) -> str:
    """Return what it may follow from. The GPU of one node explains no other node that is slow in the same way."""
    step = one.run.step
    if step.stage in (Stage.ALL, Stage.SCALING):
        return one.cause
    if len(nodes) > 1 or step.method.on_cpus:
        return ""
    return SLOW_GPUS if step.stage is Stage.INSIDE else SLOW_NODE


_PEERMEM = "sudo modprobe nvidia_peermem"


def _where(stage: Stage, nodes: tuple[str, ...]) -> str:
    if stage is Stage.INSIDE:
        return f"inside {fold(nodes)}"
    return f"between pairs with {fold(nodes)}" if stage is Stage.PAIR else f"on {len(nodes)} nodes"


def _fix(one: Comparison, seen: Sequence[Observation], hardware: Mapping[str, NodeHardware]) -> str:
    """Return the first command to type: for what the run shows, otherwise for the limiting component."""
    components = [one.expected.component, *(each.component for each in seen)]
    if Component.GPUDIRECT in components:
        return _PEERMEM
    if Component.PCIE in components or one.expected.narrow:
        return "nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv"
    if one.expected.component is Component.DOMAIN:
        return "nvidia-imex-ctl -N"
    if one.expected.component is Component.NVLINK:
        return "nvidia-smi nvlink -s"
    return shows_links(one.run.results, hardware)


# Inside a node


def inside_share(node: str, ran: Sequence[Collective], hardware: Mapping[str, NodeHardware]) -> float | None:
    """Return what a node reached by itself over its expectation, or else over its peers; None if both are unknown."""
    expect = expectation(hardware)
    own = [one for one in ran if one.step.stage is Stage.INSIDE and one.step.group == (node,) and one.busbw is not None]
    if not own:
        return None
    last = own[-1]
    if should := expect(last):
        return (last.busbw or 0.0) / should
    peers = beside_peers(ran, expect, kinds_of({name: held.gpus for name, held in hardware.items()}))
    return peers[last.step].share if last.step in peers else None


# What the run shows: an idle rail, GPUDirect RDMA off, too few PCIe lanes


@dataclass(frozen=True)
class Observation:
    """One fact that lowers what a node reaches, and the component that it is about."""

    component: Component
    text: str


# Of these the devices of a healthy node carry unlike amounts: NICs of one rank, or less where a ring ends.
UNEVEN = frozenset({Op.SEND_RECV, Op.BROADCAST})

# NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
_NO_GDR = expression(r"GPU Direct RDMA Disabled for HCA \d+ '(?P<hca>[\w.-]+)'")
_LITTLE = 0.05  # of what the busiest rail carried


def busiest(result: NodeResult) -> str:
    """Return the planned interface or HCA port that carried most of a step, "" if none is known to have."""
    moved = {device: _moved(result, device) for device in result.planned if _moved(result, device)}
    return max(moved, key=lambda device: moved[device], default="")


def idle_rails(results: Iterable[NodeResult]) -> tuple[str, ...]:
    """Return the planned HCA ports that carried almost nothing in steps in which others of the node carried data.

    Steps with one rank per node use a single rail, and show nothing about the others.
    """
    idle: dict[str, None] = {}
    for result in results:
        if result.step.world > len(result.step.group) > 1 and result.step.op not in UNEVEN:
            moved = {device: _moved(result, device) for device in result.planned if ":" in device}
            most = max(moved.values(), default=0)
            idle.update(dict.fromkeys(device for device, count in moved.items() if count < _LITTLE * most))
    return tuple(idle)


def observations(node: str, hardware: NodeHardware, results: Iterable[NodeResult]) -> tuple[Observation, ...]:
    """Return what lowers the bandwidth of a node, as far as the run shows it."""
    own = tuple(results)
    matches = (found for result in own for line in (*result.used, *result.log) for found in _NO_GDR.finditer(line))
    without = ", ".join(dict.fromkeys(found["hca"] for found in matches))
    idle = (f"{port} of {node} carried almost nothing, while its other rails did" for port in idle_rails(own))
    no_gdr = (f"NCCL's log: GPUDirect RDMA is off for {without} of {node}",) if without else ()
    return (
        *(Observation(Component.NIC, text) for text in idle),
        *(Observation(Component.GPUDIRECT, text) for text in no_gdr),
        *(Observation(Component.PCIE, text) for text in _narrow(node, hardware)),
    )


def _narrow(node: str, hardware: NodeHardware) -> Iterator[str]:
    if hardware.pcie is None:
        return
    names = {gpu.pci: f"GPU {gpu.index}" for gpu in hardware.gpus.gpus} if hardware.gpus else {}
    devices: Mapping[str, tuple[PcieLink, ...]] = {
        **{names.get(address, address): links for address, links in hardware.pcie.gpus.items()}, **hardware.pcie.hcas
    }  # fmt: skip
    for name, links in devices.items():
        for link in links:
            if link.width and link.most_width and link.width < link.most_width:
                yield f"PCIe x{link.width} of x{link.most_width} at {name} of {node}"


def _moved(result: NodeResult, device: str) -> int:
    carried = result.carried.get(device)
    return carried.sent + carried.received if carried else 0


FABRIC = "sudo iblinkinfo"


def by_infiniband(result: NodeResult, hardware: NodeHardware) -> bool:
    """Return whether HCAs carried it over an InfiniBand fabric; RoCE uses Ethernet."""
    return _by_hcas(result) and not any(port.link_layer == "Ethernet" for port in _ports(result, hardware))


def shows_links(results: Mapping[str, NodeResult], hardware: Mapping[str, NodeHardware]) -> str:
    """Return the command that shows the links of a step: of the fabric, or the counters of the first interface."""
    for node, result in results.items():
        own = hardware.get(node, _BARE)
        if by_infiniband(result, own):
            return FABRIC
        if name := _interface(result, own):
            return f"sudo ethtool -S {quote(name)}"
    return "ip -s link"


def _by_hcas(result: NodeResult) -> bool:
    return not result.step.method.on_cpus and by_rdma(result.step, result) is True


def _interface(result: NodeResult, hardware: NodeHardware) -> str:
    """Return the Ethernet interface that carried the data, or should have; "" if none is known."""
    if _by_hcas(result):
        return next((port.netdev for port in _ports(result, hardware) if port.netdev), "")
    names = [device for device in result.planned if ":" not in device]
    carried = busiest(result)
    return carried if carried in names else next(iter(names), "")


def _ports(result: NodeResult, hardware: NodeHardware) -> list[HcaPort]:
    known = hardware.infiniband.ports if hardware.infiniband else ()
    return [port for port in known if port.name in result.planned]


# Scaling efficiency


@dataclass(frozen=True)
class Scaled:
    """A number of nodes with their bus bandwidth in GB/s, and its share of the expected one (None: unknown).

    `size`: the largest message in bytes. `efficiency` is the share that they keep of `best`, the group of fewer nodes
    with the highest bandwidth; None if there is nothing to compare with.
    """

    nodes: tuple[str, ...]
    busbw: float
    share: float | None
    ranks: int
    results: Mapping[str, NodeResult]
    size: int
    op: Op = Op.ALL_REDUCE
    efficiency: float | None = None
    best: Scaled | None = None


def scaled(ran: Iterable[Collective], expect: Expect) -> tuple[Scaled, ...]:
    """Return what 1, 2, 4 ... and all nodes reach in one operation, the fewest first; one node is the median of all
    single nodes.

    Bus bandwidth stays the same for any number of ranks as long as the same links limit it. From one node to two
    (NVLink, then NICs) and from two to more (a tree between two nodes sends its data once) the limit changes. So each
    group is first divided by its own expectation; more than an expectation counts as all of it, because some are only
    the least that the links carry. Where that is unknown, two nodes with several ranks each count half,
    as if a tree had carried their data.
    """
    whole = [one for one in ran if one.busbw is not None and not one.step.method.on_cpus]
    alone = [_scaled(one, expect) for one in whole if one.step.stage is Stage.INSIDE and one.step.world > 1]
    large = [_scaled(one, expect) for one in whole if one.step.stage in (Stage.SCALING, Stage.ALL)]
    steps = [*_middle(alone), *sorted(large, key=lambda one: len(one.nodes))]
    return tuple(_against(one, steps[:index]) for index, one in enumerate(steps))


_SAME_WITH_MORE = frozenset({Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.BROADCAST})


def _scaled(one: Collective, expect: Expect) -> Scaled:
    should, reached = expect(one), one.busbw or 0.0
    share = min(1.0, reached / should) if should else None
    size = one.largest.size if one.largest else 0
    return Scaled(one.step.group, reached, share, one.step.world, one.results, size, one.step.op)


def _middle(alone: list[Scaled]) -> list[Scaled]:
    if not alone:
        return []
    middle = median(one.busbw for one in alone)
    return [min(alone, key=lambda one: abs(one.busbw - middle))]


def _against(one: Scaled, fewer: list[Scaled]) -> Scaled:
    kept = [(value, other) for other in fewer if len(other.nodes) < len(one.nodes) and (value := _kept(one, other))]
    if not kept:
        return one
    efficiency, best = min(kept, key=lambda pair: pair[0])
    return replace(one, efficiency=efficiency, best=best)


def _kept(one: Scaled, fewer: Scaled) -> float | None:
    """Return the share that more nodes keep of what fewer have; None if the two cannot be compared."""
    if one.share is not None and fewer.share is not None:
        return one.share / fewer.share if fewer.share else None
    if len(fewer.nodes) == 1 or one.ranks * len(fewer.nodes) != fewer.ranks * len(one.nodes):
        return None
    if one.op not in _SAME_WITH_MORE or one.size < fewer.size:
        return None
    least = fewer.busbw
    if len(fewer.nodes) == 2 and one.op is Op.ALL_REDUCE:  # noqa: PLR2004  two-node rule: 2R(n-1)/n at most, where more nodes have R
        least *= 0.5 * fewer.ranks / (fewer.ranks - 1)
    return one.busbw / least if least else None
