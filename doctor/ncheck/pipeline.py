"""The whole run on one screen: nodes, connections, questions phase by phase, facts, verdicts, plan, probe, report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.asking import Asking
from ncheck.errors import RecordingError, SettingsError
from ncheck.facts.definition import MEASURING, ON_THIS_MACHINE
from ncheck.facts.learning import complete, learn, unheard
from ncheck.fleet.engines import engines
from ncheck.fleet.fleet import Fleet
from ncheck.inventory.read import read_inventory
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import INTERRUPTED, Evidence, Reply, Status
from ncheck.steps.blockers import has_use
from ncheck.steps.phases import asked_later, collection_phases, last_phases, with_needs
from ncheck.steps.registry import load_checks, selected_by
from ncheck.steps.this_run import TOO_LATE, Run
from ncheck.text import printable
from ncheck.this_machine.local_host import read_local_host
from ncheck.this_machine.origin import read_origin, time_of, user_name
from ncheck.timeline import JUDGED, SLURM, START, Stopwatch

if TYPE_CHECKING:
    from ncheck.fleet.engine import Engine
    from ncheck.model.check import Listed
    from ncheck.model.cluster import FactType
    from ncheck.model.node import Node
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings
    from ncheck.this_machine.local_host import LocalHost
    from ncheck.this_machine.slurm_from_here import Slurm
    from ncheck.this_machine.ssh_from_here import SshFromHere

Clock = Callable[[], float]
Passing = Callable[[Iterable[Evidence]], Iterable[Evidence]]  # hands evidence on as it comes
_INTERRUPTED = Reply(Status.UNANSWERED, f"{INTERRUPTED} before this was asked, or while it was")
_NOT_RECORDED = Reply(Status.UNANSWERED, "the recording lacks it: ncheck asked less then, or the run ended first")


def examine(
    settings: Settings,
    observer: Observer,
    watch: Stopwatch | None = None,
    listed: tuple[Node, ...] = (),
    engine_for: Callable[[Node], Engine] | None = None,
) -> Report:
    """Examine the nodes that the settings name, and report. Raises NcheckError for what the user can mend.

    `listed` are those nodes where the caller has read the inventory already. `engine_for` connects to them in place of
    the engines that the settings choose. `watch` may have begun before.
    """
    watch, interrupted, assessment = watch or Stopwatch(), False, None
    nodes, settings = _listed(settings, listed)
    registry, origin, local_host = (
        load_checks(settings.run.own_checks),
        read_origin(sys.argv),
        read_local_host(settings, os.environ),
    )
    chosen = registry.choose(settings.select, lambda check: has_use(check, settings))
    recorded = _recorded(settings, nodes, observer, time_of(origin)) if settings.record else iter

    def passing(evidence: Iterable[Evidence], stage: str) -> Iterator[Evidence]:
        _ = run.checks  # imported while the nodes are at work
        yield from recorded(watch.seen(evidence))
        watch.lap(stage)

    observer.started(nodes)
    with (
        Fleet(nodes, settings, engine_for := engine_for or engines(settings, nodes=nodes), observer) as fleet,
        ExitStack() as beside,
    ):
        beside.callback(observer.finished)
        watch.dial()
        fleet.dial()
        ssh = beside.enter_context(_ssh_from_here(chosen, nodes, settings, local_host, engine_for))
        run = Run.of(settings, registry, origin, local_host)  # while the logins go on
        known = Asking(fleet, cluster := run.listed(nodes), run.wanted, passing)
        slurm = beside.enter_context(_slurm(run, nodes))
        phases, last = collection_phases(cluster, run.wanted, settings), last_phases(cluster, run.wanted, settings)
        fleet.keep(
            cluster.names if run.probes else asked_later((*phases, *last), cluster),
            (settings.probe_time if run.probes else 0.0) + sum(phase.seconds or 0.0 for phase in last),
        )
        watch.lap(START)
        try:
            for number, phase in enumerate(phases):
                known = known.ask(phase)
                if number == 0 and ssh:
                    known = known.learn(ssh.evidence(known.cluster, settings.deadline - watch.seconds), ON_THIS_MACHINE)
            if slurm:
                known = known.learn(slurm.evidence(known.cluster), SLURM)
            if run.probes:
                from ncheck.probe.steps import Progress, next_step

                assessment = run.assessed(known.cluster)
                watch.lap(JUDGED)
                progress = Progress.of(known.cluster, assessment, settings, time.monotonic())
                while step := next_step(progress, known.cluster, time.monotonic()):
                    known = known.ask(step, MEASURING)
                    progress = step.after(known.cluster, run.assessed(known.cluster) if step.assess else None)
            for phase in last:
                known = known.ask(phase)
        except KeyboardInterrupt as stop:
            known, interrupted = known.interrupted(stop), True
        why = INTERRUPTED if interrupted else "the run's deadline passed"
        known = known.learn(fleet.rest(why), JUDGED)
    known = known.learn(unheard(known.cluster, "the run ended before this node was asked"), JUDGED)
    if interrupted and run.probes:
        from ncheck.probe.steps import cut_short

        known = known.learn(cut_short(known.cluster, why), JUDGED)
    cluster = complete(known.cluster, run.wanted, _INTERRUPTED if interrupted else TOO_LATE)
    report = run.concluded(
        cluster, run.checks, earlier=assessment.judgement if assessment else None, interrupted=interrupted
    )
    watch.lap(JUDGED)
    report = replace(
        report, seconds=round(watch.seconds, 3), timeline=watch.timeline, level=settings.level,
        beside_level=settings.beside_level,
    )  # fmt: skip
    observer.judged(report.findings)
    return _remembered(report, run, cluster, "check")


def _listed(settings: Settings, listed: tuple[Node, ...]) -> tuple[tuple[Node, ...], Settings]:
    """Return the nodes of the run, and the settings with their groups. Raises InventoryError or SettingsError."""
    nodes = listed or read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    if settings.groups is None:
        return nodes, settings
    from ncheck.inventory.groups import given_groups

    groups = given_groups(settings.groups, {node.name for node in nodes})
    return nodes, replace(settings, run=replace(settings.run, groups=groups))


def replay(directory: str, settings: Settings, observer: Observer, clock: Clock = time.monotonic) -> Report:
    """Judge a recording, or that of a bundle, as if it had just been collected. Raises RecordingError."""
    from ncheck.fleet.recording import Recording

    if os.path.isfile(directory):  # noqa: PTH113  pathlib costs more to import than all else here
        from ncheck.fleet.archive import is_archive, load_bundled

        if is_archive(directory):
            return judge_again(load_bundled(directory), settings, observer, clock)
    recording = Recording(directory)
    return judge_again(recording.evidence(), settings, observer, clock, heads=recording.heads)


def judge_again(
    evidence: Iterable[Evidence],
    settings: Settings,
    observer: Observer,
    clock: Clock = time.monotonic,
    *,
    heads: Sequence[Evidence] = (),
) -> Report:
    """Judge evidence that was collected before, as a run would. `heads` are its nodes, where it is read only once."""
    return _judged_again(evidence, settings, observer, clock, heads)[0]


def known_again(directory: str, settings: Settings) -> tuple[Report, Cluster]:
    """Judge a recording, and return what is known of its nodes too. Raises RecordingError."""
    from ncheck.fleet.recording import Recording
    from ncheck.observer import Silent

    recording = Recording(directory)
    return _judged_again(recording.evidence(), settings, Silent(), time.monotonic, recording.heads)


def look_again(directory: str, facts: Collection[FactType]) -> Cluster:
    """Read these facts from a recording, or from that of a bundle. Raises RecordingError."""
    from ncheck.fleet.archive import is_archive, load_bundled
    from ncheck.fleet.recording import Recording, nodes_of

    evidence: Iterable[Evidence]
    if os.path.isfile(directory) and is_archive(directory):  # noqa: PTH113  as in replay
        evidence = heads = load_bundled(directory)
    else:
        recording = Recording(directory)
        evidence, heads = recording.evidence(), recording.heads
    cluster = learn(Cluster(nodes_of(heads), {}), evidence, facts)
    return complete(cluster, facts, _NOT_RECORDED, recorded=True)


def _judged_again(
    evidence: Iterable[Evidence], settings: Settings, observer: Observer, clock: Clock, heads: Sequence[Evidence]
) -> tuple[Report, Cluster]:
    from ncheck.fleet.recording import level_of, nodes_of

    began, registry = clock(), load_checks(settings.run.own_checks)
    if not heads:
        evidence = heads = tuple(evidence)
    settings = replace(settings, select=settings.select or selected_by(heads, registry))
    run = Run.of(settings, registry, read_origin(sys.argv))
    cluster = learn(run.listed(nodes_of(heads)), evidence, run.wanted)
    cluster = complete(cluster, run.wanted, _NOT_RECORDED, recorded=True)
    report = run.concluded(cluster, run.checks, seconds=clock() - began, recorded=True)
    level, *beside = level_of(heads)
    report = replace(report, level=level, beside_level=tuple(beside))
    observer.judged(report.findings)
    began_at = min((one.began or 0.0 for one in heads), default=0.0)
    return _remembered(report, run, cluster, "replay", began_at), cluster


def _ssh_from_here(
    chosen: Iterable[Listed],
    nodes: Sequence[Node],
    settings: Settings,
    local_host: LocalHost | None,
    engine_for: Callable[[Node], Engine],
) -> AbstractContextManager[SshFromHere | None]:
    """Try the ssh program of this machine, beside the first phase, if a check is about it."""
    if not any("SshFromHereFacts" in check.facts for check in chosen):
        return nullcontext()
    from ncheck.this_machine.ssh_from_here import SshFromHere

    return SshFromHere(nodes, settings, local_host, engine_for)


def _slurm(run: Run, nodes: Sequence[Node]) -> AbstractContextManager[Slurm | None]:
    """Ask Slurm for its reservations, beside the phases, if a check is about them."""
    if not run.wants("ReservationFacts"):
        return nullcontext()
    from ncheck.this_machine.slurm_from_here import Slurm

    return Slurm(nodes, run.settings)


def _remembered(report: Report, run: Run, cluster: Cluster, kind: str, recorded: float | None = None) -> Report:
    """Add the run to the history that is named. `recorded`: when a recorded run began, 0 if it does not say."""
    settings = run.settings
    if settings.run.rehearsal:
        return report
    if settings.history is None and settings.job_ended is not None:
        return replace(report, news=("the job was not noted: --job-ended needs --history FILE",))
    if settings.history is None:
        unposted = ("nothing was posted: NCHECK_NOTIFY compares with the history (--history FILE)",)
        return replace(report, news=unposted) if settings.notify else report
    from ncheck.history.remember import remembered

    if recorded == 0:
        return replace(report, news=("not in the history: the recording does not say when it was made",))
    judged = report
    if report.dropped:  # the history is about all nodes
        every = replace(run, settings=replace(settings, drop_bad=False))
        judged = every.concluded(cluster, run.checks, interrupted=report.interrupted, recorded=report.recorded)
    return replace(report, news=remembered(judged, settings, kind, recorded, cluster.known).news)


_JUDGING = 0.5  # seconds of a CPU: what judging and printing take


def time_for_nodes(deadline: float, running: float, cpu: float) -> float:
    """Return how long the nodes may be looked at from now on, so that the answer is there at the deadline.

    The command has been `running` for so long, and got `cpu` seconds of a CPU. On a crowded machine what is still to be
    done takes as many times longer. The nodes get a third of the time whatever happens.
    """
    crowded = max(1.0, running / cpu) if cpu > 0 else 1.0
    return max(deadline / 3, deadline - running - _JUDGING * crowded)


def triage(settings: Settings, observer: Observer, running: float | None = None) -> tuple[Evidence, ...]:
    """Look at the job that the settings name, and return what the nodes answered. Raises NcheckError.

    The job is found first, on all nodes; then its ranks are watched, on the nodes that have some. `running`: the
    seconds since the command began, which are part of the deadline.
    """
    from ncheck.triage.live import facts_read

    nodes = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    here = all(node.local and not settings.environment_of(node.name).enter for node in nodes)  # a container has its own
    if here and settings.run.target and settings.run.target.pid and settings.run.target.node is None:
        _require_process(settings.run.target.pid, sudo=settings.sudo)
    return tuple(_asked(nodes, facts_read(), settings, observer, running).evidence.values())


def look(settings: Settings, observer: Observer, facts: Collection[FactType]) -> Cluster:
    """Ask the nodes that the settings name for these facts alone. Raises NcheckError."""
    nodes = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    cluster = _asked(nodes, facts, settings, observer).cluster
    cluster = learn(cluster, unheard(cluster, "the run ended before this node was asked"), facts)
    return complete(cluster, facts, TOO_LATE)


def _asked(
    nodes: tuple[Node, ...],
    facts: Collection[FactType],
    settings: Settings,
    observer: Observer,
    running: float | None = None,
) -> Asking:
    """Ask nodes for facts and what these need, phase after phase, and return what they answered too."""
    cluster, wanted = Cluster(nodes, {}), with_needs(facts)
    phases = collection_phases(cluster, wanted, settings)
    observer.started(nodes)
    engine_for = engines(settings, nodes=nodes)
    try:
        if running is not None:
            left = time_for_nodes(settings.deadline, running, time.process_time())
            settings = replace(settings, deadline=left)
        with Fleet(nodes, settings, engine_for, observer) as fleet:
            fleet.keep(asked_later(phases, cluster))
            known = Asking(fleet, cluster, wanted).keeping()
            for phase in phases:
                known = known.ask(phase)
            return known.learn(fleet.rest("the run's deadline passed"))
    finally:
        observer.finished()


def _require_process(pid: int, *, sudo: bool) -> None:
    """Refuse a process of this machine that has ended, or that this user may not look into. Raises SettingsError."""
    from ncheck.this_machine.process import owner_of

    owner = owner_of(pid)
    if owner is None:
        raise SettingsError(f"there is no process {pid} on this machine; to list yours: ps -u $USER -o pid,args")
    if not sudo and os.geteuid() and owner not in ("", user_name(os.geteuid())):
        why = "only that user and root may look into it; run ncheck with sudo"
        raise SettingsError(f"process {pid} belongs to {printable(owner)}: {why}")


def _recorded(settings: Settings, nodes: tuple[Node, ...], observer: Observer, began: float) -> Passing:
    """Return what records evidence as it passes. A full disk must not cost the report: it is noted, and the run goes
    on. Raises RecordingError for a folder that cannot be written.
    """
    from ncheck.fleet.recording import Recorder

    recorder = Recorder(settings.record or "", [node.name for node in nodes])
    level = (settings.level, *settings.beside_level)

    def passing(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
        for one in evidence:
            try:
                recorder.save(replace(one, select=settings.select, level=level, began=began))
            except RecordingError as error:
                observer.not_recorded(one.node, str(error))
            yield one

    return passing
