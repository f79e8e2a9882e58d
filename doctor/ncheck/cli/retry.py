"""launch --retry and --history: the job as a child, and after its end the note; after a failure what its log says, the
proof, and the next try.
"""

from __future__ import annotations

import os
import resource
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.cli.examine import examined, observer_for, say
from ncheck.cli.startable import checked, say_news, startable
from ncheck.errors import EXIT_FINDINGS, NcheckError, SettingsError
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.next_step import Action
from ncheck.retry.child import JobEnd, Log, run_job
from ncheck.retry.names import known_as, nodes_meant
from ncheck.retry.plan import Again, End, Limits, Proof, Prove, Try, next_action
from ncheck.retry.program import NamesNodeError, moved, require_movable

if TYPE_CHECKING:
    from ncheck.model.node import Node
    from ncheck.model.plan import LaunchCommand
    from ncheck.model.report import Report
    from ncheck.settings import Settings
    from ncheck.triage.diagnosis import Diagnosis

_TIMED_OUT = 124  # exit code of coreutils' timeout


@dataclass(frozen=True)
class Place:
    """Where the job runs next: its nodes, the spares that are left, and its program, which may name nodes."""

    nodes: tuple[Node, ...]
    spares: tuple[Node, ...]
    program: tuple[str, ...]
    untried: tuple[str, ...] = ()  # nodes that took a place, and were not examined since

    def on(self, names: tuple[str, ...], known_as: Mapping[str, tuple[str, ...]]) -> Place:
        """Return the place on these nodes. A spare has as many slots as the node whose place it takes.

        Raises NamesNodeError.
        """
        before = tuple(node.name for node in self.nodes)
        own = {node.name: node for node in (*self.nodes, *self.spares)}
        gone = [own[name] for name in before if name not in names]
        came = [name for name in names if name not in before]
        slots = {name: node.slots or own[name].slots for name, node in zip(came, gone, strict=False)}
        return Place(
            tuple(replace(own[name], slots=slots.get(name, own[name].slots)) for name in names),
            tuple(node for node in self.spares if node.name not in names),
            moved(self.program, before, names, known_as) if names != before else self.program,
            tuple(came),
        )


class CannotStartError(NcheckError):
    """The job's program cannot be started."""

    exit_code = EXIT_FINDINGS


def _cannot_keep(where: object, error: OSError) -> CannotStartError:
    return CannotStartError(
        f"not started: the output of the job cannot be kept in {where} ({error.strerror}): set TMPDIR"
    )


def with_retries(settings: Settings, limits: Limits, spare: tuple[str, ...], files: tuple[int, int]) -> int:
    """Run the job until a try ends well, or nothing speaks for another one. Return the exit code of the last try; where
    a signal ended that, end by it.
    """
    from ncheck.inventory.read import read_inventory, set_apart

    listed = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    place = Place(*set_apart(listed, ",".join(spare), settings, os.environ), settings.program)
    if spare or limits.shrink:
        _require_movable(place)
    try:
        folder = Path(tempfile.mkdtemp(prefix="ncheck-launch-"))
    except OSError as error:
        raise _cannot_keep(tempfile.tempdir or "a temporary folder", error) from None
    try:
        end = _last_end(settings, limits, place, folder, files)
    finally:
        with suppress(OSError):  # where logs of tries that failed are in it
            folder.rmdir()
    return _ended(end)


def _require_movable(place: Place) -> None:
    """Raise SettingsError where the program would still ask for a node that has lost its place."""
    option, first = ("--spare", place.spares[0].name) if place.spares else ("--shrink", "")
    try:
        require_movable(place.program, [node.name for node in place.nodes], first)
    except NamesNodeError as error:
        raise SettingsError(
            f"{option}: {error}, and ncheck changes only where the ranks meet and how many nodes there are: let the "
            f"program take its nodes from the launcher, or leave out {option}"
        ) from None


def with_note(command: LaunchCommand, nodes: tuple[Node, ...], settings: Settings, files: tuple[int, int]) -> int:
    """Run the job once, and note in the history how it ended. Return its exit code, or end by its signal."""
    end = _job_ended(command, None, files)
    _noted(end, nodes, settings)
    return _ended(end)


def _last_end(settings: Settings, limits: Limits, place: Place, folder: Path, files: tuple[int, int]) -> JobEnd:
    """Run one try after the other, and return the end of the last one."""
    tries, end = list[Try](), JobEnd(EXIT_FINDINGS)
    noting = settings.job_ended  # the exit code of the job that ended before the next check, which notes it
    while True:
        # Later on nobody is left out without proof.
        own = replace(settings, program=place.program, drop_bad=settings.drop_bad and not tries, job_ended=noting)
        report, noting = checked(own, place.nodes), None
        if report.interrupted:
            say("interrupted: nothing was started")
            return JobEnd(report.exit_code)
        command = startable(report, force=settings.force)
        place = replace(place, nodes=tuple(node for node in place.nodes if node.name not in report.dropped))
        if command:
            place = replace(place, untried=())
            log, began = folder / f"try-{len(tries) + 1}.log", time.time()
            end = _run(command, log, files)
            if end.code == 0:
                log.unlink(missing_ok=True)
                _noted(end, place.nodes, own)
                return end
            tries.append(_try_of(_Ran(own, report, command, end, log, began)))
            kept = f"its output: ncheck triage --logs {shlex.quote(str(log))}"
            kept = kept if log.exists() else f"its output was removed from {log}"
            say(f"try {len(tries)} failed ({end.shown}); {kept}")
            names, spares = (tuple(node.name for node in nodes) for nodes in (place.nodes, place.spares))
            action: Again | Prove | End | JobEnd | None = next_action(tries, limits, spares)
            if isinstance(action, Again) and action.nodes == names:
                noting = _to_note(end, settings)
            else:
                action = _noted(end, place.nodes, own) or _decided(tries, limits, place, settings)
        else:
            action = _around_bad(report, tries, limits, place)
        if isinstance(action, JobEnd):
            say("interrupted: not restarted")
            return action
        if action:
            say(action.sentence)
        if not isinstance(action, Again):
            return end
        try:
            place = place.on(action.nodes, known_as(report))
        except NamesNodeError as error:
            say(f"not restarted: {error}; start it yourself on {fold(action.nodes)}")
            return end


def _run(command: LaunchCommand, path: Path, files: tuple[int, int]) -> JobEnd:
    """Run one try. Raises CannotStartError."""
    try:
        file = path.open("wb")
    except OSError as error:
        raise _cannot_keep(path, error) from None
    try:
        with file:
            log = Log(file)
            end = _job_ended(command, log, files)
    except CannotStartError:
        path.unlink(missing_ok=True)
        raise
    if log.lost:
        say(f"the output is not whole in {path}: {log.lost}")
    return end


def _job_ended(command: LaunchCommand, log: Log | None, files: tuple[int, int]) -> JobEnd:
    """Run the job to its end, with the limit of open files that ncheck was started with. Raises CannotStartError."""
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    try:
        return run_job(command.argv, log)
    except OSError as error:
        raise CannotStartError(f"cannot start {command.argv[0]}: {error.strerror}") from None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, raised)


def _to_note(end: JobEnd, settings: Settings) -> int | None:
    """Return the exit code that is to be noted, if one is."""
    return None if settings.history is None or end.signalled or end.unread else end.exit_code


def _noted(end: JobEnd, nodes: tuple[Node, ...], settings: Settings) -> JobEnd | None:
    """Note in the history how the job ended, as --job-ended does. Return the end, where that was interrupted.

    All its nodes are asked, also one that loses its place now. Who ended the job waits for nothing more.
    """
    code = _to_note(end, settings)
    if code is None:
        return None
    own = replace(settings, job_ended=code, drop_bad=False, good_nodes=None, bad_nodes=None)
    found = examined(own, observer_for(sys.stderr, os.environ, own.longest), nodes)
    say_news(found)
    return JobEnd(found.exit_code) if found.interrupted and end.code else None


@dataclass(frozen=True)
class _Ran:
    """One try as it ran: its settings with its own program, the report before it, its command, its end and its log."""

    settings: Settings
    report: Report
    command: LaunchCommand
    end: JobEnd
    log: Path
    began: float


def _try_of(ran: _Ran) -> Try:
    """Return what became of a try, by its log."""
    names = tuple(node.name for node in ran.report.nodes if node.name not in ran.report.dropped)
    if not ran.log.exists():  # where old files are removed from /tmp
        return Try(names, ended=why_ended(ran.end, None, ran.settings.program))
    from ncheck.retry.steps import furthest
    from ncheck.triage.diagnosis_history import kept
    from ncheck.triage.logs import examine_logs

    seen = kept(examine_logs((str(ran.log),), sys.stdin.buffer), ran.settings, ran.began)
    best = seen.diagnoses[0] if seen.diagnoses else None
    with ran.log.open(encoding="utf-8", errors="replace") as lines:
        step = furthest(lines)
    failed = Try(names, step=step, ended=why_ended(ran.end, best, ran.settings.program))
    if best is None:
        return failed
    slots = {} if ran.settings.profile == "numa" else ran.command.hosts  # with it, every node has ranks in turn
    return replace(
        failed, advice=best.next.action, cause=best.cause, meaning=best.meaning, fix=best.fix, ranks=best.ranks,
        at_fault=nodes_meant(best.nodes, best.ranks, ran.report, slots),
    )  # fmt: skip


def why_ended(end: JobEnd, best: Diagnosis | None, program: tuple[str, ...]) -> str:
    """Return why the job must not be started again, whatever its log says; "" where it may."""
    if end.signalled:
        return f"it was ended by {end.signalled}"
    if end.unread:
        return "nobody reads its output any more"
    if best and best.kind == "time-limit":
        return best.meaning
    if end.code == _TIMED_OUT and Path(program[0]).name == "timeout":
        return f"its time limit was over: {shlex.join(program[:2])}"
    return ""


def _decided(tries: list[Try], limits: Limits, place: Place, settings: Settings) -> Again | End | JobEnd:
    """Return the next action, once what it needs is proved; the end, where that was interrupted."""
    proofs: dict[str, Proof] = {}
    spares = tuple(node.name for node in place.spares)
    while isinstance(action := next_action(tries, limits, spares, proofs), Prove):
        from ncheck.retry.proof import proof_of

        say(f"is {action.suspect} at fault? it is measured with {fold(action.partners)}")
        own = {node.name: node for node in (*place.nodes, *place.spares)}
        nodes = tuple(own[name] for name in (*action.partners, action.suspect))  # the partners meet first
        proving = replace(
            settings, probe="auto", drop_bad=False, force=True, good_nodes=None,
            bad_nodes=None, history=None, notify=None,
        )  # fmt: skip
        found = examined(proving, observer_for(sys.stderr, os.environ, proving.longest), nodes)
        if found.interrupted:
            return JobEnd(found.exit_code)
        proofs[action.suspect] = proof_of(found, action)
    return action


def _around_bad(report: Report, tries: list[Try], limits: Limits, place: Place) -> Again | End | None:
    """Return the action where the nodes of the next try are not fit for it; None where there is nothing to do about it.

    A spare that has just taken a place needs no proof to lose it. A node of an earlier try does.
    """
    if not tries:
        return None
    spares, names = [node.name for node in place.spares], tuple(node.name for node in place.nodes)
    unfit = {bad.node: bad.reason for bad in report.bad if bad.node in place.untried}
    if unfit and len(spares) >= len(unfit):
        others = dict(zip(unfit, spares, strict=False))
        why = "; ".join(f"{node}: {reason}" for node, reason in unfit.items())
        return Again(tuple(others.get(name, name) for name in names), f"with {fold(others.values())} instead of {why}")
    from ncheck.retry.proof import proof_of

    found = {bad.node: proof_of(report, Prove(bad.node, ())) for bad in report.bad}
    guilty = {node: proof for node, proof in found.items() if proof.proved}
    if not guilty:
        return None
    last = replace(tries[-1], nodes=names, advice=Action.RESTART_WITHOUT, at_fault=tuple(guilty))
    action = next_action([*tries[:-1], last], limits, spares, guilty)
    return None if isinstance(action, Prove) or action == Again(names, action.sentence) else action


def _ended(end: JobEnd) -> int:
    """Return the exit code of the job, or end by the signal that ended it."""
    if end.code >= 0:
        return end.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the job has left one, if it was to
    if -end.code != signal.SIGKILL:
        signal.signal(-end.code, signal.SIG_DFL)
    os.kill(os.getpid(), -end.code)
    return end.exit_code
