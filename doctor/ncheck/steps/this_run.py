"""One run: its settings, the checks that were chosen and what they read; and what it concludes of a cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ncheck.facts.learning import complete, learn, unheard
from ncheck.facts.login import IdentityFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.facts.run import JobFacts, PlugInFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Reply, Status
from ncheck.model.fact import Absent, name_of
from ncheck.model.finding import Severity
from ncheck.model.plan import LaunchPlan
from ncheck.model.state import state_of
from ncheck.steps.blockers import OF_PLAN, blockers, for_the_probe, has_use, launcher_of_probe, measures
from ncheck.steps.conclude import conclude
from ncheck.steps.judge import judge
from ncheck.steps.phases import wanted_facts

if TYPE_CHECKING:
    from ncheck.model.check import Check, Listed
    from ncheck.model.cluster import FactType
    from ncheck.model.node import Node
    from ncheck.model.report import Report
    from ncheck.probe.steps import Assessment
    from ncheck.settings import Settings
    from ncheck.steps.judge import Judgement
    from ncheck.steps.registry import Registry
    from ncheck.this_machine.local_host import LocalHost
    from ncheck.this_machine.origin import Origin

TOO_LATE = Reply(Status.UNANSWERED, "the node was still busy, or the time was over, when this was to be asked")


@dataclass(frozen=True)
class Run:
    """What stays the same for the whole run."""

    settings: Settings
    registry: Registry
    chosen: tuple[Listed, ...]
    wanted: tuple[FactType, ...]
    local_host: LocalHost | None
    origin: Origin

    @classmethod
    def of(cls, settings: Settings, registry: Registry, origin: Origin, local_host: LocalHost | None = None) -> Run:
        """Choose the checks of this run, and import what they read."""
        chosen = registry.choose(settings.select, lambda check: has_use(check, settings))
        return cls(settings, registry, chosen, wanted_facts(registry.facts(chosen), settings), local_host, origin)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Its checks, imported at the first use."""
        return self.registry.imported(self.chosen)

    @property
    def probes(self) -> bool:
        return self.settings.probe != "none" and self.wants("ProbeFacts")

    def wants(self, fact: str) -> bool:
        """Tell whether the run reads a fact; by name, since a fact that is not read need not be imported."""
        return any(name_of(one) == fact for one in self.wanted)

    def listed(self, nodes: tuple[Node, ...]) -> Cluster:
        """Return the cluster before anything was asked: the run's own facts are known of every node."""
        own = {PlugInFacts: PlugInFacts(self.registry.broken), JobFacts: JobFacts(self.settings.ifname)}
        if self.wants("ExpectedFacts"):
            from ncheck.facts.expected import ExpectedFacts

            own[ExpectedFacts] = self.settings.run.expected or Absent("nothing is expected: --expect")
        outside, ranks = Absent("ncheck does not run inside a job"), self.settings.run.ranks
        return Cluster(nodes, {node.name: {**own, RanksFacts: ranks.get(node.name, outside)} for node in nodes})

    def assessed(self, cluster: Cluster) -> Assessment:
        """Judge what may block the plan by what is known so far.

        Only errors count, and nothing that was measured; which nodes --drop-bad leaves out is for all checks to say. A
        launch by MPI is of no concern to ranks that ncheck starts itself.
        """
        from ncheck.probe.steps import Assessment

        settings = self.settings
        busy = unheard(cluster, "the run's deadline passed, and the node was still busy")
        cluster = complete(learn(cluster, busy, self.wanted), self.wanted, TOO_LATE)
        checks = tuple(
            check
            for check in self.checks
            if settings.drop_bad
            or (
                check.severity is Severity.ERROR
                and not measures(check.listed)
                and for_the_probe(check.listed, settings)
            )
        )
        cluster = self.with_launcher(cluster)
        judgement = judge(checks, cluster, every=self.checks)
        report = self.concluded(cluster, checks, earlier=judgement)
        found = blockers(report, checks, replace(settings, launcher=launcher_of_probe(settings)))
        return Assessment(report.plan, report.dropped, found, judgement)

    def concluded(  # noqa: PLR0913  as for conclude
        self,
        cluster: Cluster,
        checks: tuple[Check, ...],
        *,
        earlier: Judgement | None = None,
        seconds: float = 0.0,
        interrupted: bool = False,
        recorded: bool = False,
    ) -> Report:
        """Judge the cluster; with --drop-bad again without the bad nodes, until none of those that are left is bad.

        Where all are bad, the report stays one on the last that were left, and says so of them all. `earlier`: what was
        judged before, of which all is taken that rests on the same facts.
        """
        dropped: dict[str, str] = {}
        left = cluster
        while True:
            known = self.with_launcher(left)
            report = conclude(
                known, checks, self.settings, self.planned(known),
                judgement=judge(checks, known, earlier=earlier, every=self.checks), origin=self.origin,
                seconds=seconds, interrupted=interrupted, recorded=recorded,
            )  # fmt: skip
            bad = {one.node: one.reason for one in report.bad} if self.settings.drop_bad else {}
            lost = {node.name for node in report.nodes if not node.reached}
            bad = {name: bad[name] for name in bad if name in lost} or bad  # they may be why others are unknown
            dropped |= bad
            names = [name for name in cluster.names if name not in dropped]
            if not bad or not names:
                without = replace(report, dropped={name: dropped[name] for name in cluster.names if name in dropped})
                return replace(without, state=state_of(without)) if dropped else without
            left = cluster.subset(names)

    @property
    def plans(self) -> bool:
        declared = set(map(name_of, self.registry.facts(self.chosen)))
        return self.probes or not self.settings.select or declared >= OF_PLAN

    def with_launcher(self, cluster: Cluster) -> Cluster:
        """Return the cluster with the launcher that will start the job: that of the plan, or of the bandwidth test."""
        launcher = self.settings.launcher
        if self.probes and launcher_of_probe(self.settings) == "mpirun":
            launcher = "mpirun"
        elif launcher is None and self.plans:
            from ncheck.plan.plan import default_launcher

            launcher = default_launcher(cluster)
        tree = launcher in (None, "mpirun") and not (self.wants("MpiFacts") and other_mpi(cluster))
        job = JobFacts(self.settings.ifname, launcher, tree, running=bool(self.settings.run.ranks))
        job = replace(job, local_shell=self.local_host.shell if self.local_host else "")
        if set(cluster.facts(JobFacts).values()) == {job}:
            return cluster
        return replace(cluster, known={name: {**facts, JobFacts: job} for name, facts in cluster.known.items()})

    def planned(self, cluster: Cluster) -> LaunchPlan:
        if not self.plans:
            option = "--failed-of" if self.settings.run.earlier else "--select"
            return LaunchPlan(notes=(f"{option} leaves out facts that a plan is made of",))
        from ncheck.plan.plan import propose

        as_root = any(held.user_id == 0 for held in cluster.facts(IdentityFacts).values())
        return propose(cluster, self.settings, user_is_root=as_root, local_host=self.local_host)


def other_mpi(cluster: Cluster) -> bool:
    """Tell whether a node has another MPI than Open MPI, whose daemons start others."""
    from ncheck.facts.mpi import MpiFacts

    return any(mpi.implementation != "Open MPI" for mpi in cluster.facts(MpiFacts).values())
