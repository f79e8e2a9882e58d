"""The whole run on one screen: nodes, connections, questions phase by phase, facts, verdicts, plan, probe, report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncheck.bad_nodes import bad_nodes, found_bad
from ncheck.blockers import blockers, for_the_probe, has_use, launcher_of_probe, measures
from ncheck.conclude import conclude
from ncheck.errors import RecordingError
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.learning import InterruptedLearningError, complete, learn, unheard
from ncheck.facts.login import IdentityFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.probe import ProbeFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.facts.run import JobFacts, PlugInFacts
from ncheck.facts.ssh_peers import SshFromHereFacts
from ncheck.fleet.engines import engines
from ncheck.fleet.fleet import ConnectedFleet
from ncheck.inventory.read import read_inventory
from ncheck.judge import facts_wanted
from ncheck.local_host import read_local_host
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent
from ncheck.model.finding import Severity
from ncheck.model.phase import Phase
from ncheck.model.plan import LaunchPlan
from ncheck.origin import Origin, read_origin
from ncheck.phases import asked_later, collection_phases, last_phases, wanted_facts, with_needs
from ncheck.plan import PLAN_FACTS
from ncheck.probe.steps import Assessment, cut_short, probe_steps
from ncheck.redact import redact_record
from ncheck.registry import Registry, load_checks
from ncheck.ssh_from_here import tried_from_here

if TYPE_CHECKING:
    from ncheck.fleet.engine import Engine
    from ncheck.fleet.fleet import Fleet
    from ncheck.fleet.recording import Recorder
    from ncheck.local_host import LocalHost
    from ncheck.model.check import Check
    from ncheck.model.cluster import FactType
    from ncheck.model.node import Node
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings

Clock = Callable[[], float]
_TOO_LATE = Reply(Status.UNANSWERED, "the node was still busy, or the time was over, when this was to be asked")
_INTERRUPTED = Reply(Status.UNANSWERED, "ncheck was interrupted before this was asked, or while it was")
_NOT_RECORDED = Reply(Status.UNANSWERED, "the recording lacks it: ncheck asked less then, or the run ended first")


def examine(
    settings: Settings,
    observer: Observer,
    clock: Clock = time.monotonic,
    listed: tuple[Node, ...] = (),
    engine_for: Callable[[Node], Engine] | None = None,
) -> Report:
    """Examine the nodes that the settings name, and report. Raises NcheckError for what the user can mend.

    `listed` are those nodes where the caller has read the inventory already. `engine_for` connects to them in place of
    the engines that the settings choose.
    """
    nodes = listed or read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    run = _Run.of(settings, load_checks(settings.select), observer, read_local_host(settings, os.environ))
    cluster = run.listed(nodes)
    phases, last = collection_phases(cluster, run.wanted, settings), last_phases(cluster, run.wanted, settings)
    recorder = _recorder(settings.record, nodes) if settings.record else None
    observer.started(nodes)
    kept = cluster.names if run.probes else asked_later((*phases, *last), cluster)
    engine_for = engine_for or engines(settings, nodes=nodes)
    probe_time = (settings.probe_time if run.probes else 0.0) + sum(phase.seconds or 0.0 for phase in last)
    with ConnectedFleet(nodes, settings, engine_for, observer, kept=kept, probe_time=probe_time) as fleet:
        return run.through(fleet, cluster, phases, clock, recorder)


def replay(directory: str, settings: Settings, observer: Observer, clock: Clock = time.monotonic) -> Report:
    """Judge a recording as if it had just been collected: no node, no SSH. Raises RecordingError."""
    from ncheck.fleet.recording import load_trusted

    return judge_again(load_trusted(directory), settings, observer, clock)


def judge_again(
    evidence: Sequence[Evidence], settings: Settings, observer: Observer, clock: Clock = time.monotonic
) -> Report:
    """Judge evidence that was collected before, by the same stages: the fleet is the recording."""
    from ncheck.fleet.recording import RecordedFleet, selected_by

    registry = load_checks()
    chosen = replace(settings, select=settings.select or selected_by(evidence, registry))
    fleet = RecordedFleet(evidence)
    run = _Run.of(chosen, registry, observer)
    everything = Phase("reading the recording", frozenset(), None)  # it was all asked before, so there is no question
    return run.through(fleet, run.listed(fleet.nodes), (everything,), clock)


def triage(settings: Settings, observer: Observer) -> tuple[Evidence, ...]:
    """Look at the job that the settings name, and return what the nodes answered. Raises NcheckError.

    The job is found first, on all nodes; then its ranks are watched, on the nodes that have some.
    """
    from ncheck.triage.live import facts_read

    nodes = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    cluster, wanted = Cluster(nodes, {}), with_needs(facts_read())
    phases = collection_phases(cluster, wanted, settings)
    answered = {node.name: Evidence(node.name, Login(reached=False)) for node in nodes}

    def kept(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
        for one in evidence:
            answered[one.node] = replace(one, replies={**answered[one.node].replies, **one.replies})
            yield one

    observer.started(nodes)
    engine_for = engines(settings, nodes=nodes)
    try:
        with ConnectedFleet(nodes, settings, engine_for, observer, kept=asked_later(phases, cluster)) as fleet:
            for phase in phases:
                cluster = learn(cluster, kept(_asked(fleet, phase, cluster)), wanted)
            learn(cluster, kept(fleet.rest("the run's deadline passed")), wanted)
    finally:
        observer.finished()
    return tuple(answered.values())


def _asked(fleet: Fleet, phase: Phase, cluster: Cluster) -> Iterator[Evidence]:
    """Ask a phase's questions, made from what is known by now."""
    seconds = fleet.begin(phase)
    return fleet.ask(phase, phase.questions(cluster, seconds) if phase.questions else {})


@dataclass(frozen=True)
class _Run:
    """What stays the same for the whole run."""

    settings: Settings
    registry: Registry
    checks: tuple[Check, ...]
    wanted: tuple[FactType, ...]
    observer: Observer
    local_host: LocalHost | None
    origin: Origin

    @classmethod
    def of(
        cls, settings: Settings, registry: Registry, observer: Observer, local_host: LocalHost | None = None
    ) -> _Run:
        chosen = registry.select(settings.select)
        checks = tuple(check for check in chosen if settings.select or has_use(check, settings))
        wanted = wanted_facts(checks, settings)
        return cls(settings, registry, checks, wanted, observer, local_host, read_origin(sys.argv))

    @property
    def probes(self) -> bool:
        return self.settings.probe != "none" and ProbeFacts in self.wanted

    def listed(self, nodes: tuple[Node, ...]) -> Cluster:
        """Return the cluster before anything was asked: the run's own facts are known of every node."""
        own = {
            PlugInFacts: PlugInFacts(self.registry.broken),
            JobFacts: JobFacts(self.settings.ifname),
            ExpectedFacts: self.settings.expected or Absent("nothing is expected: --expect"),
        }
        outside, ranks = Absent("ncheck does not run inside a job"), self.settings.ranks
        return Cluster(nodes, {node.name: {**own, RanksFacts: ranks.get(node.name, outside)} for node in nodes})

    def through(
        self,
        fleet: Fleet,
        cluster: Cluster,
        phases: Iterable[Phase],
        clock: Clock,
        recorder: Recorder | None = None,
    ) -> Report:
        """Ask phase by phase, measure under the plan, judge, and report: live, and the same from a recording."""
        began, interrupted = clock(), False
        try:
            first, *later = phases
            cluster = self.learned(cluster, _asked(fleet, first, cluster), recorder)
            if SshFromHereFacts in self.wanted and not fleet.recorded:
                left = self.settings.deadline - (clock() - began)
                cluster = self.learned(
                    cluster, tried_from_here(cluster, self.settings, self.local_host, left), recorder
                )
            for phase in later:
                cluster = self.learned(cluster, _asked(fleet, phase, cluster), recorder)
            if self.probes and not fleet.recorded:
                cluster = self.measured(fleet, cluster, recorder)
            for phase in () if fleet.recorded else last_phases(cluster, self.wanted, self.settings):
                cluster = self.learned(cluster, _asked(fleet, phase, cluster), recorder)
        except KeyboardInterrupt as stop:
            cluster, interrupted = stop.cluster if isinstance(stop, InterruptedLearningError) else cluster, True
        finally:
            if not fleet.recorded:
                self.observer.finished()
        why = "ncheck was interrupted" if interrupted else "the run's deadline passed"
        cluster = self.learned(cluster, fleet.rest(why), recorder)
        cluster = self.learned(cluster, unheard(cluster, "the run ended before this node was asked"), recorder)
        if interrupted and self.probes:
            cluster = self.learned(cluster, cut_short(cluster, why), recorder)
        missing = _NOT_RECORDED if fleet.recorded else _INTERRUPTED if interrupted else _TOO_LATE
        cluster = complete(cluster, self.wanted, missing, recorded=fleet.recorded)
        report = self.concluded(
            cluster, self.checks, seconds=clock() - began, interrupted=interrupted, recorded=fleet.recorded
        )
        plan = replace(report.plan, blockers=blockers(report, self.checks, self.settings))
        bad = () if interrupted else found_bad(report, self.checks, self.settings)
        report = replace(report, plan=plan, bad=bad, **vars(self.origin))
        self.observer.judged(report.findings)
        return report

    def learned(self, cluster: Cluster, evidence: Iterable[Evidence], recorder: Recorder | None) -> Cluster:
        return learn(cluster, self.saved(evidence, recorder) if recorder else evidence, self.wanted)

    def saved(self, evidence: Iterable[Evidence], recorder: Recorder) -> Iterator[Evidence]:
        """Record evidence as it passes. A full disk must not cost the report: it is noted, and the run goes on."""
        for one in evidence:
            try:
                recorder.save(replace(one, select=self.settings.select))
            except RecordingError as error:
                self.observer.not_recorded(one.node, str(error))
            yield one

    def measured(self, fleet: Fleet, cluster: Cluster, recorder: Recorder | None) -> Cluster:
        """Measure step by step; what a step measured decides the next one."""
        steps = probe_steps(cluster, self.assessed, self.settings)
        step = next(steps, None)
        while step:
            cluster = self.learned(cluster, _asked(fleet, step, cluster), recorder)
            try:
                step = steps.send(cluster)
            except StopIteration:
                break
        return cluster

    def assessed(self, cluster: Cluster) -> Assessment:
        """Judge what may block the plan by what is known so far.

        Only errors count, and nothing that was measured; which nodes --drop-bad leaves out is for all checks to say. A
        launch by MPI is of no concern to ranks that ncheck starts itself.
        """
        settings = self.settings
        busy = unheard(cluster, "the run's deadline passed, and the node was still busy")
        cluster = complete(learn(cluster, busy, self.wanted), self.wanted, _TOO_LATE)
        checks = tuple(
            check
            for check in self.checks
            if settings.drop_bad
            or (check.severity is Severity.ERROR and not measures(check) and for_the_probe(check, settings))
        )
        report = self.concluded(cluster, checks)
        found = blockers(report, checks, replace(settings, launcher=launcher_of_probe(settings)))
        return Assessment(report.plan, report.dropped, found)

    def concluded(
        self,
        cluster: Cluster,
        checks: tuple[Check, ...],
        *,
        seconds: float = 0.0,
        interrupted: bool = False,
        recorded: bool = False,
    ) -> Report:
        """Judge the cluster; with --drop-bad again without the bad nodes, until none of those that are left is bad.

        Where all are bad, the report stays one on the last that were left, and says so of them all.
        """
        dropped: dict[str, str] = {}
        left = cluster
        while True:
            report = redact_record(conclude(
                self.with_launcher(left), checks, self.settings, self.planned(left),
                seconds=seconds, interrupted=interrupted, recorded=recorded,
            ))  # fmt: skip
            bad = bad_nodes(report, checks, self.settings) if self.settings.drop_bad and not interrupted else {}
            lost = {node.name for node in report.nodes if not node.reached}
            bad = {name: bad[name] for name in bad if name in lost} or bad  # they may be why others are unknown
            dropped |= bad
            names = [name for name in cluster.names if name not in dropped]
            if not bad or not names:
                return replace(report, dropped={name: dropped[name] for name in cluster.names if name in dropped})
            left = cluster.subset(names)

    @property
    def plans(self) -> bool:
        return self.probes or not self.settings.select or set(PLAN_FACTS) <= set(facts_wanted(self.checks))

    def with_launcher(self, cluster: Cluster) -> Cluster:
        """Return the cluster with the launcher that will start the job: that of the plan, or of the bandwidth test."""
        launcher, mpis = self.settings.launcher, cluster.facts(MpiFacts).values()
        if self.probes and launcher_of_probe(self.settings) == "mpirun":
            launcher = "mpirun"
        elif launcher is None and self.plans:
            from ncheck.plan.plan import default_launcher

            launcher = default_launcher(cluster)
        tree = launcher in (None, "mpirun") and all(mpi.implementation == "Open MPI" for mpi in mpis)
        job = JobFacts(self.settings.ifname, launcher, tree, running=bool(self.settings.ranks))
        job = replace(job, local_shell=self.local_host.shell if self.local_host else "")
        return replace(cluster, known={name: {**facts, JobFacts: job} for name, facts in cluster.known.items()})

    def planned(self, cluster: Cluster) -> LaunchPlan:
        if not self.plans:
            return LaunchPlan(notes=("no plan: --select leaves out facts that a plan is made of",))
        from ncheck.plan.plan import propose

        as_root = any(held.user_id == 0 for held in cluster.facts(IdentityFacts).values())
        return propose(cluster, self.settings, user_is_root=as_root, local_host=self.local_host)


def _recorder(directory: str, nodes: tuple[Node, ...]) -> Recorder:
    from ncheck.fleet.recording import Recorder

    return Recorder(directory, [node.name for node in nodes])
