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
from ncheck.facts.probe import MEETING, TASK, Method, NodeResult, ProbeFacts, Stage, Step
from ncheck.hostlist import fold
from ncheck.model.evidence import Evidence, JsonValue, Reply, Source, Status
from ncheck.model.phase import Answered, NotAsked, Phase
from ncheck.model.plan import LaunchPlan
from ncheck.probe.expected import expectation
from ncheck.probe.questions import Roll, StepTasks, skipped
from ncheck.probe.results import Collective, collectives
from ncheck.probe.schedule import most_rounds, pair_rounds, scaling_groups
from ncheck.topology.hardware import hardware_of

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import Answer
    from ncheck.model.phase import Questions
    from ncheck.model.plan import Blocker
    from ncheck.probe.choice import Chosen
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import Driver
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
    from ncheck.probe.methods.context import context_of

    found = assess(cluster)
    context = context_of(cluster, settings, found.plan, found.dropped)
    if found.dropped:
        cluster = yield _noted(cluster, NotAsked(TASK, "left out by --drop-bad"), found.dropped)
    chosen = choose(context, found.blockers)
    if isinstance(chosen, Refused):
        yield _noted(cluster, _refusal(settings, chosen.why, chosen.fix), context.nodes)
        return
    stages = Stages(replace(context, cluster=cluster), chosen, clock, clock() + settings.probe_time)
    yield from stages.search()
    if settings.drop_bad:
        cluster = stages.context.cluster
        now = assess(cluster)
        yield from stages.leave_out(context_of(cluster, settings, now.plan, {**found.dropped, **now.dropped}))
    yield from stages.groups()


def cut_short(cluster: Cluster, why: str) -> list[Evidence]:
    """Return evidence that notes, on each reached node, that nothing more was measured, and why.

    A node that was exempt is not noted.
    """
    from ncheck.probe.questions import skipped

    reached = {name: held.login for name, held in cluster.facts(LoginFacts).items() if held.login.reached}
    probed = {name: cluster.known[name].get(ProbeFacts) for name in reached}
    begun = {node: facts for node, facts in probed.items() if isinstance(facts, ProbeFacts) and facts.results}
    again = Reply(Status.FAILED, why, value=AGAIN)
    notes: dict[str, tuple[Source, Reply]] = {node: (TASK, again) for node, facts in probed.items() if facts is None}
    if begun:
        ran = [turn.step.round for facts in begun.values() for turn in facts.results]
        noted = [skip.step.round for facts in begun.values() for skip in facts.skipped]
        last = next(iter(begun.values())).results[-1].step
        stage = Stage.ALL if len(probed) > 1 else Stage.INSIDE
        step = replace(last, round=1 + max(ran + noted), stage=stage, group=tuple(begun), ranks=(1,) * len(begun))
        note = skipped(step, why)
        notes |= dict.fromkeys(begun, (note.source, note.reply))
    return [Evidence(name, reached[name], replies={source.key: reply}) for name, (source, reply) in notes.items()]


def _refusal(settings: Settings, why: str, fix: str) -> NotAsked | Answered:
    """Return why nothing is measured: a failure where somebody asked for it; otherwise there was nothing to measure."""
    wanted = settings.probe != "auto" or settings.probe_wanted
    return Answered(TASK, Reply(Status.FAILED, why, value=fix)) if wanted else NotAsked(TASK, why)


def _noted(cluster: Cluster, note: NotAsked | Answered, nodes: Collection[str]) -> Phase:
    """Return the step that asks nothing and notes the reason on these nodes."""
    names = [node.name for node in cluster.connected if node.name in nodes]
    return Phase(MEASURING, frozenset(names), lambda _cluster, _seconds: dict.fromkeys(names, (note,)), seconds=1.0)


PATIENCE = 4.0  # seconds beyond a step's own time: an agent that had to end its ranks answers late
KEPT = 0.4  # of the time, for all nodes together
_PARTNERS = 2  # with whom a node must have failed before it is asked no more
PATIENT = 0.25  # of the time, that a step may take before it counts as hung, where that is more than its driver says
_FEW = 2  # nodes: fewer have nobody to meet
_SPARE = 3  # ids more than a node can need


@dataclass
class Stages:
    """One probe. `ends` is by `clock`, in seconds, as is all time here."""

    context: ProbeContext
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
        if len(self.context.nodes) >= _FEW:
            yield from self.pairs()

    def see(self, cluster: Cluster) -> None:
        """Go on from what is known after a step."""
        self.context = replace(self.context, cluster=cluster)

    def leave_out(self, context: ProbeContext) -> Steps:
        """Go on on this context, and note it on those who are not on it any more. Where nobody is left, all go on."""
        gone = tuple(node for node in self.context.nodes if node not in context.nodes)
        if not gone or not context.nodes:
            return
        if driver := self.chosen.drivers.get(Stage.ALL):
            self.see(
                (yield self.skip(driver, Stage.ALL, [self.context.nodes], f"--drop-bad left out {fold(gone)}", gone))
            )
        self.context = context

    def groups(self) -> Steps:
        """Yield the acts of more than two nodes."""
        if len(self.context.nodes) >= _FEW:
            yield from self.scaling()
            yield from self.together()
        yield from self.diagnosed()

    # The stages

    def meet(self) -> Steps:
        """Ask every node for places where ranks can meet, before anything is measured."""
        drivers = [driver for driver in (*self.chosen.drivers.values(), *self.chosen.beside.values()) if driver.meets]
        if not drivers:
            return
        driver = drivers[0]
        seconds = min(driver.to_meet, self.left() / 3)
        count = most_rounds(len(self.context.nodes)) + len(self.context.nodes).bit_length() + _SPARE

        def ask(_cluster: Cluster, left: float) -> Questions:
            timeout = max(1.0, min(seconds, left - PATIENCE))
            return {node: (self.to_meet(driver, node, count, timeout),) for node in self.context.nodes}

        self.see((yield Phase("meeting", frozenset(self.context.nodes), ask, seconds=seconds + PATIENCE)))
        for node in self.context.nodes:
            held = self.context.meeting(node)
            self.roll.ids[node] = [*held.ids] if held else []

    def inside(self) -> Steps:
        """Measure each node by itself, all at once."""
        driver = self.chosen.drivers.get(Stage.INSIDE)
        alone = len(self.context.nodes) == 1
        if driver:
            nodes = [node for node in self.standing() if alone or driver.ranks(self.context, Stage.INSIDE, node) > 1]
            yield from self.run(driver, Stage.INSIDE, [(node,) for node in nodes], "measuring inside")

    def pairs(self) -> Steps:
        """Measure disjoint pairs at once, until nobody is suspected without a second partner."""
        driver = self.chosen.drivers.get(Stage.PAIR)
        known = self.context.cluster.known
        should = expectation({node: hardware_of(known.get(node, {})) for node in self.context.nodes})
        number = 0
        while driver:
            pairs = [pair for pair in pair_rounds(self.standing(), self.done(), should) if self.stand(pair)]
            if not pairs:
                break
            number += 1
            begun = self.round
            yield from self.run(driver, Stage.PAIR, pairs, f"measuring pairs, round {number}")
            if not any(one.step.round > begun for one in self.done()):
                break
            self.give_up()
            if rails := self.chosen.beside.get("rdma"):
                yield from self.rails(rails, pairs, number)
        if rails := self.chosen.beside.get("rdma"):
            yield from self.rails_again(rails)
        self.give_up(at_last=True)

    def rails(self, driver: Driver, pairs: Sequence[tuple[str, ...]], number: int) -> Steps:
        """Measure the rails of pairs, one after the other; of those who have proved theirs no more is wanted."""
        proved = {node for one in self.done() if one.step.stage is Stage.RAIL and one.whole for node in one.step.group}
        wanted = [pair for pair in pairs if self.stand(pair) and not proved.issuperset(pair)]
        lanes = {pair: driver.lanes(self.context, Stage.RAIL, pair) for pair in wanted}
        for lane in range(max(lanes.values(), default=0)):
            held = [pair for pair in wanted if lane < lanes[pair] and self.stand(pair)]
            yield from self.run(driver, Stage.RAIL, held, f"measuring rail {lane + 1}, round {number}", lane)

    def rails_again(self, driver: Driver) -> Steps:
        """Give the ends of a rail that failed or was slow a second partner, before one of them is blamed."""
        probed = {node: ProbeFacts(self.results(node)) for node in self.context.nodes}
        for lane, pairs in driver.again(self.context, probed).items():
            held = [pair for pair in pairs if self.stand(pair)]
            yield from self.run(driver, Stage.RAIL, held, f"measuring rail {lane + 1}, other partners", lane)

    def scaling(self) -> Steps:
        """Measure 2, 4, 8 ... nodes, until one of them fails."""
        driver = self.chosen.drivers.get(Stage.SCALING)
        for group in scaling_groups(self.standing()) if driver else ():
            if not self.stand(group):
                return
            begun = self.round
            if driver:
                yield from self.run(driver, Stage.SCALING, [group], f"measuring {len(group)} nodes")
            if not any(one.step.round > begun and one.whole for one in self.done()):
                return

    def together(self) -> Steps:
        """Measure all nodes that stand."""
        driver = self.chosen.drivers.get(Stage.ALL)
        group = self.standing()
        if driver and len(group) >= _FEW:
            yield from self.run(driver, Stage.ALL, [group], "measuring all")
        elif driver:
            gone = "; ".join(f"{node}: {why}" for node, why in self.out.items())
            self.see(
                (
                    yield self.skip(
                        driver, Stage.ALL, [self.context.nodes], f"fewer than two nodes are left to measure ({gone})"
                    )
                )
            )

    def diagnosed(self) -> Steps:
        """Let what diagnoses by itself have its turn; say of what could have run beside why it did not."""
        if driver := self.chosen.beside.get("diagnostics"):
            stage = next(iter(driver.stages))
            yield from self.run(driver, stage, [self.standing()], "running NCCL's diagnostics")

    # One act

    def run(self, driver: Driver, stage: Stage, groups: Iterable[Sequence[str]], told: str, lane: int = 0) -> Steps:
        """Yield the act in which these groups run at once, or the one that says why they do not."""
        groups = [self.led(driver, tuple(group)) for group in groups if group]
        sizes = self.sizes(driver, stage)
        if not groups:
            return
        if why := driver.lacks(self.context) or self.unsized(driver, sizes):
            self.see((yield self.skip(driver, stage, groups, why)))
            return
        seconds = min(self.longest(driver), self.affordable(driver, stage))
        if seconds < driver.least:
            self.see((yield self.skip(driver, stage, groups, "the time for the probe was over (--probe-time)")))
            return
        steps = self.steps(driver, stage, groups, sizes)
        tasks = StepTasks(self.context, self.roll, driver, steps, lane, self.chosen.note)
        nodes = frozenset(node for group in groups for node in group)

        def ask(_cluster: Cluster, left: float) -> Questions:
            return tasks.questions(min(seconds, left - PATIENCE))

        self.see((yield Phase(told, nodes, ask, seconds=seconds + PATIENCE)))
        self.learn(steps)

    def unsized(self, driver: Driver, sizes: tuple[int, ...]) -> str:
        """Say why there is no size to measure; "" where there is one, or where the means has none at all."""
        return "no size fits into the memory that is free" if driver.sizes and not sizes else ""

    def skip(
        self, driver: Driver, stage: Stage, groups: Sequence[Sequence[str]], why: str, on: Sequence[str] | None = None
    ) -> Phase:
        """Return the act that asks nothing, and notes of a step why it was not begun: on all its nodes, or on some."""
        steps = self.steps(driver, stage, groups, self.sizes(driver, stage))
        told = {node: (skipped(step, why),) for step in steps for node in step.group if on is None or node in on}
        return Phase(MEASURING, frozenset(told), lambda _cluster, _seconds: dict(told), seconds=1.0)

    def steps(
        self, driver: Driver, stage: Stage, groups: Iterable[Sequence[str]], sizes: tuple[int, ...]
    ) -> list[Step]:
        self.round += 1
        net = driver.net(self.context, stage)
        return [
            Step(
                self.round, stage, driver.method, tuple(group),
                tuple(driver.ranks(self.context, stage, node) for node in group), sizes, driver.launcher,
                net, self.context.settings.expect,
            )
            for group in groups
        ]  # fmt: skip

    def sizes(self, driver: Driver, stage: Stage) -> tuple[int, ...]:
        """Return the sizes of a stage: those that --sizes names for a node by itself and for all, the usual else.

        Where small ones are named, the other stages go no further than those.
        """
        named, usual = self.context.settings.sizes, driver.usual(self.context, stage)
        if named and stage in (Stage.INSIDE, Stage.ALL):
            usual = named
        elif named:
            usual = tuple(size for size in usual if size <= max(named)) or (max(named),)
        return driver.fitting(self.context, stage, usual)

    def led(self, driver: Driver, group: tuple[str, ...]) -> tuple[str, ...]:
        """Put a node in front that ranks can meet at: that it cannot is its own fault, and shows when it is alone."""
        if not driver.meets:
            return group
        held = {node: self.context.meeting(node) for node in group}
        able = (
            node for node, one in held.items() if one and not one.why and (not driver.ids or self.roll.ids.get(node))
        )
        leader = next(able, group[0])
        return (leader, *(node for node in group if node != leader))

    def to_meet(self, driver: Driver, node: str, count: int, timeout: float) -> Answer:
        arguments: dict[str, JsonValue] = {
            "means": driver.method.value, "count": count,
            "variables": dict(driver.variables(self.context, node, "")), **driver.meeting(self.context, node),
        }  # fmt: skip
        return replace(MEETING, arguments=arguments, timeout=timeout)

    # Time

    def left(self) -> float:
        return self.ends - self.clock()

    def longest(self, driver: Driver) -> float:
        """Return the seconds after which a step counts as hung: more where somebody gave a slow cluster more time."""
        return max(driver.most, PATIENT * self.context.settings.probe_time)

    def affordable(self, driver: Driver, stage: Stage) -> float:
        """Return the seconds that a step may take, with those kept back that all nodes together will need."""
        last = self.chosen.drivers.get(Stage.ALL)
        settings = self.context.settings
        kept = 0.0
        if (
            last
            and stage is not Stage.ALL
            and driver.method is not Method.DIAGNOSTICS
            and len(self.context.nodes) >= _FEW
        ):
            kept = min(KEPT * settings.probe_time, self.longest(last))
        return self.left() - PATIENCE - kept

    # Who is left

    def standing(self) -> tuple[str, ...]:
        """Return the nodes that are asked on, in the order of the listing."""
        there = {node.name for node in self.context.cluster.connected}
        return tuple(node for node in self.context.nodes if node in there and node not in self.out)

    def stand(self, group: Iterable[str]) -> bool:
        return set(group) <= set(self.standing())

    def results(self, node: str) -> tuple[NodeResult, ...]:
        held = self.context.cluster.known.get(node, {}).get(ProbeFacts)
        return held.results if isinstance(held, ProbeFacts) else ()

    def done(self) -> tuple[Collective, ...]:
        """Return all that was measured so far."""
        return collectives({node: ProbeFacts(self.results(node)) for node in self.context.nodes})

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
