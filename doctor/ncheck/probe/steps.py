"""The steps of the probe: what is measured next is chosen from what was measured before.

All nodes together is what matters most, so time is kept for it. What cannot be afforded is not begun, and says so. A
node that failed by itself, fell silent or failed with two partners is asked no more; the rest go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ncheck.facts.definition import MEASURING
from ncheck.facts.login import LoginFacts
from ncheck.facts.probe import MEETING, TURN, Means, ProbeFacts, Stage, Step, Turn
from ncheck.hostlist import fold
from ncheck.model.evidence import Evidence, JsonValue, Reply, Source, Status
from ncheck.model.phase import Answered, NotAsked, Phase
from ncheck.model.plan import LaunchPlan
from ncheck.probe.collectives import Collective, collectives
from ncheck.probe.expected import expectation
from ncheck.probe.questions import Parts, Roll, skipped
from ncheck.probe.schedule import most_rounds, pair_rounds, scaling_groups
from ncheck.topology.hardware import hardware_of

if TYPE_CHECKING:
    from ncheck.blockers import Blocker
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import Answer
    from ncheck.model.phase import Questions
    from ncheck.probe.choice import Chosen
    from ncheck.probe.methods.method import Ground, Way
    from ncheck.settings import Settings

AGAIN = "ncheck probe nodes.txt"

# Each step is chosen from what the ones before measured: the cluster with that is sent back for it.
Steps = Generator[Phase, "Cluster", None]


@dataclass(frozen=True)
class Assessment:
    """What can be judged before measuring: the plan, the nodes that --drop-bad leaves out, and what blocks the plan."""

    plan: LaunchPlan
    dropped: Mapping[str, str]
    blockers: tuple[Blocker, ...]


def probe_steps(
    cluster: Cluster,
    assess: Callable[[Cluster], Assessment],
    settings: Settings,
    clock: Callable[[], float] = time.monotonic,
) -> Steps:
    """Yield the steps of the probe, or the one that says why there is none.

    With --drop-bad the cluster is assessed again when all pairs have met: nodes that are bad by what the pairs measured
    have no part in larger groups.
    """
    from ncheck.probe.choice import Refused, choose
    from ncheck.probe.methods.ground import ground_of

    found = assess(cluster)
    ground = ground_of(cluster, settings, found.plan, found.dropped)
    if found.dropped:
        cluster = yield _noted(cluster, NotAsked(TURN, "left out by --drop-bad"), found.dropped)
    chosen = choose(ground, found.blockers)
    if isinstance(chosen, Refused):
        yield _noted(cluster, _refusal(settings, chosen.why, chosen.fix), ground.nodes)
        return
    stages = Stages(replace(ground, cluster=cluster), chosen, clock, clock() + settings.probe_time)
    yield from stages.search()
    if settings.drop_bad:
        cluster = stages.ground.cluster
        now = assess(cluster)
        yield from stages.leave_out(ground_of(cluster, settings, now.plan, {**found.dropped, **now.dropped}))
    yield from stages.groups()


def cut_short(cluster: Cluster, why: str) -> list[Evidence]:
    """Return evidence that notes, on each reached node, that nothing more was measured, and why.

    A node that was exempt is not noted.
    """
    from ncheck.probe.questions import skipped

    reached = {name: held.login for name, held in cluster.facts(LoginFacts).items() if held.login.reached}
    probed = {name: cluster.known[name].get(ProbeFacts) for name in reached}
    begun = {node: facts for node, facts in probed.items() if isinstance(facts, ProbeFacts) and facts.turns}
    again = Reply(Status.FAILED, why, value=AGAIN)
    notes: dict[str, tuple[Source, Reply]] = {node: (TURN, again) for node, facts in probed.items() if facts is None}
    if begun:
        ran = [turn.step.round for facts in begun.values() for turn in facts.turns]
        noted = [skip.step.round for facts in begun.values() for skip in facts.skipped]
        last = next(iter(begun.values())).turns[-1].step
        stage = Stage.ALL if len(probed) > 1 else Stage.INSIDE
        step = replace(last, round=1 + max(ran + noted), stage=stage, group=tuple(begun), ranks=(1,) * len(begun))
        note = skipped(step, why)
        notes |= dict.fromkeys(begun, (note.source, note.reply))
    return [Evidence(name, reached[name], replies={source.key: reply}) for name, (source, reply) in notes.items()]


def _refusal(settings: Settings, why: str, fix: str) -> NotAsked | Answered:
    """Return why nothing is measured: a failure where somebody asked for it; otherwise there was nothing to measure."""
    wanted = settings.probe != "auto" or settings.probe_wanted
    return Answered(TURN, Reply(Status.FAILED, why, value=fix)) if wanted else NotAsked(TURN, why)


def _noted(cluster: Cluster, note: NotAsked | Answered, nodes: Collection[str]) -> Phase:
    """Return the step that asks nothing and notes the reason on these nodes."""
    names = [node.name for node in cluster.connected if node.name in nodes]
    return Phase(MEASURING, frozenset(names), lambda _cluster, _seconds: dict.fromkeys(names, (note,)), seconds=1.0)


PATIENCE = 4.0  # seconds beyond a step's own time: an agent that had to end its ranks answers late
KEPT = 0.4  # of the time, for all nodes together
_PARTNERS = 2  # with whom a node must have failed before it is asked no more
PATIENT = 0.25  # of the time, that a step may take before it counts as hung, where that is more than its way says
_FEW = 2  # nodes: fewer have nobody to meet
_SPARE = 3  # ids more than a node can need


@dataclass
class Stages:
    """One probe. `ends` is by `clock`, in seconds, as is all time here."""

    ground: Ground
    chosen: Chosen
    clock: Callable[[], float]
    ends: float
    round: int = 0
    out: dict[str, str] = field(default_factory=dict)  # nodes that are asked no more, and why
    roll: Roll = field(default_factory=lambda: Roll({}, set()))

    def search(self) -> Steps:
        """Yield the acts that tell who is slow; each sees what the one before it brought."""
        yield from self.meet()
        yield from self.inside()
        if len(self.ground.nodes) >= _FEW:
            yield from self.pairs()

    def see(self, cluster: Cluster) -> None:
        """Go on from what is known after a step."""
        self.ground = replace(self.ground, cluster=cluster)

    def leave_out(self, ground: Ground) -> Steps:
        """Go on on this ground, and note it on those who are not on it any more. Where nobody is left, all go on."""
        gone = tuple(node for node in self.ground.nodes if node not in ground.nodes)
        if not gone or not ground.nodes:
            return
        if way := self.chosen.ways.get(Stage.ALL):
            self.see((yield self.skip(way, Stage.ALL, [self.ground.nodes], f"--drop-bad left out {fold(gone)}", gone)))
        self.ground = ground

    def groups(self) -> Steps:
        """Yield the acts of more than two nodes."""
        if len(self.ground.nodes) >= _FEW:
            yield from self.scaling()
            yield from self.together()
        yield from self.diagnosed()

    # The stages

    def meet(self) -> Steps:
        """Ask every node for places where ranks can meet, before anything is measured."""
        ways = [way for way in (*self.chosen.ways.values(), *self.chosen.beside.values()) if way.meets]
        if not ways:
            return
        way = ways[0]
        seconds = min(way.to_meet, self.left() / 3)
        count = most_rounds(len(self.ground.nodes)) + len(self.ground.nodes).bit_length() + _SPARE

        def ask(_cluster: Cluster, left: float) -> Questions:
            timeout = max(1.0, min(seconds, left - PATIENCE))
            return {node: (self.to_meet(way, node, count, timeout),) for node in self.ground.nodes}

        self.see((yield Phase("meeting", frozenset(self.ground.nodes), ask, seconds=seconds + PATIENCE)))
        for node in self.ground.nodes:
            held = self.ground.meeting(node)
            self.roll.ids[node] = [*held.ids] if held else []

    def inside(self) -> Steps:
        """Measure each node by itself, all at once."""
        way = self.chosen.ways.get(Stage.INSIDE)
        alone = len(self.ground.nodes) == 1
        if way:
            nodes = [node for node in self.standing() if alone or way.ranks(self.ground, Stage.INSIDE, node) > 1]
            yield from self.run(way, Stage.INSIDE, [(node,) for node in nodes], "measuring inside")

    def pairs(self) -> Steps:
        """Measure disjoint pairs at once, until nobody is suspected without a second partner."""
        way = self.chosen.ways.get(Stage.PAIR)
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

    def rails(self, way: Way, pairs: Sequence[tuple[str, ...]], number: int) -> Steps:
        """Measure the rails of pairs, one after the other; of those who have proved theirs no more is wanted."""
        proved = {node for one in self.done() if one.step.stage is Stage.RAIL and one.whole for node in one.step.group}
        wanted = [pair for pair in pairs if self.stand(pair) and not proved.issuperset(pair)]
        lanes = {pair: way.lanes(self.ground, Stage.RAIL, pair) for pair in wanted}
        for lane in range(max(lanes.values(), default=0)):
            held = [pair for pair in wanted if lane < lanes[pair] and self.stand(pair)]
            yield from self.run(way, Stage.RAIL, held, f"measuring rail {lane + 1}, round {number}", lane)

    def rails_again(self, way: Way) -> Steps:
        """Give the ends of a rail that failed or was slow a second partner, before one of them is blamed."""
        probed = {node: ProbeFacts(self.turns(node)) for node in self.ground.nodes}
        for lane, pairs in way.again(self.ground, probed).items():
            held = [pair for pair in pairs if self.stand(pair)]
            yield from self.run(way, Stage.RAIL, held, f"measuring rail {lane + 1}, other partners", lane)

    def scaling(self) -> Steps:
        """Measure 2, 4, 8 ... nodes, until one of them fails."""
        way = self.chosen.ways.get(Stage.SCALING)
        for group in scaling_groups(self.standing()) if way else ():
            if not self.stand(group):
                return
            begun = self.round
            if way:
                yield from self.run(way, Stage.SCALING, [group], f"measuring {len(group)} nodes")
            if not any(one.step.round > begun and one.whole for one in self.done()):
                return

    def together(self) -> Steps:
        """Measure all nodes that stand."""
        way = self.chosen.ways.get(Stage.ALL)
        group = self.standing()
        if way and len(group) >= _FEW:
            yield from self.run(way, Stage.ALL, [group], "measuring all")
        elif way:
            gone = "; ".join(f"{node}: {why}" for node, why in self.out.items())
            self.see(
                (
                    yield self.skip(
                        way, Stage.ALL, [self.ground.nodes], f"fewer than two nodes are left to measure ({gone})"
                    )
                )
            )

    def diagnosed(self) -> Steps:
        """Let what diagnoses by itself have its turn; say of what could have run beside why it did not."""
        if way := self.chosen.beside.get("diagnostics"):
            stage = next(iter(way.stages))
            yield from self.run(way, stage, [self.standing()], "running NCCL's diagnostics")

    # One act

    def run(self, way: Way, stage: Stage, groups: Iterable[Sequence[str]], told: str, lane: int = 0) -> Steps:
        """Yield the act in which these groups run at once, or the one that says why they do not."""
        groups = [self.led(way, tuple(group)) for group in groups if group]
        sizes = self.sizes(way, stage)
        if not groups:
            return
        if why := way.lacks(self.ground) or self.unsized(way, sizes):
            self.see((yield self.skip(way, stage, groups, why)))
            return
        seconds = min(self.longest(way), self.affordable(way, stage))
        if seconds < way.least:
            self.see((yield self.skip(way, stage, groups, "the time for the probe was over (--probe-time)")))
            return
        steps = self.steps(way, stage, groups, sizes)
        parts = Parts(self.ground, self.roll, way, steps, lane, self.chosen.note)
        nodes = frozenset(node for group in groups for node in group)

        def ask(_cluster: Cluster, left: float) -> Questions:
            return parts.questions(min(seconds, left - PATIENCE))

        self.see((yield Phase(told, nodes, ask, seconds=seconds + PATIENCE)))
        self.learn(steps)

    def unsized(self, way: Way, sizes: tuple[int, ...]) -> str:
        """Say why there is no size to measure; "" where there is one, or where the means has none at all."""
        return "no size fits into the memory that is free" if way.sizes and not sizes else ""

    def skip(
        self, way: Way, stage: Stage, groups: Sequence[Sequence[str]], why: str, on: Sequence[str] | None = None
    ) -> Phase:
        """Return the act that asks nothing, and notes of a step why it was not begun: on all its nodes, or on some."""
        steps = self.steps(way, stage, groups, self.sizes(way, stage))
        told = {node: (skipped(step, why),) for step in steps for node in step.group if on is None or node in on}
        return Phase(MEASURING, frozenset(told), lambda _cluster, _seconds: dict(told), seconds=1.0)

    def steps(self, way: Way, stage: Stage, groups: Iterable[Sequence[str]], sizes: tuple[int, ...]) -> list[Step]:
        self.round += 1
        net = way.net(self.ground, stage)
        return [
            Step(
                self.round, stage, way.means, tuple(group),
                tuple(way.ranks(self.ground, stage, node) for node in group), sizes, way.launcher,
                net, self.ground.settings.expect,
            )
            for group in groups
        ]  # fmt: skip

    def sizes(self, way: Way, stage: Stage) -> tuple[int, ...]:
        """Return the sizes of a stage: those that --sizes names for a node by itself and for all, the usual else.

        Where small ones are named, the other stages go no further than those.
        """
        named, usual = self.ground.settings.sizes, way.usual(self.ground, stage)
        if named and stage in (Stage.INSIDE, Stage.ALL):
            usual = named
        elif named:
            usual = tuple(size for size in usual if size <= max(named)) or (max(named),)
        return way.fitting(self.ground, stage, usual)

    def led(self, way: Way, group: tuple[str, ...]) -> tuple[str, ...]:
        """Put a node in front that ranks can meet at: that it cannot is its own fault, and shows when it is alone."""
        if not way.meets:
            return group
        held = {node: self.ground.meeting(node) for node in group}
        able = (node for node, one in held.items() if one and not one.why and (not way.ids or self.roll.ids.get(node)))
        leader = next(able, group[0])
        return (leader, *(node for node in group if node != leader))

    def to_meet(self, way: Way, node: str, count: int, timeout: float) -> Answer:
        arguments: dict[str, JsonValue] = {
            "means": way.means.value, "count": count,
            "variables": dict(way.variables(self.ground, node, "")), **way.meeting(self.ground, node),
        }  # fmt: skip
        return replace(MEETING, arguments=arguments, timeout=timeout)

    # Time

    def left(self) -> float:
        return self.ends - self.clock()

    def longest(self, way: Way) -> float:
        """Return the seconds after which a step counts as hung: more where somebody gave a slow cluster more time."""
        return max(way.most, PATIENT * self.ground.settings.probe_time)

    def affordable(self, way: Way, stage: Stage) -> float:
        """Return the seconds that a step may take, with those kept back that all nodes together will need."""
        last = self.chosen.ways.get(Stage.ALL)
        settings = self.ground.settings
        kept = 0.0
        if last and stage is not Stage.ALL and way.means is not Means.DIAGNOSTICS and len(self.ground.nodes) >= _FEW:
            kept = min(KEPT * settings.probe_time, self.longest(last))
        return self.left() - PATIENCE - kept

    # Who is left

    def standing(self) -> tuple[str, ...]:
        """Return the nodes that are asked on, in the order of the listing."""
        there = {node.name for node in self.ground.cluster.connected}
        return tuple(node for node in self.ground.nodes if node in there and node not in self.out)

    def stand(self, group: Iterable[str]) -> bool:
        return set(group) <= set(self.standing())

    def turns(self, node: str) -> tuple[Turn, ...]:
        held = self.ground.cluster.known.get(node, {}).get(ProbeFacts)
        return held.turns if isinstance(held, ProbeFacts) else ()

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
