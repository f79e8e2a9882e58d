"""The steps of the probe: what is measured next is chosen from what was measured before.

All nodes together is what matters most, so time is kept for it. What cannot be afforded is not begun, and says so. A
node that failed by itself, fell silent or failed with two partners is asked no more; the rest go on.

The first operation (--op) has all stages; then each further one has a share of the time that is left: inside nodes, one
round of pairs, and more of them only where it shows a slow one, and all nodes together. What the user asked for comes
before what explains it: the search between groups has the rest of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from ncheck.facts.login import LoginFacts
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.op import Op
from ncheck.model.phase import Answered, NotAsked, Phase, Questions
from ncheck.model.plan import LaunchPlan
from ncheck.probe.boundary import LEAST_NODES
from ncheck.probe.expected import expectation
from ncheck.probe.facts import GIVEN, MEETING, TASK, TOPOLOGY, GroupFacts, ProbeFacts
from ncheck.probe.gpu_test import LIMIT, gpu_questions
from ncheck.probe.group_search import fell_short, search_groups
from ncheck.probe.links.hardware import NodeHardware, hardware_of
from ncheck.probe.methods.context import context_of
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.probe.questions import StepTasks, identifier, skipped
from ncheck.probe.results import Collective, collectives, group_tests
from ncheck.probe.schedule import most_rounds, pair_rounds, scaling_groups
from ncheck.probe.search import Expect, searched

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.plan import Blocker
    from ncheck.probe.choice import Chosen, Refused
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import Driver
    from ncheck.settings import Settings
    from ncheck.steps.judge import Judgement

PATIENCE = 4.0  # seconds beyond a step's own time: an agent that had to end its ranks answers late
KEPT = 0.4  # of the time, for all nodes together
_PARTNERS = 2  # with whom a node must have failed before it is asked no more
PATIENT = 0.25  # of the time, that a step may take before it counts as hung, where that is more than its driver says
_FEW = 2  # nodes: fewer cannot be measured together
_SPARE = 3  # ids more than a node can need
_BESIDE_PAIRS = 2  # ids for a further operation: inside the node, and all nodes together
_TO_ASK = 5.0  # seconds that scontrol has


@dataclass(frozen=True)
class Assessment:
    """What can be judged before measuring: the plan, the nodes that --drop-bad leaves out, and what blocks the plan."""

    plan: LaunchPlan
    dropped: Mapping[str, str]
    blockers: tuple[Blocker, ...]
    judgement: Judgement | None = None


@dataclass(frozen=True)
class Round:
    """Groups of nodes that one driver measures at the same time. `name` is shown while it runs; `lane` is the rail;
    `off` as Step has it.
    """

    driver: Driver
    stage: Stage
    groups: Sequence[tuple[str, ...]]
    name: str
    lane: int = 0
    off: str = ""


# Returns the next step; without one the progress, in which the part has added what comes next.
Part = Callable[["Progress", float], "Progress | ProbeStep"]


@dataclass(frozen=True, kw_only=True)
class ProbeStep(Phase):
    """One step of the probe: a phase, and what it leads on from.

    begun    the progress once the step has begun
    round    what it measures, or says why it does not; None for a step that measures nothing
    steps    what the nodes were asked to measure
    assess   the cluster must be assessed again after it
    """

    begun: Progress
    round: Round | None = None
    steps: tuple[Step, ...] = ()
    assess: bool = False

    def after(self, cluster: Cluster, assessment: Assessment | None = None) -> Progress:
        """Return the progress after this step, with what is known by now; `assessment` where the step wants one."""
        progress = self.begun.at(cluster)
        if assessment:
            return progress.leave_out(assessment)
        if not self.round:
            return progress
        done = progress.done()
        tests = group_tests(progress.probed()) if self.round.stage is Stage.BOUNDARY else done
        measured = [one for one in tests if one.step.round == progress.rounds]
        progress = progress.without_failed(self.steps, measured)
        if self.round.stage is Stage.PAIR and measured:
            return progress.after_pairs(self.round.groups, done)
        if self.round.stage is Stage.SCALING and not any(one.whole for one in measured):
            return replace(progress, waiting=())
        return progress


@dataclass(frozen=True)
class Progress:
    """How far the probe is. Together with what was measured so far and the time it decides the next step.

    ends     when the time for the probe is over
    waiting  the rounds that come next, and notes for nodes that are not measured
    parts    what is planned when these are over, in this order
    rounds   how many rounds there were, those that were skipped too
    out      nodes that are asked no more, and why
    used     how many of its NCCL identifiers were used up, by node
    op       the operation that is measured now
    """

    context: ProbeContext
    chosen: Chosen
    ends: float
    waiting: tuple[Round | Questions, ...] = ()
    parts: tuple[Part, ...] = ()
    rounds: int = 0
    out: Mapping[str, str] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    op: Op = Op.ALL_REDUCE

    @classmethod
    def of(cls, cluster: Cluster, assessment: Assessment, settings: Settings, now: float) -> Progress:
        """Return the beginning of a probe; of one that measures nothing, where it is refused."""
        from ncheck.probe.choice import Chosen, Refused, choose

        context = context_of(cluster, settings, assessment.plan, assessment.dropped)
        dropped = [node.name for node in cluster.connected if node.name in assessment.dropped]
        notes: list[Questions] = [dict.fromkeys(dropped, (NotAsked(TASK, "left out by --drop-bad"),))]
        chosen = choose(context, assessment.blockers)
        parts = _PARTS
        if isinstance(chosen, Refused):
            notes.append(dict.fromkeys(context.nodes, (_refusal(settings, chosen),)))
            chosen, parts = Chosen({}, {}), _ALONE
        return cls(
            context, chosen, now + settings.probe_time, tuple(filter(None, notes)), parts, op=settings.ops[0]
        )  # fmt: skip

    def at(self, cluster: Cluster) -> Progress:
        """Return it with what is known by now."""
        return replace(self, context=replace(self.context, cluster=cluster))

    # What was measured

    def remaining(self) -> tuple[str, ...]:
        """Return the nodes that are still asked, in the order of the listing."""
        connected = {node.name for node in self.context.cluster.connected}
        return tuple(node for node in self.context.nodes if node in connected and node not in self.out)

    def probed(self) -> dict[str, ProbeFacts]:
        """Return what was measured so far, by node."""
        known = self.context.cluster.facts(ProbeFacts)
        return {node: known.get(node, ProbeFacts(())) for node in self.context.nodes}

    @property
    def further(self) -> bool:
        """Whether this is not the first operation."""
        return self.op is not self.context.settings.ops[0]

    def pairs(self, done: Iterable[Collective]) -> tuple[Collective, ...]:
        """Return the pairs among these, of the operation that is measured now."""
        return tuple(one for one in done if one.step.stage is Stage.PAIR and one.step.op is self.op)

    def hardware(self) -> dict[str, NodeHardware]:
        """Return the links of each node."""
        known = self.context.cluster.known
        return {node: hardware_of(known.get(node, {})) for node in self.context.nodes}

    def done(self) -> tuple[Collective, ...]:
        """Return all steps that were measured so far."""
        return collectives(self.probed())

    def without_failed(self, steps: Iterable[Step], measured: Iterable[Collective]) -> Progress:
        """Return it without the nodes that have no result of these steps or failed by themselves."""
        by_step = {one.step: one for one in measured}
        out = dict(self.out)
        for step in steps:
            one = by_step.get(step)
            for node in step.group if one is None else one.silent:
                out.setdefault(node, f"no result from it in round {step.round}")
            if one and step.stage is Stage.INSIDE:
                out.update({node: failure.words for node, failure in one.failures.items()})
        return replace(self, out=out)

    def without_suspects(self, done: Iterable[Collective], partners: int = 1) -> Progress:
        """Return it without the nodes that failed with so many partners and succeeded with none."""
        pairs = self.pairs(done)
        succeeded = {node for one in pairs if one.whole for node in one.step.group}
        out = dict(self.out)
        for node in (node for node in self.remaining() if node not in succeeded):
            others = {other for one in pairs if node in one.step.group for other in one.step.group} - {node}
            if len(others) >= partners:
                out[node] = f"it failed with {fold(others)}"
        return replace(self, out=out)

    def after_pairs(self, pairs: Sequence[tuple[str, ...]], done: Sequence[Collective]) -> Progress:
        """Return it with the rails of these pairs, one after the other, and then the next round of pairs.

        Nodes whose rails were measured without a failure are not measured again.
        """
        progress = replace(self.without_suspects(done, _PARTNERS), parts=(_pairs, *self.parts))
        driver = self.chosen.beside.get("rdma")
        if not driver or self.further:
            return progress
        number = len({one.step.round for one in self.pairs(done)})
        proved = {node for one in done if one.step.stage is Stage.RAIL and one.whole for node in one.step.group}
        remaining = set(progress.remaining())
        wanted = [pair for pair in pairs if remaining.issuperset(pair) and not proved.issuperset(pair)]
        lanes = {pair: driver.lanes(self.context, Stage.RAIL, pair) for pair in wanted}
        return replace(progress, waiting=tuple(
            Round(
                driver, Stage.RAIL, [pair for pair in wanted if lane < lanes[pair]],
                f"measuring rail {lane + 1}, round {number}", lane,
            )
            for lane in range(max(lanes.values(), default=0))
        ))  # fmt: skip

    def leave_out(self, assessment: Assessment) -> Progress:
        """Return it without the nodes that are bad by now, and with a note for them; as it is where all are bad."""
        cluster, settings = self.context.cluster, self.context.settings
        dropped = {*cluster.names} - {*self.context.nodes} | {*assessment.dropped}
        context = context_of(cluster, settings, assessment.plan, dropped)
        gone = tuple(node for node in self.context.nodes if node not in context.nodes)
        if not gone or not context.nodes:
            return self
        progress = self
        if driver := self.chosen.drivers.get(Stage.ALL):
            progress = self.skipping(driver, Stage.ALL, f"--drop-bad left out {fold(gone)}", gone)
        return replace(progress, context=context)

    def skipping(self, driver: Driver, stage: Stage, why: str, nodes: Sequence[str]) -> Progress:
        """Return it with a note for these nodes: why a step of all nodes is not begun."""
        (step,) = self.steps(driver, stage, [self.context.nodes])
        return replace(self, rounds=step.round, waiting=(dict.fromkeys(nodes, (skipped(step, why),)),))

    # One step

    def asking_groups(self) -> ProbeStep:
        """Return the step in which one node is asked for the groups that Slurm knows, if --groups names none."""
        given, node = self.context.settings.run.groups, self.remaining()[0]
        groups: JsonValue = {"groups": {name: [*nodes] for name, nodes in given.items()}}
        question = Answered(GIVEN, Reply(Status.OK, value=groups)) if given else replace(TOPOLOGY, timeout=_TO_ASK)
        return ProbeStep(
            "asking for groups", frozenset({node}), lambda _cluster, _seconds: {node: (question,)},
            seconds=_TO_ASK + PATIENCE, begun=self,
        )  # fmt: skip

    def noted(self, notes: Questions, planned: Round | None = None) -> ProbeStep:
        """Return the step that asks nothing, and notes why. It has no name: nothing is shown."""
        return ProbeStep("", frozenset(notes), lambda _cluster, _seconds: notes, seconds=1.0, begun=self, round=planned)

    def measured(self, planned: Round, now: float) -> Progress | ProbeStep:
        """Return the step in which these groups are measured, or that notes why not. Groups that lost a node are left
        out; where none remains, there is no step.
        """
        driver, stage, remaining = planned.driver, planned.stage, set(self.remaining())
        groups = [self.led(driver, group) for group in planned.groups if group and remaining.issuperset(group)]
        if not groups:
            return self
        steps = self.steps(driver, stage, groups, planned.off)
        seconds = min(self.longest(driver), self.affordable(driver, stage, now))
        begun = replace(self, rounds=self.rounds + 1)
        if why := self.not_measured(driver, stage, seconds):
            return begun.noted({node: (skipped(step, why),) for step in steps for node in step.group}, planned)
        ids: dict[Step, str] = {}
        used = dict(self.used)
        for step in steps if driver.ids else ():
            leader = step.group[0]
            ids[step], count = identifier(self.context, step.group, self.unused(leader))
            used[leader] = used.get(leader, 0) + count
        tasks = StepTasks(self.context, driver, steps, ids, planned.lane, self.chosen.note)
        name = planned.name if steps[0].op is Op.ALL_REDUCE else f"{planned.name}: {steps[0].op.value}"
        return ProbeStep(
            name, frozenset(node for group in groups for node in group),
            lambda _cluster, left: tasks.questions(min(seconds, left - PATIENCE)), seconds=seconds + PATIENCE,
            begun=replace(begun, used=used), round=planned, steps=steps,
        )  # fmt: skip

    def not_measured(self, driver: Driver, stage: Stage, seconds: float) -> str:
        """Return why a round is skipped, "" if it is not. A driver without any sizes needs none."""
        if why := driver.lacks(self.context, self.op_of(driver)):
            return why
        if driver.sizes and not self.sizes(driver, stage):
            return "no size fits into the free memory"
        return "the time for the probe was over (--probe-time)" if seconds < driver.least else ""

    def steps(self, driver: Driver, stage: Stage, groups: Iterable[tuple[str, ...]], off: str = "") -> tuple[Step, ...]:
        """Return the steps of the next round."""
        sizes, net = self.sizes(driver, stage), driver.net(self.context, stage)
        return tuple(
            Step(
                self.rounds + 1, stage, driver.method, group,
                tuple(driver.ranks(self.context, stage, node) for node in group), sizes, driver.launcher,
                net, self.context.settings.expect, self.context.settings.repeats, self.op_of(driver), off,
            )
            for group in groups
        )  # fmt: skip

    def op_of(self, driver: Driver) -> Op:
        """Return the operation that its steps run: an all-reduce where it measures the network itself."""
        return self.op if driver.ops else Op.ALL_REDUCE

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
        meetings = {node: meeting for node in group if (meeting := self.context.meeting(node)) and not meeting.why}
        leader = next((node for node in meetings if not driver.ids or self.unused(node)), group[0])
        return (leader, *(node for node in group if node != leader))

    def unused(self, node: str) -> tuple[str, ...]:
        """Return the node's NCCL identifiers that were not used up; each is good for one step."""
        meeting = self.context.meeting(node)
        return meeting.ids[: len(meeting.ids) - self.used.get(node, 0)] if meeting else ()

    # Time

    def longest(self, driver: Driver) -> float:
        """Return the seconds after which a step counts as hung: more where somebody gave a slow cluster more time."""
        return max(driver.most, PATIENT * self.context.settings.probe_time)

    def affordable(self, driver: Driver, stage: Stage, now: float) -> float:
        """Return the seconds that a step may take, with those kept back that all nodes together will need."""
        last = self.chosen.drivers.get(Stage.ALL)
        left, whole, kept = self.ends - now, self.context.settings.probe_time, 0.0
        if self.further:
            ops = self.context.settings.ops
            left = whole = left / (len(ops) - ops.index(self.op))
        diagnoses = driver.method is Method.DIAGNOSTICS
        before = stage not in (Stage.ALL, Stage.NICS, Stage.BOUNDARY) and not diagnoses
        if last and before and len(self.context.nodes) >= _FEW:
            kept = min(KEPT * whole, self.longest(last))
        return left - PATIENCE - kept


def next_step(progress: Progress, cluster: Cluster, now: float) -> ProbeStep | None:
    """Return the step that comes next, None at the end. `now` is by the clock that `progress` began with, in seconds.

    With --drop-bad one step asks for another assessment, when all pairs were measured: nodes that are bad by what the
    pairs measured have no part in larger groups.
    """
    found: Progress | ProbeStep = progress.at(cluster)
    while isinstance(found, Progress):
        if found.waiting:
            first, found = found.waiting[0], replace(found, waiting=found.waiting[1:])
            found = found.measured(first, now) if isinstance(first, Round) else found.noted(first)
        elif found.parts:
            found = found.parts[0](replace(found, parts=found.parts[1:]), now)
        else:
            return None
    return found


# The parts of a probe, in their order


def _test_gpus(progress: Progress, now: float) -> Progress | ProbeStep:
    """Test every GPU alone, all at once."""
    context, settings = progress.context, progress.context.settings
    if settings.gpu_test == "none":
        return progress
    seconds = min(LIMIT[settings.gpu_test], progress.ends - now - PATIENCE)

    def ask(cluster: Cluster, left: float) -> Questions:
        return gpu_questions(cluster, context.nodes, settings, max(1.0, min(seconds, left - PATIENCE)))

    return ProbeStep("testing the GPUs", frozenset(context.nodes), ask, seconds=seconds + PATIENCE, begun=progress)


def _meet(progress: Progress, now: float) -> Progress | ProbeStep:
    """Ask every node for places where ranks can meet, before anything is measured."""
    chosen, context = progress.chosen, progress.context
    driver = next((driver for driver in (*chosen.drivers.values(), *chosen.beside.values()) if driver.meets), None)
    if not driver:
        return progress
    seconds = min(driver.to_meet, (progress.ends - now) * (1.0 - KEPT) - PATIENCE)
    rounds, further = most_rounds(len(context.nodes)), len(context.settings.ops) - 1
    count = (
        rounds
        + len(context.nodes).bit_length()
        + _SPARE
        + ("nics" in chosen.beside)
        + further * (rounds + _BESIDE_PAIRS)
    )

    arguments: dict[str, dict[str, JsonValue]] = {
        node: {
            "method": driver.method.value, "count": count, "variables": dict(driver.variables(context, node, "")),
            **driver.meeting(context, node),
        }
        for node in context.nodes
    }  # fmt: skip

    def ask(_cluster: Cluster, left: float) -> Questions:
        timeout = max(1.0, min(seconds, left - PATIENCE))
        return {node: (replace(MEETING, arguments=own, timeout=timeout),) for node, own in arguments.items()}

    return ProbeStep("meeting", frozenset(context.nodes), ask, seconds=seconds + PATIENCE, begun=progress)


def _without_late(progress: Progress, _now: float) -> Progress:
    """Measure nothing with nodes whose time to meet was over: a limit of time is no fault of theirs."""
    context, driver = progress.context, progress.chosen.drivers.get(Stage.ALL)
    late = {node: one.why for node in context.nodes if (one := context.meeting(node)) and one.late}
    if not late or not driver:
        return progress
    progress = replace(progress, out={**progress.out, **late})
    if len(progress.remaining()) < _FEW:
        return progress  # nothing is measured of all, and that says it
    whys = {why: [node for node in late if late[node] == why] for why in late.values()}
    text = "; ".join(f"{why} on {fold(nodes)}" for why, nodes in whys.items())
    return progress.skipping(driver, Stage.ALL, text, tuple(late))


def _inside(progress: Progress, _now: float) -> Progress:
    """Measure each node by itself, all at once."""
    driver, context = progress.chosen.drivers.get(Stage.INSIDE), progress.context
    if not driver:
        return progress
    alone = len(context.nodes) == 1
    nodes = [node for node in progress.remaining() if alone or driver.ranks(context, Stage.INSIDE, node) > 1]
    return replace(progress, waiting=(Round(driver, Stage.INSIDE, [(node,) for node in nodes], "measuring inside"),))


def _by_nics(progress: Progress, _now: float) -> Progress:
    """Measure each node by itself again, over its NICs alone, and then each of its HCA ports to itself."""
    context, remaining, waiting = progress.context, progress.remaining(), list[Round]()
    if driver := progress.chosen.beside.get("nics"):
        groups = [(node,) for node in remaining if driver.ranks(context, Stage.NICS, node) > 1]
        waiting.append(Round(driver, Stage.NICS, groups, "measuring the NICs"))
    if driver := progress.chosen.beside.get("loopback"):
        lanes = {(node,): driver.lanes(context, Stage.NICS, (node,)) for node in remaining}
        waiting += [
            Round(driver, Stage.NICS, [group for group in lanes if lane < lanes[group]],
                  f"measuring HCA port {lane + 1} of each node", lane)
            for lane in range(max(lanes.values(), default=0))
        ]  # fmt: skip
    return replace(progress, waiting=tuple(waiting))


def _pairs(progress: Progress, _now: float) -> Progress:
    """Measure disjoint pairs at once, until there is nothing more to find: ProbeStep.after plans the next round.

    Of a further operation every node has a second partner only where the first round shows a pair that is slow.
    """
    driver = progress.chosen.drivers.get(Stage.PAIR)
    if not driver:
        return progress
    done, expected = progress.pairs(progress.done()), expectation(progress.hardware())
    number = len({one.step.round for one in done}) + 1
    if progress.further and number > 1 and not _suspicious(done, expected):
        return progress
    pairs = pair_rounds(progress.remaining(), done, expected)
    return replace(progress, waiting=(Round(driver, Stage.PAIR, pairs, f"measuring pairs, round {number}"),))


def _suspicious(pairs: Sequence[Collective], expected: Expect) -> bool:
    """Return whether some of these pairs failed, or were slow or nearly so."""
    return not all(one.whole for one in pairs) or not all(one.fast for one in searched(pairs, expected).meetings)


def _rails_again(progress: Progress, _now: float) -> Progress:
    """Measure both ends of a rail that failed or was slow with another partner, before one of them is blamed."""
    driver = progress.chosen.beside.get("rdma")
    if not driver:
        return progress
    return replace(progress, waiting=tuple(
        Round(driver, Stage.RAIL, pairs, f"measuring rail {lane + 1}, other partners", lane)
        for lane, pairs in driver.again(progress.context, progress.probed()).items()
    ))  # fmt: skip


def _end_search(progress: Progress, _now: float) -> Progress | ProbeStep:
    """Measure no larger group with a node that failed with its partner and succeeded with none.

    With --drop-bad, ask for an assessment by what was measured so far: a step in which no node is asked anything.
    """
    progress = progress.without_suspects(progress.done())
    return replace(progress.noted({}), assess=True) if progress.context.settings.drop_bad else progress


def _scaling(progress: Progress, _now: float) -> Progress:
    """Measure 2, 4, 8 ... nodes, until one of them fails."""
    driver = progress.chosen.drivers.get(Stage.SCALING)
    if not driver:
        return progress
    return replace(progress, waiting=tuple(
        Round(driver, Stage.SCALING, [group], f"measuring {len(group)} nodes")
        for group in scaling_groups(progress.remaining())
    ))  # fmt: skip


def _together(progress: Progress, _now: float) -> Progress:
    """Measure all nodes that remain."""
    driver, nodes = progress.chosen.drivers.get(Stage.ALL), progress.context.nodes
    if not driver or len(nodes) < _FEW:
        return progress
    group = progress.remaining()
    if len(group) >= _FEW:
        return replace(progress, waiting=(Round(driver, Stage.ALL, [group], "measuring all"),))
    whys = {why: [node for node in progress.out if progress.out[node] == why] for why in progress.out.values()}
    gone = "; ".join(f"{fold(nodes)}: {why}" for why, nodes in whys.items())
    return progress.skipping(driver, Stage.ALL, f"fewer than two nodes are left to measure ({gone})", nodes)


def _between_groups(progress: Progress, _now: float) -> Progress | ProbeStep:
    """Where nodes are slow together and pairs do not show why, ask for groups of nodes, and search between them.

    Slurm may name them, so that is asked wherever named groups would be searched.
    """
    ran, expect = progress.done(), expectation(progress.hardware())
    if len(progress.remaining()) < LEAST_NODES or not fell_short(ran, searched(ran, expect), expect, named=True):
        return progress
    return replace(progress, parts=(_tests_of_groups, *progress.parts)).asking_groups()


def _tests_of_groups(progress: Progress, _now: float) -> Progress:
    """Measure what the search between groups wants, one round after the other, to its end."""
    driver = progress.chosen.drivers.get(Stage.SCALING) or progress.chosen.drivers.get(Stage.PAIR)
    probed, remaining = progress.probed(), set(progress.remaining())
    named = [facts[GroupFacts] for facts in progress.context.cluster.known.values() if GroupFacts in facts]
    search = search_groups(probed, progress.hardware(), [one for one in named if isinstance(one, GroupFacts)])
    wanted = [nodes for nodes in search.wanted if remaining.issuperset(nodes)]
    if not driver or not wanted:
        return progress
    number = len({one.step.round for one in group_tests(probed)}) + 1
    searching = Round(driver, Stage.BOUNDARY, wanted, f"searching between groups, round {number}", off=search.off)
    return replace(progress, waiting=(searching,), parts=(_tests_of_groups, *progress.parts))


def _diagnose(progress: Progress, _now: float) -> Progress:
    """Let NCCL diagnose the network by itself, where it can."""
    driver = progress.chosen.beside.get("diagnostics")
    if not driver:
        return progress
    stage, group = next(iter(driver.stages)), progress.remaining()
    return replace(progress, waiting=(Round(driver, stage, [group], "running NCCL's diagnostics"),))


def _refusal(settings: Settings, refused: Refused) -> NotAsked:
    """Return why nothing is measured: a failure where somebody asked for it; otherwise there was nothing to measure."""
    wanted = settings.probe != "auto" or settings.run.probe_wanted
    return NotAsked(TASK, refused.why, failed=wanted, remedy=refused.remedy if wanted else "")


def _further_ops(progress: Progress, _now: float) -> Progress:
    """Measure the further operations, one after the other, each with the nodes that the first one left; go on with
    these and the first one.
    """
    first, *further = progress.context.settings.ops
    parts: list[Part] = []
    for op in further:
        parts += (partial(_next_op, op, progress.out), *_OF_FURTHER)
    return replace(progress, parts=(*parts, partial(_next_op, first, progress.out), *progress.parts))


def _next_op(op: Op, out: Mapping[str, str], progress: Progress, _now: float) -> Progress:
    return replace(progress, op=op, out=out)


_ALONE: tuple[Part, ...] = (_test_gpus,)
_OF_FURTHER: tuple[Part, ...] = (_inside, _pairs, _together)
_PARTS: tuple[Part, ...] = (
    *_ALONE,
    _meet,
    _without_late,
    _inside,
    _pairs,
    _rails_again,
    _end_search,
    _scaling,
    _together,
    _further_ops,
    _by_nics,
    _between_groups,
    _diagnose,
)


def cut_short(cluster: Cluster, why: str) -> list[Evidence]:
    """Return evidence that notes, on each reached node, that nothing more was measured, and why.

    A node that was exempt is not noted.
    """
    logins = {name: facts.login for name, facts in cluster.facts(LoginFacts).items() if facts.login.reached}
    probed = {name: cluster.known[name].get(ProbeFacts) for name in logins}
    begun = {node: facts for node, facts in probed.items() if isinstance(facts, ProbeFacts) and facts.results}
    again = NotAsked(TASK, why, failed=True, remedy="probe")
    notes = {node: again for node, facts in probed.items() if facts is None}
    if begun:
        last = next(iter(begun.values())).results[-1].step
        ran = [result.step.round for facts in begun.values() for result in facts.results]
        number = max([*ran, *(skip.step.round for facts in begun.values() for skip in facts.skipped)])
        stage = Stage.ALL if len(probed) > 1 else Stage.INSIDE
        step = replace(last, round=number + 1, stage=stage, group=tuple(begun), ranks=(1,) * len(begun))
        notes |= dict.fromkeys(begun, skipped(step, why))
    return [Evidence(name, logins[name], notes={one.source.key: one.note}) for name, one in notes.items()]
