"""The measurements of the report, made from facts alone, so that a replay gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.hostlist import fold
from ncheck.model.op import Op
from ncheck.model.report import Measurement, Pair, Point, Probe, Protocol, Standing, Traffic
from ncheck.probe.expected import Expected, expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import NodeHardware, hardware_of, kinds_of
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step, StepFailure
from ncheck.probe.results import (
    Collective,
    algbw,
    busbw,
    by_op,
    collectives,
    missing_sizes,
    named,
    spread,
    unverified,
)
from ncheck.probe.shortfalls import UNEVEN, scaled
from ncheck.probe.skip_reason import Facts, grouped, nothing_measured, ran_on, reasons, with_nodes
from ncheck.probe.standing import standings, with_shares
from ncheck.text import size

Expects = Callable[[Collective], Expected]
Standings = Mapping[Step, Standing]
T = TypeVar("T")
ALIKE = 0.05  # bandwidths that differ by no more than this share are one measurement
UNIT = "GB/s"
_STARTED_BY = {"agents": "started by ncheck", "mpirun": "started by mpirun"}


def measured(facts: Mapping[str, Facts]) -> tuple[tuple[Measurement, ...], Probe]:
    """Return what was measured, compared with what the nodes' hardware should give; or why nothing was measured."""

    @cache
    def hardware() -> Mapping[str, NodeHardware]:
        return {node: hardware_of(of_node) for node, of_node in facts.items()}

    return measured_with(facts, lambda one: expected(one, hardware()))


def measured_with(facts: Mapping[str, Facts], expects: Expects) -> tuple[tuple[Measurement, ...], Probe]:
    """Return the measurements, single nodes first and all nodes last, and how they were made; or why there are none."""
    probed = ran_on(facts)
    if not probed:
        return (), nothing_measured(facts)
    ran = tuple(one for one in collectives(probed) if one.step.method is not Method.DIAGNOSTICS)
    judged = standings(ran, lambda one: expects(one).busbw, _known(facts, InfinibandFacts), _kinds(facts))
    measurements = tuple(_measurements(ran, expects, judged))
    return measurements, _probe(probed, ran, reasons(facts), measurements, judged)


def _known(facts: Mapping[str, Facts], fact: type[T]) -> dict[str, T]:
    values = {node: of_node.get(fact) for node, of_node in facts.items()}
    return {node: value for node, value in values.items() if isinstance(value, fact)}


def _kinds(facts: Mapping[str, Facts]) -> dict[str, str]:
    """Return the GPU models of each node, by which nodes are of one kind."""
    known = _known(facts, GpuFacts)
    return kinds_of({node: known.get(node) for node in facts})


def _probe(
    probed: Mapping[str, ProbeFacts],
    ran: Sequence[Collective],
    reasons_by_node: Mapping[str, str],
    measurements: Sequence[Measurement],
    judged: Standings,
) -> Probe:
    results = [result for facts in probed.values() for result in facts.results]
    first = next((one for one in reversed(ran) if one.step.method not in _BESIDE), None)
    step = first.step if first else results[0].step
    how = f"{_acts(ran, step)} by {_by(first)}" if first else "RDMA between HCA ports"
    return Probe(
        ran=True,
        reason=f"{how}, {_STARTED_BY.get(step.launcher, step.launcher)}",
        means=step.method.value,
        launcher=step.launcher,
        version=_version(first) if first else "",
        rounds=len({result.step.round for result in results}),
        pairs=tuple(pair for own in by_op(ran).values() for pair in pairs(own, judged)),
        traffic=with_shares(tuple(traffic(probed)), together=any(one.stage == "all" for one in measurements)),
        notes=(*_notes(probed, reasons_by_node), *_unmeasured(probed, ran), *_implausible(measurements)),
    )


def _acts(ran: Sequence[Collective], step: Step) -> str:
    """Return what the method of this step ran: its operations."""
    own = [one for one in ran if one.step.method is step.method]
    return step.act if step.act != step.op.value else named(by_op(own))


def _notes(probed: Mapping[str, ProbeFacts], reasons_by_node: Mapping[str, str]) -> Iterator[str]:
    """Yield what was left out: what the method cannot measure, steps that were skipped, nodes that took no part."""
    yield from dict.fromkeys(facts.note for facts in probed.values() if facts.note)
    left_out = {(one.step.op, one.step.stage, one.why): one.step for facts in probed.values() for one in facts.skipped}
    for (op, stage, why), step in left_out.items():
        yield f"{_of(op)}not measured {_WHERE[stage].format(len(step.group))}: {why}"
    for why, nodes in grouped(reasons_by_node):
        yield f"not measured on {fold(nodes)}: {why}"


def _unmeasured(probed: Mapping[str, ProbeFacts], ran: Sequence[Collective]) -> Iterator[str]:
    """Yield which sizes were left out, and which results were not verified."""
    for (op, stage), sizes in missing_sizes(ran).items():
        groups = [one.step.group for one in ran if (one.step.op, one.step.stage) == (op, stage)]
        where = _WHERE[stage].format(max(map(len, groups)))
        yield f"{_of(op)}sizes not measured {where}: {', '.join(map(size, sizes))}"
    if unseen := [node for node, facts in probed.items() if unverified(facts)]:
        yield f"not all results were verified on {fold(unseen)}"


def _of(op: Op) -> str:
    return "" if op is Op.ALL_REDUCE else f"{op.value}: "


_IMPLAUSIBLE = 2.0  # times the expected bandwidth: the measurement or the expectation is wrong


def _implausible(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield what reached more than its links can carry."""
    for one in measurements:
        if one.measured and one.expected and one.measured > _IMPLAUSIBLE * one.expected:
            excess = f"{one.measured:.3g} {UNIT} is more than the limit of {one.expected:.3g} ({one.limited_by})"
            yield f"{one.what}, {fold(one.nodes)}: {excess}: the measurement or the detected hardware is wrong"


_BESIDE = frozenset({Method.RDMA, Method.NICS, Method.LOOPBACK})
_WHERE = {
    Stage.INSIDE: "inside the nodes", Stage.NICS: "by the NICs of each node alone",
    Stage.PAIR: "between some pairs of nodes", Stage.RAIL: "rail by rail",
    Stage.SCALING: "on {} nodes", Stage.ALL: "on all {} nodes together",
    Stage.BOUNDARY: "between groups of {} nodes",
}  # fmt: skip


def _by(one: Collective) -> str:
    """Return what carried the data."""
    version = _version(one)
    number = f" {version}" if version else ""
    return {
        Method.NCCL: f"NCCL{number}",
        Method.NCCL_TESTS: f"nccl-tests with NCCL{number}",
        Method.GLOO: f"torch{number} gloo on CPUs",
        Method.TCP: "sockets, no library",
        Method.RDMA: "the HCAs alone, no library",
        Method.DIAGNOSTICS: "NCCL's own diagnostics",
        Method.NICS: f"NCCL{number}",
        Method.LOOPBACK: "the HCAs alone, no library",
    }[one.step.method]


def _version(one: Collective) -> str:
    return next((result.version for result in one.results.values() if result.version), "")


def _measurements(ran: Sequence[Collective], expects: Expects, judged: Standings) -> Iterator[Measurement]:
    for own in by_op(ran).values():
        yield from _of_one_op(own, expects, judged)


def _of_one_op(ran: Sequence[Collective], expects: Expects, judged: Standings) -> Iterator[Measurement]:
    by_stage = {stage: [one for one in ran if one.step.stage is stage] for stage in Stage}
    yield from _inside(by_stage[Stage.INSIDE], expects, judged, "inside the node")
    by_nics = [one for one in by_stage[Stage.NICS] if one.step.method is Method.NICS]
    yield from _inside(by_nics, expects, judged, "inside the node by its NICs alone")
    alone = [one for one in by_stage[Stage.NICS] if one.step.method is Method.LOOPBACK]
    yield from _best_and_worst(alone, expects, judged, "HCA ports")
    yield from _best_and_worst(by_stage[Stage.PAIR], expects, judged, "pairs of nodes")
    yield from _best_and_worst(by_stage[Stage.RAIL], expects, judged, "pairs of HCA ports")
    kept = {one.nodes: one.efficiency for one in scaled(ran, lambda one: expects(one).busbw)}
    for one in (*by_stage[Stage.SCALING], *by_stage[Stage.ALL]):
        measurement = _measurement(one, expects, judged, f"on {len(one.step.group)} nodes")
        yield replace(measurement, efficiency=figures(kept.get(one.step.group)))


def _measurement(one: Collective, expects: Expects, judged: Standings, where: str) -> Measurement:
    should = expects(one)
    return Measurement(
        what=f"{one.step.act} {where}",
        measured=figures(one.busbw),
        expected=figures(should.busbw),
        unit=UNIT,
        limited_by=should.limited_by,
        nodes=one.step.group,
        by=_by(one),
        stage=one.step.stage.value,
        ranks=one.step.world,
        lowered_by=should.lowered_by,
        unknown=should.unknown,
        curve=tuple(_point(one.step, row) for row in one.rows),
        failed=_why_failed(one),
        standing=judged[one.step],
        protocol=_protocol(one.step, one.largest) if one.largest else None,
        op=one.step.op.value,
    )


def _protocol(step: Step, row: Row) -> Protocol | None:
    timing = row.timing
    if timing is None:
        return None
    apart = figures(spread(step, row))
    return Protocol(step.method.statistic, timing.repeats, timing.warm_ups, timing.iterations, step.repeats, apart)


def _point(step: Step, row: Row) -> Point:
    rates = figures(algbw(row)), figures(busbw(step, row))
    repeats = row.timing.repeats if row.timing else None
    apart = figures(spread(step, row))
    return Point(row.size, row.in_place, row.seconds, rates[0] or 0.0, rates[1] or 0.0, row.wrong, repeats, apart)


def _why_failed(one: Collective) -> str:
    """Return what the nodes report about the failure, and which reported nothing; "" if it did not fail."""
    reported = {node: _failure_words(failure) for node, failure in one.failures.items()}
    silent = dict.fromkeys(one.silent, "reported nothing")
    if reported or silent:
        return with_nodes(grouped({**reported, **silent}))
    return "" if one.rows else "no size was measured on every node"


def _failure_words(failure: StepFailure) -> str:
    if failure.words:
        known = not failure.step or failure.words.endswith(failure.step)
        return failure.words if known else f"{failure.step}: {failure.words}"
    ended = "it ran out of time" if failure.late else "it failed"
    return f"{ended} in {failure.step}" if failure.step else ended


def _inside(ran: Sequence[Collective], expects: Expects, judged: Standings, where: str) -> Iterator[Measurement]:
    """Yield one measurement for nodes with the same expectation and about the same bandwidth; failures last."""
    groups: dict[object, list[Measurement]] = {}
    for one in ran:
        new = _measurement(one, expects, judged, where)
        key = (new.ranks, new.expected, new.limited_by, new.lowered_by, new.unknown, new.by, new.failed)
        groups.setdefault(key, []).append(new)
    for same in sorted(groups.values(), key=lambda group: (bool(group[0].failed), -len(group))):
        yield from _alike(same)


def _alike(same: list[Measurement]) -> Iterator[Measurement]:
    """Fold measurements by their value: the middle one stands for those near it, then the rest is folded again."""
    if same[0].measured is None:
        yield replace(same[0], nodes=_nodes(same))
        return
    left = sorted(same, key=_value)
    while left:
        middle = left[len(left) // 2]
        near = [one for one in left if abs(_value(one) - _value(middle)) <= ALIKE * _value(middle)]
        yield replace(near[len(near) // 2], nodes=_nodes([one for one in same if one in near]))
        left = [one for one in left if one not in near]


def _value(one: Measurement) -> float:
    return one.measured or 0.0


def _nodes(same: Sequence[Measurement]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for one in same for node in one.nodes))


def _best_and_worst(
    ran: Sequence[Collective], expects: Expects, judged: Standings, pairs_of: str
) -> Iterator[Measurement]:
    """Yield the best, the middle and the worst, or one for all if they are about the same; and each that failed."""
    every = [_measurement(one, expects, judged, _between(one)) for one in ran]
    good = sorted((one for one in every if one.measured is not None), key=_value, reverse=True)
    # a pair may be measured in several rounds, and a node has several ports
    number = len({(frozenset(one.nodes), one.what if len(one.nodes) == 1 else "") for one in good})
    if good and _value(good[0]) - _value(good[-1]) <= ALIKE * _value(good[0]):
        middle = good[len(good) // 2]
        count = f": {number} {pairs_of} with about the same result" if number > 1 else ""
        yield replace(middle, what=middle.what + count, nodes=_nodes(good))
    elif good:
        for name, one in _named(good):
            yield replace(one, what=f"{one.what}: {name} of {number} {pairs_of}")
    yield from (one for one in every if one.measured is None)


def _to_itself(one: Collective) -> str:
    """Return which port wrote to itself, from whose memory, and its latency."""
    result = next(iter(one.results.values()), None)
    port = result.planned[0] if result and result.planned else "a port"
    memory = f", from the memory of {result.used[0]}" if result and result.used else ""
    small = min(one.rows, key=lambda row: row.size) if len(one.rows) > 1 else None
    times = (
        f": {small.seconds * 1e6:.3g} us for {small.size} bytes, 99 % within {small.slowest * 1e6:.3g} us"
        if small
        else ""
    )
    return f"of {port} to itself{memory}{times}"


def _between(one: Collective) -> str:
    """Return where it was measured: between two nodes, between two of their HCA ports, or from one port to itself."""
    if one.step.method is Method.LOOPBACK:
        return _to_itself(one)
    ports = [port for node in one.step.group if (result := one.results.get(node)) for port in result.planned[:1]]
    if one.step.stage is Stage.RAIL and ports:
        return f"between {' and '.join(dict.fromkeys(ports))} of two nodes"
    return "between two nodes, one rank each"


def _named(good: Sequence[Measurement]) -> Iterator[tuple[str, Measurement]]:
    yield "the best", good[0]
    if len(good) > 2:  # noqa: PLR2004  between the first and the last
        yield "the middle", good[len(good) // 2]
    yield "the worst", good[-1]


_FIGURES = 6  # significant digits in the report


def figures(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{_FIGURES}g}")


def pairs(ran: Sequence[Collective], judged: Standings) -> Iterator[Pair]:
    """Yield each pair once for each operation, with its last measurement."""
    last: dict[tuple[Op, frozenset[str]], Pair] = {}
    for one in ran:
        if one.step.stage is Stage.PAIR and len(one.step.group) == 2:  # noqa: PLR2004  a pair
            first, second = one.step.group
            place = one.step.op, frozenset(one.step.group)
            last[place] = Pair((first, second), figures(one.busbw), judged[one.step], one.step.op.value)
    yield from last.values()


def traffic(probed: Mapping[str, ProbeFacts]) -> Iterator[Traffic]:
    """Yield what each device carried while all nodes ran, when all carry the same; otherwise in all steps.

    Planned devices are included even if they carried nothing. Of some operations the devices of a healthy node carry
    unlike amounts: these do not count.
    """
    every = [result for facts in probed.values() for result in facts.results if result.step.op not in UNEVEN]
    together = {result.step for result in every if result.step.stage is Stage.ALL}
    for node, facts in probed.items():
        own = [result for result in facts.results if result.step.op not in UNEVEN]
        results = [result for result in own if not together or result.step in together]
        yield from _carried(node, results)


def _carried(node: str, results: Sequence[NodeResult]) -> Iterator[Traffic]:
    sums: dict[str, tuple[int, int]] = {}
    planned = {device for result in results for device in _data_devices(result)}
    for result in results:
        for device, moved in result.carried.items():
            sent, received = sums.get(device, (0, 0))
            sums[device] = sent + moved.sent, received + moved.received
    for device, (sent, received) in sums.items():
        if sent or received or device in planned:
            yield Traffic(node, device, sent, received, device in planned)


def _data_devices(result: NodeResult) -> tuple[str, ...]:
    """Return the plan's devices for data: if there are HCA ports, the interfaces only serve to start the ranks."""
    return tuple(device for device in result.planned if ":" in device) or result.planned
