"""What was measured, held against what it should have been; and, where nobody can tell that, against the peers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ncheck.facts.probe import Means, ProbeFacts, Stage
from ncheck.hostlist import fold
from ncheck.model.check import NotApplicable, Problem
from ncheck.model.report import FAR_TOO_LOW
from ncheck.probe.collectives import Collective, collectives
from ncheck.probe.expected import NAMED, Expected, expectation, expected
from ncheck.probe.search import searched
from ncheck.probe.wires import seen_of, shows_links
from ncheck.topology.hardware import Hardware

PEERS_LOW = 0.85  # of what is usual inside nodes of one kind, which differ by a few percent


_BARE = Hardware()


@dataclass(frozen=True)
class Held:
    """One collective held against its expectation; `nodes` are those that it speaks of. `ratio` is None with it."""

    run: Collective
    nodes: tuple[str, ...]
    busbw: float
    should: Expected
    blamed: tuple[str, ...] = ()  # who of the group is slow with each partner, and has a finding of its own

    @property
    def ratio(self) -> float | None:
        """Measured over expected."""
        return self.busbw / self.should.busbw if self.should.busbw else None


def held(probed: Mapping[str, ProbeFacts], hardware: Mapping[str, Hardware]) -> tuple[Held, ...]:
    """Return what is judged: each node by itself, its best pair, and all nodes, or else the most that came through.

    Left out is a node that the search blames, which has a finding of its own, and its pairs.
    """
    ran = [one for one in collectives(probed) if one.busbw is not None]
    inside = [one for one in ran if one.step.stage is Stage.INSIDE]
    large = [one for one in ran if one.step.stage in (Stage.ALL, Stage.SCALING)]
    whole = [one for one in large if one.step.stage is Stage.ALL] or sorted(large, key=lambda one: one.step.world)
    found = searched(collectives(probed), expectation(hardware))
    blamed = [suspect.node for suspect in found.slow]
    return (
        *(_held(one, one.step.group, hardware) for one in inside),
        *_best_pairs((one for one in ran if one.step.means is found.means), blamed, hardware),
        *(replace(_held(one, one.step.group, hardware), blamed=tuple(blamed)) for one in whole[-1:]),
    )


def short(judged: Iterable[Held], hardware: Mapping[str, Hardware], least: float, most: float) -> Iterator[Problem]:
    """Yield what reaches from `least` up to `most` of its expectation; what falls short alike is told once."""
    groups: dict[tuple[object, ...], list[Held]] = {}
    for one in judged:
        if one.ratio is not None and least <= _grave(one) < most:
            groups.setdefault((one.run.step.stage, one.should), []).append(one)
    for members in groups.values():
        yield _problem(members, hardware)


def unexpected(judged: Sequence[Held]) -> NotApplicable | None:
    """Say why nothing was judged, where nothing was; None where something was."""
    if not judged:
        return NotApplicable("no bandwidth was measured")
    if any(one.ratio is not None for one in judged):
        return None
    missing = tuple(dict.fromkeys(what for one in judged for what in one.should.unknown))
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return NotApplicable(
        f"there is no telling what to expect, for want of knowing {missing[0]}{more}" if missing else "no limit"
    )


def below_peers(
    probed: Mapping[str, ProbeFacts], hardware: Mapping[str, Hardware]
) -> Iterator[Problem | NotApplicable]:
    """Yield the nodes whose GPUs reach less between them than those of their peers, where nothing is expected.

    The nodes are of one kind. What is usual is the median of those that are not far below the best.
    """
    runs = [one for one in _inside(collectives(probed)) if expected(one, hardware).busbw is None]
    groups: dict[tuple[int, Means], dict[str, float]] = {}
    for one in runs:
        groups.setdefault((one.step.world, one.step.means), {})[one.step.group[0]] = one.busbw or 0.0
    compared = [values for values in groups.values() if len(values) > 1]
    if not compared:
        yield NotApplicable("no two nodes of one kind were measured by themselves without an expectation")
    for values in compared:
        usual = _usual(values.values())
        for node, reached in values.items():
            if reached < PEERS_LOW * usual:
                yield _below(node, reached, usual, hardware.get(node, _BARE), probed[node])


def inside_share(node: str, ran: Iterable[Collective], hardware: Mapping[str, Hardware]) -> float | None:
    """Return what a node reached by itself over what it should, else over its peers'; None where neither is known."""
    runs = {one.step.group[0]: one for one in _inside(ran)}
    if node not in runs or runs[node].busbw is None:
        return None
    should = expected(runs[node], hardware).busbw
    alike = [one.busbw or 0.0 for one in runs.values() if one.step.world == runs[node].step.world]
    usual = should or (_usual(alike) if len(alike) > 1 else None)
    return (runs[node].busbw or 0.0) / usual if usual else None


def _inside(ran: Iterable[Collective]) -> list[Collective]:
    return [one for one in ran if one.step.stage is Stage.INSIDE and one.step.world > 1 and one.busbw is not None]


def _usual(values: Iterable[float]) -> float:
    held = tuple(values)
    return median(value for value in held if value >= PEERS_LOW * max(held))


def _held(one: Collective, nodes: tuple[str, ...], hardware: Mapping[str, Hardware]) -> Held:
    return Held(one, nodes, one.busbw or 0.0, expected(one, hardware))


def _best_pairs(ran: Iterable[Collective], blamed: Sequence[str], hardware: Mapping[str, Hardware]) -> tuple[Held, ...]:
    """Return the best pair of each node that is not blamed."""
    best: dict[str, Held] = {}
    for one in ran:
        if one.step.stage is Stage.PAIR:
            made = _held(one, one.step.group, hardware)
            for node in one.step.group:
                if node not in best or (made.ratio or 0.0) > (best[node].ratio or 0.0):
                    best[node] = replace(made, nodes=(node,))
    return tuple(made for node, made in best.items() if node not in blamed)


def _grave(one: Held) -> float:
    """Return the ratio; that of bare sockets is never far too low, for a busy machine halves it with ease."""
    ratio = one.ratio or 0.0
    return max(ratio, FAR_TOO_LOW) if one.run.step.means is Means.TCP else ratio


def _problem(members: Sequence[Held], hardware: Mapping[str, Hardware]) -> Problem:
    should, step = members[0].should, members[0].run.step
    nodes = tuple(dict.fromkeys(node for one in members for node in one.nodes))
    worst = min(one.ratio or 0.0 for one in members)
    low, high = (f"{pick(one.busbw for one in members):.3g}" for pick in (min, max))
    reached = low if low == high else f"{low} to {high}"
    lowered = f", lowered by: {'; '.join(should.lowered_by)}" if should.lowered_by else ""
    turns = {node: [one.run.turns[node] for one in members if node in one.run.turns] for node in nodes}
    seen = [line for node in nodes for line in seen_of(node, hardware.get(node, _BARE), turns[node])]
    place = f"{step.means.act} {_where(step.stage, nodes)}"
    figures = f"{reached} GB/s of {should.busbw:.3g} expected ({worst:.2f})"
    limit = f"as {NAMED} says" if should.limited_by == NAMED else f"limited by {should.limited_by}"
    message = f"{place}: {figures}, {limit}{lowered}"
    evidence = [f"{node} is slow with each of its partners" for node in members[0].blamed if node in nodes]
    return Problem(message, _fix(members[0], seen, hardware), (*evidence, *dict.fromkeys(seen)), nodes)


def _where(stage: Stage, nodes: tuple[str, ...]) -> str:
    if stage is Stage.INSIDE:
        return f"inside {fold(nodes)}"
    return f"between pairs with {fold(nodes)}" if stage is Stage.PAIR else f"on {len(nodes)} nodes"


def _fix(one: Held, seen: Sequence[str], hardware: Mapping[str, Hardware]) -> str:
    """Return what to type first: at what is seen, else at the limiting term."""
    if any("GPUDirect" in line for line in seen):
        return "sudo modprobe nvidia_peermem"
    if any("PCIe" in line for line in (*seen, *one.should.lowered_by)) or "PCIe" in one.should.limited_by:
        return "nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv"
    if "NVL" in one.should.limited_by:
        return "nvidia-smi nvlink -s"
    return shows_links(one.run.turns, hardware)


def _below(node: str, reached: float, usual: float, hardware: Hardware, probed: ProbeFacts) -> Problem:
    turns = [turn for turn in probed.turns if turn.step.stage is Stage.INSIDE]
    message = f"all-reduce inside {node}: {reached:.3g} GB/s where its peers have {usual:.3g} ({reached / usual:.2f})"
    return Problem(message, "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE", seen_of(node, hardware, turns), (node,))
