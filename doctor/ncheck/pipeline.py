"""The whole run on one screen: nodes, checks, evidence, facts, verdicts, plan, report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.blockers import bad_nodes, for_the_probe, launcher_of_probe, measures, objections
from ncheck.conclude import conclude
from ncheck.errors import RecordingError
from ncheck.facts.parsing import facts_of, joined, sources_for
from ncheck.facts.probe import ProbeFacts
from ncheck.facts.run import JobFacts, PlugInFacts
from ncheck.fleet.choose import transports
from ncheck.fleet.gather import gather
from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.inventory.read import read_inventory
from ncheck.judge import facts_wanted
from ncheck.local_host import Head, head_of
from ncheck.model.check import Check
from ncheck.model.cluster import Cluster, Facts, FactType, among
from ncheck.model.evidence import Cause, Evidence, Login, Reply, Status
from ncheck.model.finding import Severity
from ncheck.model.node import Node
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Measurement, Probe, Report
from ncheck.observer import Observer
from ncheck.phases import acts_for, brought, wanted_facts
from ncheck.plan import PLAN_FACTS
from ncheck.probe.steps import Prospect, cut_short, rounds
from ncheck.probe.why_none import ran_on, why_none
from ncheck.registry import Registry, load_checks
from ncheck.settings import Settings

if TYPE_CHECKING:
    from ncheck.fleet.recording import Recorder


Clock = Callable[[], float]


_TOO_LATE = Reply(Status.UNANSWERED, "the node was still busy, or the time was over, when this was to be asked")


_INTERRUPTED = Reply(Status.UNANSWERED, "ncheck was interrupted before this was asked, or while it was")


_NOT_RECORDED = Reply(Status.UNANSWERED, "the recording lacks it: ncheck asked less then, or the run ended first")


def examine(
    settings: Settings, observer: Observer, clock: Clock = time.monotonic, listed: tuple[Node, ...] = ()
) -> Report:
    """Examine the nodes that the settings name, and report. Raises NcheckError for what the user can mend.

    `listed` are those nodes where the caller has read the inventory already.
    """
    began = clock()
    nodes = listed or read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    registry = load_checks(settings.select)
    run = _Run(settings, registry, registry.select(settings.select), observer, head_of(settings, os.environ))
    recorder = _recorder(settings.record, nodes) if settings.record else None

    def keep(evidence: Evidence) -> None:
        run.take(evidence)
        _save(recorder, evidence, settings, observer)

    observer.started(nodes)
    interrupted = _gathered(nodes, run, keep)
    for evidence in run.unheard(nodes, "the run ended before this node was asked"):
        keep(evidence)
    if interrupted:
        for evidence in run.cut_short("ncheck was interrupted"):
            keep(evidence)
    run.close(_INTERRUPTED if interrupted else _TOO_LATE)
    return run.report(nodes, clock() - began, interrupted=interrupted)


def _recorder(directory: str, nodes: Sequence[Node]) -> Recorder:
    from ncheck.fleet.recording import Recorder

    return Recorder(directory, [node.name for node in nodes])


def _gathered(nodes: tuple[Node, ...], run: _Run, keep: Callable[[Evidence], None]) -> bool:
    """Keep all that comes; return whether ^C ended it: what is known by then is reported, and the exit code tells."""
    cluster = Cluster(nodes, run.facts, run.settings)
    acts = acts_for(cluster, run.wanted)
    more = rounds(cluster, lambda: run.prospect(nodes)) if run.probes else None
    try:
        for evidence in gather(nodes, acts, run.settings, transports(run.settings), run.observer, more=more):
            keep(evidence)
    except KeyboardInterrupt:
        return True
    finally:
        run.observer.finished()
    return False


def replay(directory: str, settings: Settings, observer: Observer, clock: Clock = time.monotonic) -> Report:
    """Judge a recording as if it had just been collected: no node, no SSH. Raises RecordingError."""
    from ncheck.fleet.recording import load

    began = clock()
    recorded = tuple(_distrusted(evidence, directory) for evidence in load(Path(directory)))
    registry = load_checks()
    run = _Run(settings, registry, registry.select(settings.select or _selected(recorded, registry)), observer)
    for evidence in recorded:
        run.take(evidence)
    run.close(_NOT_RECORDED)
    nodes = tuple(Node(evidence.node, slots=evidence.slots, places=evidence.places) for evidence in recorded)
    return run.report(nodes, clock() - began, interrupted=False)


def _selected(recorded: Sequence[Evidence], registry: Registry) -> tuple[str, ...]:
    """Return what the recorded run was for, as far as there are such checks still; nothing where it was for all.

    A run of some checks, such as `ncheck probe`, asked no more than these need: the others could tell nothing of it.
    """
    words = {word for evidence in recorded for word in evidence.select}
    known = tuple(sorted(word for word in words if registry.matching(word)))
    return known if all(evidence.select for evidence in recorded) else ()


def _distrusted(evidence: Evidence, directory: str) -> Evidence:
    """Return a recorded node without the lines to type that its file brought along: the checks have their own.

    Raises RecordingError for a name that no listing can have: it would come to stand in lines to type.
    """
    if not (is_name(evidence.node) or is_v6(evidence.node)):
        raise RecordingError(f"{directory}: a node called {quoted(evidence.node)} is in no listing")
    return replace(evidence, login=replace(evidence.login, fix=""))


class _Run:
    """What is known so far. Evidence is folded into facts as it arrives, so memory grows with what differs."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        checks: Sequence[Check],
        observer: Observer,
        head: Head | None = None,
    ) -> None:
        self.settings, self.registry, self.checks, self.observer = settings, registry, checks, observer
        self.head = head
        self.wanted = wanted_facts(checks, settings)
        self.probes = settings.probe != "none" and ProbeFacts in self.wanted
        self.plans = self.probes or not settings.select or set(PLAN_FACTS) <= set(facts_wanted(checks))
        self.evidence: dict[str, Evidence] = {}
        self.facts: dict[str, dict[FactType, object]] = {}

    def take(self, evidence: Evidence) -> None:
        """Parse what one node answered in one act, and keep nothing of it but its login and greeting."""
        first = evidence.node not in self.evidence
        known = self.facts.setdefault(evidence.node, self._runs_own())
        known.update(joined(known, facts_of(evidence, brought(evidence, self.wanted, first=first))))
        self.evidence[evidence.node] = replace(evidence, replies={})

    def unheard(self, nodes: Sequence[Node], why: str) -> list[Evidence]:
        """Return what stands for the nodes of which nothing came so far."""
        login = Login(reached=False, cause=Cause.DEADLINE, detail=why)
        silent = (node for node in nodes if node.name not in self.evidence)
        return [Evidence(node.name, login, places=node.places, slots=node.slots) for node in silent]

    def _runs_own(self) -> dict[FactType, object]:
        return {PlugInFacts: PlugInFacts(self.registry.broken), JobFacts: JobFacts(self.settings.ifname)}

    def cut_short(self, why: str) -> Iterator[Evidence]:
        """Yield what says of the reached nodes that the probe went no further."""
        there = [node for node, evidence in self.evidence.items() if evidence.login.reached and self.probes]
        for node, (source, reply) in cut_short({node: self.facts[node].get(ProbeFacts) for node in there}, why).items():
            yield replace(self.evidence[node], replies={source.key: reply})

    def close(self, why: Reply) -> None:
        """Say of each fact that never came why it did not. The node owes none of them."""
        for node, evidence in self.evidence.items():
            missing = [fact for fact in self.wanted if fact not in self.facts[node]]
            never = {source.key: why for source in sources_for(missing)}
            self.facts[node] = {**facts_of(replace(evidence, replies=never), missing), **self.facts[node]}

    def prospect(self, nodes: Sequence[Node]) -> Prospect:
        """Judge what touches the plan, by what is known so far: the plan to measure under, and what is against it.

        Only what can be an error counts, and nothing that was measured. Which nodes --drop-bad leaves out is for all
        checks to say. A line for MPI is of no concern to ranks that ncheck starts itself.
        """
        settings = self.settings
        run = copy(self)
        run.checks = [
            one
            for one in self.checks
            if settings.drop_bad
            or (one.severity is Severity.ERROR and not measures(one) and for_the_probe(one, settings))
        ]
        run.evidence, run.facts = dict(self.evidence), dict(self.facts)
        for evidence in self.unheard(nodes, "the run's deadline came, and the node was still busy"):
            run.take(evidence)
        run.close(_TOO_LATE)
        report = run.concluded(nodes, 0.0, interrupted=False)
        found = objections(report, run.checks, replace(settings, launcher=launcher_of_probe(settings)))
        return Prospect(report.plan, report.dropped, found)

    def report(self, nodes: Sequence[Node], seconds: float, *, interrupted: bool) -> Report:
        report = self.concluded(nodes, seconds, interrupted=interrupted)
        self.observer.judged(report.findings)
        return report

    def concluded(self, nodes: Sequence[Node], seconds: float, *, interrupted: bool) -> Report:
        """Judge all facts, without the bad nodes where that is wanted."""
        report = self._judged(nodes, self.facts, seconds, interrupted=interrupted)
        return self._without_bad(nodes, report) if self.settings.drop_bad and not interrupted else report

    def _without_bad(self, nodes: Sequence[Node], report: Report) -> Report:
        """Judge the nodes without the bad ones, until none of those that are left is; nothing is asked again.

        Where all are bad, the report stays one on the last that were left, and says so of them all.
        """
        dropped: dict[str, str] = {}
        while bad := bad_nodes(report, self.checks, self.settings):
            dropped = {**dropped, **bad}
            left = [node for node in nodes if node.name not in dropped]
            if not left:
                break
            facts = among(self.facts, [node.name for node in left])
            report = self._judged(left, facts, report.seconds, interrupted=False)
        return replace(report, dropped={node.name: dropped[node.name] for node in nodes if node.name in dropped})

    def _judged(
        self, nodes: Sequence[Node], facts: Mapping[str, Facts], seconds: float, *, interrupted: bool
    ) -> Report:
        ordered = {node.name: facts[node.name] for node in nodes}
        conclusion = conclude(self.checks, ordered, self.settings)
        return conclusion.report(
            evidence=[self.evidence[node.name] for node in nodes],
            plan=self._plan(nodes, ordered),
            measured=_measured(ordered),
            seconds=seconds,
            interrupted=interrupted,
        )

    def _plan(self, nodes: Sequence[Node], facts: Mapping[str, Facts]) -> LaunchPlan:
        if not self.plans:
            return LaunchPlan(notes=("no plan: --select leaves out facts that a plan is made of",))
        from ncheck.plan.plan import propose

        return propose(nodes, facts, self.settings, user_is_root=self._as_root(), head=self.head)

    def _as_root(self) -> bool:
        """Tell whether the job would run as root, as far as any node said."""
        return any(e.greeting is not None and e.greeting.user_id == 0 for e in self.evidence.values())


def _measured(facts: Mapping[str, Facts]) -> tuple[tuple[Measurement, ...], Probe]:
    if not ran_on(facts):
        return (), why_none(facts)
    from ncheck.probe.measurements import measured

    return measured(facts)


def _save(recorder: Recorder | None, evidence: Evidence, settings: Settings, observer: Observer) -> None:
    """Record a node. A full disk must not cost the report of what was collected: it is told, and the run goes on."""
    try:
        if recorder:
            recorder.save(replace(evidence, select=settings.select))
    except RecordingError as error:
        observer.stage(evidence.node, f"not recorded: {error}")
