"""The acts of the probe: what is measured next is made of what was measured before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.links import ListenFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.probe import MeetingFacts, Method, NodeResult, ProbeFacts, Stage, Step
from ncheck.facts.probe_replies import MEETING, TASK
from ncheck.facts.tools import ToolFacts
from ncheck.hostlist import fold
from ncheck.model.evidence import JsonValue, Reply, Source, Status
from ncheck.model.phase import Act, NotAsked, Told
from ncheck.model.plan import LaunchPlan
from ncheck.parse.topology_matrix import TopologyFacts
from ncheck.plan import PLAN_FACTS
from ncheck.probe.expected import expectation
from ncheck.probe.questions import Parts, Roll, skipped
from ncheck.probe.results import Collective, collectives
from ncheck.probe.schedule import most_rounds, pair_rounds, scaling_groups
from ncheck.topology.hardware import hardware_of

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import Answer
    from ncheck.model.phase import Questions
    from ncheck.probe.choice import Blocker, Chosen
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import Driver


PROBE_FACTS = (
    *PLAN_FACTS, GpuFacts, TopologyFacts, LoadedNcclFacts, IdentityFacts, ListenFacts, ToolFacts, MeetingFacts,
)  # fmt: skip


AGAIN = "ncheck probe nodes.txt"


@dataclass(frozen=True)
class Prospect:
    """What can be judged by now: the plan, whom --drop-bad leaves out, and what is against measuring under it."""

    plan: LaunchPlan
    dropped: Mapping[str, str]
    against: Sequence[Blocker]


def spared_probe(cluster: Cluster) -> dict[str, str]:
    """Return the nodes on which nothing is to be measured."""
    none = cluster.settings.probe == "none"
    return dict.fromkeys((node.name for node in cluster.nodes), "not asked (--probe none)") if none else {}


def rounds(
    cluster: Cluster, prospect: Callable[[], Prospect], clock: Callable[[], float] = time.monotonic
) -> Iterator[Act]:
    """Yield the acts of the probe, or the one that says why there is none.

    With --drop-bad it is judged once more when all pairs have met: who is bad by that has no part in larger groups.
    """
    from ncheck.probe.choice import (
        Refused,
        choose,
    )
    from ncheck.probe.methods.context import context_of

    found = prospect()
    ground = context_of(cluster, found.plan, found.dropped)
    if found.dropped:
        yield told(cluster, NotAsked(TASK, "left out by --drop-bad"), found.dropped)
    chosen = choose(ground, found.against)
    if isinstance(chosen, Refused):
        yield told(cluster, refusal(cluster, chosen.why, chosen.fix), ground.nodes)
        return
    stages = Stages(ground, chosen, clock, clock() + cluster.settings.probe_time)
    yield from stages.search()
    if cluster.settings.drop_bad:
        now = prospect()
        yield from stages.leave_out(context_of(cluster, now.plan, {**found.dropped, **now.dropped}))
    yield from stages.groups()


def cut_short(probed: Mapping[str, object], why: str) -> dict[str, tuple[Source, Reply]]:
    """Return what notes, of each node, that nothing more was measured, and why: a source and its reply.

    `probed` are the reached nodes' ProbeFacts, None where there is none yet. Nobody is noted who was spared.
    """
    from ncheck.probe.questions import skipped

    begun = {node: facts for node, facts in probed.items() if isinstance(facts, ProbeFacts) and facts.results}
    again = Reply(Status.FAILED, why, value=AGAIN)
    never: dict[str, tuple[Source, Reply]] = {node: (TASK, again) for node, facts in probed.items() if facts is None}
    if not begun:
        return never
    ran = [turn.step.round for facts in begun.values() for turn in facts.results]
    noted = [skip.step.round for facts in begun.values() for skip in facts.skipped]
    last = next(iter(begun.values())).results[-1].step
    stage = Stage.ALL if len(probed) > 1 else Stage.INSIDE
    step = replace(last, round=1 + max(ran + noted), stage=stage, group=tuple(begun), ranks=(1,) * len(begun))
    note = skipped(step, why)
    return {**never, **dict.fromkeys(begun, (note.source, note.reply))}


def refusal(cluster: Cluster, why: str, fix: str) -> NotAsked | Told:
    """Return why nothing is measured. By default there was nothing to measure then; who asked for it has no answer."""
    settings = cluster.settings
    wanted = settings.probe != "auto" or settings.probe_wanted
    return Told(TASK, Reply(Status.FAILED, why, value=fix)) if wanted else NotAsked(TASK, why)


def told(cluster: Cluster, words: NotAsked | Told, nodes: Collection[str]) -> Act:
    """Return the act that asks nothing and tells these nodes why."""
    names = [node.name for node in cluster.connected if node.name in nodes]
    return Act("measuring", frozenset(names), lambda _: dict.fromkeys(names, (words,)), seconds=1.0)


PATIENCE = 4.0  # seconds beyond a step's own time: an agent that had to end its ranks answers late


KEPT = 0.4  # of the time, for all nodes together


_PARTNERS = 2  # with whom a node must have failed before it is asked no more


PATIENT = 0.25  # of the time, that a step may take before it counts as hung, where that is more than its way says


_FEW = 2  # nodes: fewer have nobody to meet


_SPARE = 3  # ids more than a node can need


@dataclass
class Stages:
    """One probe. `ends` is by `clock`, in seconds, as is all time here."""

    ground: ProbeContext
    chosen: Chosen
    clock: Callable[[], float]
    ends: float
    round: int = 0
    out: dict[str, str] = field(default_factory=dict)  # nodes that are asked no more, and why
    roll: Roll = field(default_factory=lambda: Roll({}, set()))

    def search(self) -> Iterator[Act]:
        """Yield the acts that tell who is slow; each sees what the one before it brought."""
        yield from self.meet()
        yield from self.inside()
        if len(self.ground.nodes) >= _FEW:
            yield from self.pairs()

    def leave_out(self, ground: ProbeContext) -> Iterator[Act]:
        """Go on on this ground, and note it on those who are not on it any more. Where nobody is left, all go on."""
        gone = tuple(node for node in self.ground.nodes if node not in ground.nodes)
        if not gone or not ground.nodes:
            return
        if way := self.chosen.drivers.get(Stage.ALL):
            yield self.skip(way, Stage.ALL, [self.ground.nodes], f"--drop-bad left out {fold(gone)}", gone)
        self.ground = ground

    def groups(self) -> Iterator[Act]:
        """Yield the acts of more than two nodes."""
        if len(self.ground.nodes) >= _FEW:
            yield from self.scaling()
            yield from self.together()
        yield from self.diagnosed()

    # The stages

    def meet(self) -> Iterator[Act]:
        """Ask every node for places where ranks can meet, before anything is measured."""
        ways = [way for way in (*self.chosen.drivers.values(), *self.chosen.beside.values()) if way.meets]
        if not ways:
            return
        way = ways[0]
        seconds = min(way.to_meet, self.left() / 3)
        count = most_rounds(len(self.ground.nodes)) + len(self.ground.nodes).bit_length() + _SPARE

        def ask(left: float) -> Questions:
            timeout = max(1.0, min(seconds, left - PATIENCE))
            return {node: (self.to_meet(way, node, count, timeout),) for node in self.ground.nodes}

        yield Act("meeting", frozenset(self.ground.nodes), ask, seconds=seconds + PATIENCE)
        for node in self.ground.nodes:
            held = self.ground.meeting(node)
            self.roll.ids[node] = [*held.ids] if held else []

    def inside(self) -> Iterator[Act]:
        """Measure each node by itself, all at once."""
        way = self.chosen.drivers.get(Stage.INSIDE)
        alone = len(self.ground.nodes) == 1
        if way:
            nodes = [node for node in self.standing() if alone or way.ranks(self.ground, Stage.INSIDE, node) > 1]
            yield from self.run(way, Stage.INSIDE, [(node,) for node in nodes], "measuring inside")

    def pairs(self) -> Iterator[Act]:
        """Measure disjoint pairs at once, until nobody is suspected without a second partner."""
        way = self.chosen.drivers.get(Stage.PAIR)
        known = self.ground.cluster.known
        should = expectation({node: hardware_of(known.get(node, {})) for node in self.ground.nodes})
        number = 0
        while way:
            pairs = [pair for pair in pair_rounds(self.standing(), self.done(), should) if self.stand(pair)]
            if not pairs:
                break
            number += 1
            begun = self.round
            yield from self.run(way, Stage.PAIR, pairs, f"measuring pairs, round {number}")
            if not any(one.step.round > begun for one in self.done()):
                break
            self.give_up()
            if rails := self.chosen.beside.get("rdma"):
                yield from self.rails(rails, pairs, number)
        if rails := self.chosen.beside.get("rdma"):
            yield from self.rails_again(rails)
        self.give_up(at_last=True)

    def rails(self, way: Driver, pairs: Sequence[tuple[str, ...]], number: int) -> Iterator[Act]:
        """Measure the rails of pairs, one after the other; of those who have proved theirs no more is wanted."""
        proved = {node for one in self.done() if one.step.stage is Stage.RAIL and one.whole for node in one.step.group}
        wanted = [pair for pair in pairs if self.stand(pair) and not proved.issuperset(pair)]
        lanes = {pair: way.lanes(self.ground, Stage.RAIL, pair) for pair in wanted}
        for lane in range(max(lanes.values(), default=0)):
            held = [pair for pair in wanted if lane < lanes[pair] and self.stand(pair)]
            yield from self.run(way, Stage.RAIL, held, f"measuring rail {lane + 1}, round {number}", lane)

    def rails_again(self, way: Driver) -> Iterator[Act]:
        """Give the ends of a rail that failed or was slow a second partner, before one of them is blamed."""
        probed = {node: ProbeFacts(self.turns(node)) for node in self.ground.nodes}
        for lane, pairs in way.again(self.ground, probed).items():
            held = [pair for pair in pairs if self.stand(pair)]
            yield from self.run(way, Stage.RAIL, held, f"measuring rail {lane + 1}, other partners", lane)

    def scaling(self) -> Iterator[Act]:
        """Measure 2, 4, 8 ... nodes, until one of them fails."""
        way = self.chosen.drivers.get(Stage.SCALING)
        for group in scaling_groups(self.standing()) if way else ():
            if not self.stand(group):
                return
            begun = self.round
            if way:
                yield from self.run(way, Stage.SCALING, [group], f"measuring {len(group)} nodes")
            if not any(one.step.round > begun and one.whole for one in self.done()):
                return

    def together(self) -> Iterator[Act]:
        """Measure all nodes that stand."""
        way = self.chosen.drivers.get(Stage.ALL)
        group = self.standing()
        if way and len(group) >= _FEW:
            yield from self.run(way, Stage.ALL, [group], "measuring all")
        elif way:
            gone = "; ".join(f"{node}: {why}" for node, why in self.out.items())
            yield self.skip(way, Stage.ALL, [self.ground.nodes], f"fewer than two nodes are left to measure ({gone})")

    def diagnosed(self) -> Iterator[Act]:
        """Let what diagnoses by itself have its turn; say of what could have run beside why it did not."""
        if way := self.chosen.beside.get("diagnostics"):
            stage = next(iter(way.stages))
            yield from self.run(way, stage, [self.standing()], "running NCCL's diagnostics")

    # One act

    def run(
        self, way: Driver, stage: Stage, groups: Iterable[Sequence[str]], told: str, lane: int = 0
    ) -> Iterator[Act]:
        """Yield the act in which these groups run at once, or the one that says why they do not."""
        groups = [self.led(way, tuple(group)) for group in groups if group]
        sizes = self.sizes(way, stage)
        if not groups:
            return
        if why := way.lacks(self.ground) or self.unsized(way, sizes):
            yield self.skip(way, stage, groups, why)
            return
        seconds = min(self.longest(way), self.affordable(way, stage))
        if seconds < way.least:
            yield self.skip(way, stage, groups, "the time for the probe was over (--probe-time)")
            return
        steps = self.steps(way, stage, groups, sizes)
        parts = Parts(self.ground, self.roll, way, steps, lane, self.chosen.note)
        nodes = frozenset(node for group in groups for node in group)
        yield Act(told, nodes, lambda left: parts.questions(min(seconds, left - PATIENCE)), seconds=seconds + PATIENCE)
        self.learn(steps)

    def unsized(self, way: Driver, sizes: tuple[int, ...]) -> str:
        """Say why there is no size to measure; "" where there is one, or where the means has none at all."""
        return "no size fits into the memory that is free" if way.sizes and not sizes else ""

    def skip(
        self, way: Driver, stage: Stage, groups: Sequence[Sequence[str]], why: str, on: Sequence[str] | None = None
    ) -> Act:
        """Return the act that asks nothing, and notes of a step why it was not begun: on all its nodes, or on some."""
        steps = self.steps(way, stage, groups, self.sizes(way, stage))
        told = {node: (skipped(step, why),) for step in steps for node in step.group if on is None or node in on}
        return Act("measuring", frozenset(told), lambda _: dict(told), seconds=1.0)

    def steps(self, way: Driver, stage: Stage, groups: Iterable[Sequence[str]], sizes: tuple[int, ...]) -> list[Step]:
        self.round += 1
        net = way.net(self.ground, stage)
        return [
            Step(
                self.round, stage, way.method, tuple(group),
                tuple(way.ranks(self.ground, stage, node) for node in group), sizes, way.launcher,
                net, self.ground.settings.expect,
            )
            for group in groups
        ]  # fmt: skip

    def sizes(self, way: Driver, stage: Stage) -> tuple[int, ...]:
        """Return the sizes of a stage: those that --sizes names for a node by itself and for all, the usual else.

        Where small ones are named, the other stages go no further than those.
        """
        named, usual = self.ground.settings.sizes, way.usual(self.ground, stage)
        if named and stage in (Stage.INSIDE, Stage.ALL):
            usual = named
        elif named:
            usual = tuple(size for size in usual if size <= max(named)) or (max(named),)
        return way.fitting(self.ground, stage, usual)

    def led(self, way: Driver, group: tuple[str, ...]) -> tuple[str, ...]:
        """Put a node in front that ranks can meet at: that it cannot is its own fault, and shows when it is alone."""
        if not way.meets:
            return group
        held = {node: self.ground.meeting(node) for node in group}
        able = (node for node, one in held.items() if one and not one.why and (not way.ids or self.roll.ids.get(node)))
        leader = next(able, group[0])
        return (leader, *(node for node in group if node != leader))

    def to_meet(self, way: Driver, node: str, count: int, timeout: float) -> Answer:
        arguments: dict[str, JsonValue] = {
            "means": way.method.value, "count": count,
            "variables": dict(way.variables(self.ground, node, "")), **way.meeting(self.ground, node),
        }  # fmt: skip
        return replace(MEETING, arguments=arguments, timeout=timeout)

    # Time

    def left(self) -> float:
        return self.ends - self.clock()

    def longest(self, way: Driver) -> float:
        """Return the seconds after which a step counts as hung: more where somebody gave a slow cluster more time."""
        return max(way.most, PATIENT * self.ground.settings.probe_time)

    def affordable(self, way: Driver, stage: Stage) -> float:
        """Return the seconds that a step may take, with those kept back that all nodes together will need."""
        last = self.chosen.drivers.get(Stage.ALL)
        settings = self.ground.settings
        kept = 0.0
        if last and stage is not Stage.ALL and way.method is not Method.DIAGNOSTICS and len(self.ground.nodes) >= _FEW:
            kept = min(KEPT * settings.probe_time, self.longest(last))
        return self.left() - PATIENCE - kept

    # Who is left

    def standing(self) -> tuple[str, ...]:
        """Return the nodes that are asked on, in the order of the listing."""
        there = {node.name for node in self.ground.cluster.connected}
        return tuple(node for node in self.ground.nodes if node in there and node not in self.out)

    def stand(self, group: Iterable[str]) -> bool:
        return set(group) <= set(self.standing())

    def turns(self, node: str) -> tuple[NodeResult, ...]:
        held = self.ground.cluster.known.get(node, {}).get(ProbeFacts)
        return held.results if isinstance(held, ProbeFacts) else ()

    def done(self) -> tuple[Collective, ...]:
        """Return all that was measured so far."""
        return collectives({node: ProbeFacts(self.turns(node)) for node in self.ground.nodes})

    def learn(self, steps: Sequence[Step]) -> None:
        """See who is left after an act."""
        by_step = {one.step: one for one in self.done()}
        for step in steps:
            one = by_step.get(step)
            for node in step.group if one is None else one.silent:
                self.out.setdefault(node, f"it told nothing of round {step.round}")
            if one and step.stage is Stage.INSIDE:
                self.out.update({node: failure.words for node, failure in one.failures.items()})

    def give_up(self, *, at_last: bool = False) -> None:
        """Ask those no more who failed with two partners and never came through; at last those who failed with one."""
        met = [one for one in self.done() if one.step.stage is Stage.PAIR]
        well = {node for one in met if one.whole for node in one.step.group}
        for node in self.standing():
            failed = [one for one in met if node in one.step.group and not one.whole]
            partners = {other for one in failed for other in one.step.group} - {node}
            if node not in well and failed and (at_last or len(partners) >= _PARTNERS):
                self.out[node] = f"it failed with {fold(partners)}"
