"""What the probe measured, as the report tells it: from facts alone, so that a replay tells the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from ncheck.facts.probe import Failure, Means, ProbeFacts, Stage, Turn
from ncheck.hostlist import fold
from ncheck.model.report import Measurement, Pair, Point, Probe, Traffic
from ncheck.probe.collectives import Collective, algbw, busbw, collectives
from ncheck.probe.expected import Expected, expected
from ncheck.probe.gaps import missing_sizes, unverified
from ncheck.probe.scaling import scaled
from ncheck.probe.why_none import Facts, grouped, ran_on, reasons, why_none, with_nodes
from ncheck.text import size
from ncheck.topology.hardware import Hardware, hardware_of

Expects = Callable[[Collective], Expected]


ALIKE = 0.05  # bandwidths no further apart than this share are told as one


UNIT = "GB/s"


_TOLD_BY = {"agents": "started by ncheck itself", "mpirun": "started by mpirun"}


def measured(facts: Mapping[str, Facts]) -> tuple[tuple[Measurement, ...], Probe]:
    """Return what was measured on this hardware, and how; or why nothing was."""

    @cache
    def hardware() -> Mapping[str, Hardware]:
        return {node: hardware_of(of_node) for node, of_node in facts.items()}

    return told(facts, lambda one: expected(one, hardware()))


def told(facts: Mapping[str, Facts], expects: Expects) -> tuple[tuple[Measurement, ...], Probe]:
    """Return what was measured, the nodes by themselves first and all of them last, and how; or why nothing was."""
    probed = ran_on(facts)
    if not probed:
        return (), why_none(facts)
    ran = tuple(one for one in collectives(probed) if one.step.means is not Means.DIAGNOSTICS)
    made = tuple(_measurements(ran, expects))
    return made, _probe(probed, ran, reasons(facts), made)


def _probe(
    probed: Mapping[str, ProbeFacts], ran: Sequence[Collective], untold: Mapping[str, str], made: Sequence[Measurement]
) -> Probe:
    turns = [turn for facts in probed.values() for turn in facts.turns]
    first = next((one for one in reversed(ran) if one.step.means is not Means.RDMA), None)
    step = first.step if first else turns[0].step
    how = f"{step.means.act} by {_by(first)}" if first else "RDMA between HCA ports"
    return Probe(
        ran=True,
        reason=f"{how}, {_TOLD_BY.get(step.launcher, step.launcher)}",
        means=step.means.value,
        launcher=step.launcher,
        version=_version(first) if first else "",
        rounds=len({turn.step.round for turn in turns}),
        pairs=tuple(pairs(ran)),
        traffic=tuple(traffic(probed)),
        notes=(*_notes(probed, untold), *_unmeasured(probed, ran), *_beyond_belief(made)),
    )


def _notes(probed: Mapping[str, ProbeFacts], untold: Mapping[str, str]) -> Iterator[str]:
    """Yield what was left out: what the means do not tell of, what was not begun, who had no part."""
    yield from dict.fromkeys(facts.note for facts in probed.values() if facts.note)
    left_out = {(one.step.stage, one.why): one.step for facts in probed.values() for one in facts.skipped}
    for (stage, why), step in left_out.items():
        yield f"{_WHERE[stage].format(len(step.group))} nothing was measured: {why}"
    for why, nodes in grouped(untold):
        yield f"nothing was measured on {fold(nodes)}: {why}"


def _unmeasured(probed: Mapping[str, ProbeFacts], ran: Sequence[Collective]) -> Iterator[str]:
    """Yield which sizes were left out, and what nobody verified."""
    for stage, sizes in missing_sizes(ran).items():
        where = _WHERE[stage].format(max(len(one.step.group) for one in ran if one.step.stage is stage))
        yield f"{where} not all sizes were measured; left out: {', '.join(map(size, sizes))}"
    if unseen := [node for node, facts in probed.items() if unverified(facts)]:
        yield f"nobody verified all results of {fold(unseen)}"


_BEYOND = 2.0  # times what was expected: such a figure says that one of the two is wrong


def _beyond_belief(made: Sequence[Measurement]) -> Iterator[str]:
    """Yield what reached more than its links can carry: the clock, or what was detected, is wrong."""
    for one in made:
        if one.measured and one.expected and one.measured > _BEYOND * one.expected:
            told = f"{one.measured:.3g} {UNIT} is more than {one.limited_by} can carry ({one.expected:.3g})"
            yield f"{one.what}, {fold(one.nodes)}: {told}: what was measured or what was detected is wrong"


_WHERE = {
    Stage.INSIDE: "inside the nodes", Stage.PAIR: "between some pairs of nodes", Stage.RAIL: "rail by rail",
    Stage.SCALING: "on {} nodes", Stage.ALL: "on all {} nodes together",
}  # fmt: skip


def _by(one: Collective) -> str:
    """Return what carried the data, by its true name: a run on CPUs is no NCCL."""
    version = _version(one)
    number = f" {version}" if version else ""
    return {
        Means.NCCL: f"NCCL{number}",
        Means.NCCL_TESTS: f"nccl-tests with NCCL{number}",
        Means.GLOO: f"torch{number} gloo on CPUs",
        Means.TCP: "sockets, no library",
        Means.RDMA: "the HCAs alone, no library",
        Means.DIAGNOSTICS: "NCCL's own diagnostics",
    }[one.step.means]


def _version(one: Collective) -> str:
    return next((turn.version for turn in one.turns.values() if turn.version), "")


def _measurements(ran: Sequence[Collective], expects: Expects) -> Iterator[Measurement]:
    by_stage = {stage: [one for one in ran if one.step.stage is stage] for stage in Stage}
    yield from _inside(by_stage[Stage.INSIDE], expects)
    yield from _best_and_worst(by_stage[Stage.PAIR], expects, "pair of nodes")
    yield from _best_and_worst(by_stage[Stage.RAIL], expects, "pair of HCA ports")
    kept = {one.nodes: one.efficiency for one in scaled(ran, lambda one: expects(one).busbw)}
    for one in (*by_stage[Stage.SCALING], *by_stage[Stage.ALL]):
        made = _measured(one, expects, f"on {len(one.step.group)} nodes")
        yield replace(made, efficiency=figures(kept.get(one.step.group)))


def _measured(one: Collective, expects: Expects, where: str) -> Measurement:
    should = expects(one)
    return Measurement(
        what=f"{one.step.means.act} {where}",
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
        curve=tuple(_point(one, place) for place in range(len(one.rows))),
        failed=_why_failed(one),
    )


def _point(one: Collective, place: int) -> Point:
    row = one.rows[place]
    rates = figures(algbw(row)), figures(busbw(one.step, row))
    return Point(row.size, row.in_place, row.seconds, rates[0] or 0.0, rates[1] or 0.0, row.wrong)


def _why_failed(one: Collective) -> str:
    """Return the words of those whose part failed, folded, and who told nothing; "" where all is well."""
    said = {node: _failure_words(failure) for node, failure in one.failures.items()}
    silent = dict.fromkeys(one.silent, "told nothing of its part")
    if said or silent:
        return with_nodes(grouped({**said, **silent}))
    return "" if one.rows else "no size came to its end on every node"


def _failure_words(failure: Failure) -> str:
    if failure.words:
        known = not failure.step or failure.words.endswith(failure.step)
        return failure.words if known else f"{failure.step}: {failure.words}"
    ended = "its time was over" if failure.late else "it failed"
    return f"{ended} in {failure.step}" if failure.step else ended


def _inside(ran: Sequence[Collective], expects: Expects) -> Iterator[Measurement]:
    """Yield one measurement for the nodes that gave alike and should have, and one for each other; failures last."""
    groups: dict[object, list[Measurement]] = {}
    for one in ran:
        made = _measured(one, expects, "inside the node")
        key = (made.ranks, made.expected, made.limited_by, made.lowered_by, made.unknown, made.by, made.failed)
        groups.setdefault(key, []).append(made)
    for same in sorted(groups.values(), key=lambda group: (bool(group[0].failed), -len(group))):
        yield from _alike(same)


def _alike(same: list[Measurement]) -> Iterator[Measurement]:
    """Fold measurements by what they came to: the middle one speaks for those near it, and the rest fold again."""
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


def _best_and_worst(ran: Sequence[Collective], expects: Expects, of: str) -> Iterator[Measurement]:
    """Yield the best, the middle and the worst by name, or one for all where they are alike; and each that failed."""
    made = [_measured(one, expects, _between(one)) for one in ran]
    there = sorted((one for one in made if one.measured is not None), key=_value, reverse=True)
    if there and _value(there[0]) - _value(there[-1]) <= ALIKE * _value(there[0]):
        middle = there[len(there) // 2]
        count = f": {len(there)} {of.replace('pair', 'pairs', 1)} alike" if len(there) > 1 else ""
        yield replace(middle, what=middle.what + count, nodes=_nodes(there))
    elif there:
        for name, one in _named(there):
            yield replace(one, what=f"{one.what}: {name} of {len(there)} {of.replace('pair', 'pairs', 1)}")
    yield from (one for one in made if one.measured is None)


def _between(one: Collective) -> str:
    """Say what was joined: two nodes, or two of their HCA ports."""
    ports = [port for node in one.step.group if (turn := one.turns.get(node)) for port in turn.planned[:1]]
    if one.step.stage is Stage.RAIL and ports:
        return f"between {' and '.join(dict.fromkeys(ports))} of two nodes"
    return "between two nodes, one rank each"


def _named(there: Sequence[Measurement]) -> Iterator[tuple[str, Measurement]]:
    yield "the best", there[0]
    if len(there) > 2:  # noqa: PLR2004  between the first and the last
        yield "the middle", there[len(there) // 2]
    yield "the worst", there[-1]


_FIGURES = 6  # of a number that is written down


def figures(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{_FIGURES}g}")


def pairs(ran: Sequence[Collective]) -> Iterator[Pair]:
    """Yield each pair once. What was measured again stands as it was measured last."""
    last: dict[frozenset[str], Pair] = {}
    for one in ran:
        if one.step.stage is Stage.PAIR and len(one.step.group) == 2:  # noqa: PLR2004  a pair
            first, second = one.step.group
            last[frozenset(one.step.group)] = Pair((first, second), figures(one.busbw))
    yield from last.values()


def traffic(probed: Mapping[str, ProbeFacts]) -> Iterator[Traffic]:
    """Yield what each device carried while all nodes ran, for then all carry alike; in every step where that never was.

    Those of the plan that carried nothing are told, too.
    """
    every = [turn for facts in probed.values() for turn in facts.turns]
    together = {turn.step for turn in every if turn.step.stage is Stage.ALL}
    for node, facts in probed.items():
        turns = [turn for turn in facts.turns if not together or turn.step in together]
        yield from _carried(node, turns)


def _carried(node: str, turns: Sequence[Turn]) -> Iterator[Traffic]:
    sums: dict[str, tuple[int, int]] = {}
    planned = {device for turn in turns for device in _meant(turn)}
    for turn in turns:
        for device, moved in turn.carried.items():
            sent, received = sums.get(device, (0, 0))
            sums[device] = sent + moved.sent, received + moved.received
    for device, (sent, received) in sums.items():
        if sent or received or device in planned:
            yield Traffic(node, device, sent, received, device in planned)


def _meant(turn: Turn) -> tuple[str, ...]:
    """Return the plan's devices for data: by its interfaces the ranks only meet, where there are HCA ports."""
    return tuple(device for device in turn.planned if ":" in device) or turn.planned
