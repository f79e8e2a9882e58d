"""Watch a running job: cheap looks as long as it works, and the whole of triage when it stands still or is slow.

A look asks each node for a few sums (triage/facts/pulse.py). Where these say that the job no longer gets on, triage
examines it, and only that decides: what a rank does while the others wait for it may be right, and take its time. An
alarm may end the job: it takes two examinations, some looks apart, that accuse the same ranks of what is no work.

`next_look` decides what comes next, from what is known: a pure function. `watch` carries it out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING

from ncheck.asking import Asking
from ncheck.facts.definition import FINDING, LOOKING, WATCHING
from ncheck.facts.login import LoginFacts
from ncheck.fleet.fleet import Fleet
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Evidence, Login
from ncheck.model.job import Job, Target
from ncheck.model.phase import Phase
from ncheck.steps.phases import collection_phases, with_needs
from ncheck.text import printable, span
from ncheck.triage.causes import UNKNOWN
from ncheck.triage.certainty import NAMED
from ncheck.triage.facts.jobs import SeveralJobsError, job_of, jobs_of, questions_about
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.pulse import PULSE, PulseFacts
from ncheck.triage.join import LiveReport, Work, examine_job
from ncheck.triage.live import cluster_of, facts_read
from ncheck.triage.progress import JobProgress, Rank
from ncheck.triage.watched_ranks import listed

if TYPE_CHECKING:
    from ncheck.fleet.engine import Engine
    from ncheck.model.node import Node
    from ncheck.observer import Observer
    from ncheck.settings import Settings

STALLED = 120.0  # seconds without any progress, after which the job is examined
WATCHDOG = 600.0  # seconds that PyTorch lets a collective of NCCL wait, before it ends the job

_LOOKS, _OFTENEST, _SELDOMEST = 6, 2.0, 20.0  # in the time that a job may stand still; seconds between two looks
_FIND_EVERY = 10  # looks: ranks that came later, and what they have started
_GRACE = 2  # looks: the ranks of a job that ends do so one after the other
_SILENT = 3  # looks without an answer, after which a node is no longer watched
_RETRY = 60.0  # seconds after which all nodes are logged in to again, where one was lost
_NEAR = 0.8  # of the limit of a wait, after which people hear of it
_EACH = 20.0  # seconds in which a node must answer
_SESSION = 3600.0  # seconds: an agent whose head was lost without a word ends by then


@dataclass(frozen=True)
class WatchNote:
    """What happened, for people: the job was found, a rank ended, the job started again, it ended.

    `blind`: a node was not watched from then on.
    """

    text: str
    blind: bool = False


@dataclass(frozen=True)
class Alarm:
    """The job stands still, or became slow. `since`: seconds since 1970, or by the clock of `next_look`.

    `evidence` and `job` are what is saved; `next_look` has no evidence.
    """

    slow: bool
    since: float
    text: str
    report: LiveReport
    evidence: tuple[Evidence, ...]
    job: Job | None


Event = WatchNote | Alarm


class Reason(Enum):
    """Why a job is examined."""

    STILL = "the job has moved next to nothing"
    SLOW = "the job has moved less than before"
    ENDED = "ranks have been gone, and others wait for them,"


class Do(Enum):
    """What a watch can do."""

    LOG_IN = "log in to all nodes"
    FIND = "look for the job"
    LOOK = "look at the job that was found"
    EXAMINE = "ask all that triage asks"
    END = "end"


@dataclass(frozen=True)
class WatchStep:
    """What a watch does next, `wait` seconds later.

    Of an examination: its reason, what names the job, when it began, and since when there is that reason.
    """

    do: Do
    wait: float = 0.0
    reason: Reason = Reason.STILL
    target: Target | None = None
    began: float = 0.0
    since: float = 0.0


@dataclass(frozen=True)
class Examinations:
    """What the examinations of a job came to.

    last      the last one, if it was no reason for an alarm; it was at `last_at`
    next_at   there is none before
    alarm     the reason of an alarm that is not over
    slow      the job is slow, and an event has said so
    reported  causes and ranks that made it slow: each is an alarm once
    puzzled   it stands still and nothing shows why, and a note has said so
    still     since when the job has stood still, as long as it does
    near      the limit of this wait that a note has said to be near, in seconds
    """

    last: LiveReport | None = None
    last_at: float = 0.0
    next_at: float = 0.0
    alarm: Reason | None = None
    slow: bool = False
    reported: frozenset[tuple[str, tuple[int, ...]]] = frozenset()
    puzzled: bool = False
    still: float | None = None
    near: float | None = None


@dataclass(frozen=True)
class Watch:
    """What a watch knows, what it has to say (`events`), and what it does next (`step`).

    target     what names the job
    looks      how often it has looked at the job, or for it
    until      when the nodes are logged in to again
    unreached  the nodes that do not answer, and how their login or connection ended
    silent     how many looks in a row a node has not answered
    job        the job that is watched, and what it has moved (`progress`)
    absent     ranks that were not found at first: they may have yet to start
    ended      ranks that were seen to have ended, and when
    noted      those of them that a look could name: at the next one, as a job ends rank by rank
    """

    target: Target
    progress: JobProgress
    step: WatchStep = WatchStep(Do.LOG_IN)
    events: tuple[Event, ...] = ()
    looks: int = 0
    until: float = 0.0
    unreached: Mapping[str, Login] = field(default_factory=dict)
    silent: Mapping[str, int] = field(default_factory=dict)
    job: Job | None = None
    absent: frozenset[int] = frozenset()
    ended: Mapping[Rank, float] = field(default_factory=dict)
    noted: frozenset[Rank] = frozenset()
    examined: Examinations = Examinations()

    @property
    def stalled(self) -> float:
        """Seconds that the job may stand still."""
        return self.progress.window

    @property
    def every(self) -> float:
        """Seconds between two looks."""
        return max(_OFTENEST, min(_SELDOMEST, self.stalled / _LOOKS))

    def saying(self, text: str, *, blind: bool = False) -> Watch:
        return replace(self, events=(*self.events, WatchNote(text, blind)))

    def doing(self, do: Do) -> Watch:
        return replace(self, step=WatchStep(do))

    def later(self, now: float) -> Watch:
        """Return it with the next look: usually at the ranks, now and then for the job itself."""
        if now >= self.until:
            return self.doing(Do.LOG_IN)
        find = self.job is None or self.looks % _FIND_EVERY == _FIND_EVERY - 1
        return replace(self, step=WatchStep(Do.FIND if find else Do.LOOK, self.every))


def watch(
    settings: Settings,
    nodes: tuple[Node, ...],
    engines: Callable[[], Callable[[Node], Engine]],
    observer: Observer,
    stalled: float = STALLED,
) -> Generator[Event, None, None]:
    """Yield what happens to the job that the settings name, until it has ended. Closing the iterator ends the watch.

    `engines` is called for each session with the nodes: what connects to one of them in it.
    """
    state, wanted = Watch(settings.run.target or Target(), JobProgress(stalled)), with_needs(facts_read())
    while state.step.do is not Do.END:
        with Fleet(nodes, settings, engines(), observer) as fleet:
            fleet.keep({node.name for node in nodes}, _SESSION)
            state = yield from _session(Asking(fleet, Cluster(nodes, {}), wanted).keeping(), settings, state)


def _session(asking: Asking, settings: Settings, state: Watch) -> Generator[Event, None, Watch]:
    """Watch over the same connections, until the nodes are logged in to again, or the watch ends."""
    while True:
        time.sleep(state.step.wait)
        known = _done(state, asking, settings)
        if state.step.do is Do.LOG_IN:
            asking = known
        state = next_look(state, known.cluster, time.monotonic())
        for event in state.events:
            if isinstance(event, Alarm):
                since = event.since + time.time() - time.monotonic()
                yield replace(event, since=since, evidence=tuple(known.evidence.values()))
            else:
                yield event
        if state.step.do in (Do.LOG_IN, Do.END):
            return state
        logins = {name: login for name, login in state.unreached.items() if asking.evidence[name].login != login}
        asking = asking.learn(replace(asking.evidence[name], login=login) for name, login in logins.items())


def _done(state: Watch, asking: Asking, settings: Settings) -> Asking:
    """Do what comes next, and return what is known then."""
    step = state.step
    if step.do is Do.LOG_IN:
        first, *_ = collection_phases(asking.cluster, asking.wanted, settings)
        known = asking.ask(first)
        return known.learn([one for one in known.evidence.values() if one.node not in known.cluster.known])
    if step.do is Do.LOOK and state.job:
        questions = questions_about(state.job, PULSE)
        phase = Phase(WATCHING, frozenset(questions), lambda *_: questions, seconds=_EACH, meeting=False)
        return replace(asking, wanted=(PulseFacts,), evidence={}).ask(phase)
    found = asking.ask(_phase(FINDING, asking, settings))
    if step.do is Do.FIND:
        return found
    known = found.ask(_phase(LOOKING, asking, replace(settings, run=replace(settings.run, target=step.target))))
    return replace(known, cluster=cluster_of(known.evidence.values()))


def _phase(stage: str, asking: Asking, settings: Settings) -> Phase:
    phases = collection_phases(asking.cluster, asking.wanted, settings)
    return next(replace(phase, seconds=_EACH, meeting=False) for phase in phases if phase.stage == stage)


# What comes next


def next_look(watch: Watch, cluster: Cluster, now: float) -> Watch:
    """Return the watch after its step: with what it has to say, and the next step. `now` is in seconds.

    `cluster` is what the step found. Raises SeveralJobsError where more than one job may be meant.
    """
    watch = replace(watch, events=())
    if watch.step.do is Do.LOG_IN:
        return _logged_in(watch, cluster, now)
    watch = _without_lost(watch, cluster, now)
    if watch.step.do is Do.FIND:
        return _found(watch, cluster, now)
    if watch.step.do is Do.LOOK and watch.job:
        return _looked(watch, watch.job, cluster.facts(PulseFacts), now)
    target = watch.step.target or watch.target
    return after_examination(watch, examine_job(cluster, target), job_of(cluster, target), now)


# The nodes


def _logged_in(watch: Watch, cluster: Cluster, now: float) -> Watch:
    known = cluster.facts(LoginFacts)
    logins = {name: known[name].login if name in known else Login(reached=False) for name in cluster.names}
    unreached = {name: login for name, login in logins.items() if login.cause or not login.reached}
    over = not watch.looks and len(unreached) == len(logins)
    watch = replace(watch, until=now + _SESSION - watch.every - 2 * _EACH, silent={})
    return _reaching(watch, unreached).doing(Do.END if over else Do.FIND)


def _without_lost(watch: Watch, cluster: Cluster, now: float) -> Watch:
    """Note which nodes no longer answer. Until they are logged in to again, they are not asked."""
    known = {name: it.login for name, it in cluster.facts(LoginFacts).items() if name not in watch.unreached}
    lost = {name: login for name, login in known.items() if login.reached and login.cause}
    if watch.step.do is Do.LOOK and watch.job:
        answered, asked = cluster.facts(PulseFacts), known.keys() & {*watch.job.nodes} - lost.keys()
        watch = replace(
            watch, silent={name: 0 if name in answered else watch.silent.get(name, 0) + 1 for name in asked}
        )
        detail = f"no answer to {_SILENT} looks"
        silent = (name for name, looks in watch.silent.items() if looks == _SILENT)
        lost |= {name: replace(known[name], cause=Cause.SILENT, detail=detail) for name in silent}
    if not lost:
        return watch
    watch = replace(watch, until=min(watch.until, now + max(watch.stalled, _RETRY)))
    return _reaching(watch, {**watch.unreached, **lost})


def _reaching(watch: Watch, unreached: Mapping[str, Login]) -> Watch:
    """Note which nodes are no longer watched, or are watched again."""
    lost: dict[str, list[str]] = {}
    for name in unreached.keys() - watch.unreached.keys():
        lost.setdefault(printable(unreached[name].detail or "it did not answer in time", 200), []).append(name)
    again = watch.unreached.keys() - unreached.keys()
    for why, names in sorted(lost.items()):
        watch = watch.saying(f"not watched: {fold(names)}: {why}", blind=True)
    if again:
        watch = watch.saying(f"watched again: {fold(sorted(again))}")
    return replace(watch, unreached=unreached)


# The job


def _found(watch: Watch, cluster: Cluster, now: float) -> Watch:
    """Note that the job was found, that it started again, or that it has ended."""
    watch, before = replace(watch, looks=watch.looks + 1), watch.job
    found = _job_among(cluster, watch)
    if found and found.ranks:
        if before is None or not _ranks(before) & _ranks(found):
            watch = _begun(watch, found)
        elif absent := watch.absent & {*found.missing}:
            names = listed("rank", sorted(absent))
            watch = watch.saying(f"{names} of {found.size} not found: not started, or ended before the watch")
            watch = replace(watch, absent=frozenset())
        return replace(watch, job=found, silent={}).later(now)
    if before and cluster.facts(ProcessesFacts).keys() >= {*before.nodes}:  # else it may go on, unseen
        watch = replace(watch, job=None).saying(_end(watch, before, now, restarts=found is not None))
        return watch.doing(Do.END) if found is None else watch.later(now)
    if watch.looks == 1:
        report = examine_job(cluster, watch.target)
        why = next(iter((*report.notes, *(f"{one.name}: {one.reason}" for one in report.unread))), "")
        watch = watch.saying("no job runs on these nodes yet: waiting for one" + (f" ({why})" if why else ""))
    return watch.later(now)


def _job_among(cluster: Cluster, watch: Watch) -> Job | None:
    """Return the job. Where others have started since, it is the one that was watched, or has its key."""
    try:
        return job_of(cluster, watch.target)
    except SeveralJobsError:
        if watch.job is None:
            raise
        jobs, known = jobs_of(cluster), watch.job
        alike = [job for job in jobs if _ranks(job) & _ranks(known)] or [job for job in jobs if job.key == known.key]
        if len(alike) == 1:
            return alike[0]
        raise


def _begun(watch: Watch, job: Job) -> Watch:
    started = "the job has started again" if watch.ended or watch.job else "the job is watched"
    count = f"{len(job.ranks)} rank{'s' if len(job.ranks) > 1 else ''} on {listed('node', job.nodes)}"
    return replace(
        watch.saying(f"{started}: {count}"), progress=JobProgress(watch.stalled), absent=frozenset(job.missing),
        ended={}, noted=frozenset(), examined=Examinations(),
    )  # fmt: skip


def _end(watch: Watch, job: Job, now: float, *, restarts: bool) -> str:
    text = "all ranks have ended, and their launcher has not: waiting for a restart" if restarts else "the job ended"
    first = min(watch.ended.values(), default=None)
    names = [one.shown for one in job.ranks if first is not None and watch.ended.get((one.node, one.pid)) == first]
    if names and len(names) < len(job.ranks):
        text += f"; first to end: {listed('', names)}"
    last = watch.examined.last
    if last and last.diagnoses and now - watch.examined.last_at < 2 * watch.stalled:
        text += f"; before that, {last.summary}"
    return text


def _ranks(job: Job) -> frozenset[Rank]:
    return frozenset((one.node, one.pid) for one in job.ranks)


# Looks


def _looked(watch: Watch, job: Job, pulses: Mapping[str, PulseFacts], now: float) -> Watch:
    """Take in a look at the job, and examine it if there is a reason."""
    progress, before = watch.progress.after(now, pulses), watch.ended
    alive = {(node, one.pid) for node, facts in pulses.items() for one in facts.ranks}
    gone = {rank for rank in _ranks(job) if rank[0] in pulses and rank not in alive}
    news = [one.shown for one in job.ranks if (one.node, one.pid) in gone & before.keys() - watch.noted]
    watch = replace(
        watch, looks=watch.looks + 1, progress=progress, ended={**dict.fromkeys(gone, now), **before},
        noted=watch.noted | before.keys(),
    )  # fmt: skip
    if pulses and not alive:
        return watch.doing(Do.FIND)
    if news:
        watch = watch.saying(f"{listed('', news)} ended; {len(alive)} of the job go on")
    stands, examined = progress.stands_since, watch.examined
    if examined.alarm is Reason.STILL and stands is None:
        examined, watch = replace(examined, alarm=None, next_at=0.0), watch.saying("the job makes progress again")
    if progress.slower is None:
        examined = replace(examined, slow=False)
    if stands is None and not watch.ended and progress.slower is None:
        examined = replace(examined, last=None, puzzled=False)  # what was suspected before has passed
    watch = _within_limit(replace(watch, examined=examined), stands, now)
    examined = watch.examined
    reasons = _reasons(watch, now)
    if not reasons or examined.alarm or now < examined.next_at:
        return watch.later(now)
    reason, since = next(iter(reasons.items()))
    return replace(watch, step=WatchStep(Do.EXAMINE, 0.0, reason, _target(watch, job), now, since))


def _within_limit(watch: Watch, stands: float | None, now: float) -> Watch:
    """Say once of a wait for a rank that works that it comes near to its limit, and how long it was in the end.

    `stands`: since when the job stands still, as far back as its looks are remembered.
    """
    examined = watch.examined
    if stands is None:
        waited = None if examined.still is None else now - examined.still
        if examined.near and waited:
            watch = watch.saying(f"the job goes on after a wait of {span(waited)}; its limit is {span(examined.near)}")
        return replace(watch, examined=replace(examined, still=None, near=None))
    since = min(stands, stands if examined.still is None else examined.still)
    best = next(iter(examined.last.diagnoses), None) if examined.last else None
    limit = best.limit if best and best.works else None
    near = None
    if best and limit and limit.seconds and not examined.near and now - since >= _NEAR * limit.seconds:
        near, work = limit.seconds, best.evidence[0].text if best.evidence else best.meaning
        watch = watch.saying(
            f"the job has waited for {span(now - since)} of the {span(near)} that {limit.setting} ({limit.framework})"
            f" allows: {work}; shorten this work, or raise the limit"
        )
    return replace(watch, examined=replace(examined, still=since, near=near or examined.near))


def _reasons(watch: Watch, now: float) -> dict[Reason, float]:
    """Return why the job is to be examined, the best reason first, and since when that is so."""
    reasons, progress = dict[Reason, float](), watch.progress
    if watch.ended and now - min(watch.ended.values()) >= _GRACE * watch.every:
        reasons[Reason.ENDED] = min(watch.ended.values())
    if progress.stands_since is not None:
        reasons[Reason.STILL] = progress.stands_since
    if progress.slower and not watch.examined.slow:
        reasons[Reason.SLOW] = progress.slower.since
    return reasons


def _target(watch: Watch, job: Job) -> Target:
    """Return what names this job alone: a rank that goes on."""
    known = (one for one in job.ranks if (one.node, one.pid) not in watch.ended and one.node not in watch.unreached)
    rank = next(known, None)
    return replace(watch.target, pid=rank.pid, node=rank.node, match=None, slurm=None) if rank else watch.target


# Examinations


def after_examination(watch: Watch, report: LiveReport, job: Job | None, now: float) -> Watch:
    """Return the watch after an examination: an alarm if the one before accused the same ranks. What was no reason for
    one is asked again later.
    """
    step, examined, slower = watch.step, watch.examined, watch.progress.slower
    before, slow = examined.last, report.work is Work.MOVES
    trouble = is_trouble(report, before=before)
    again = watch.stalled / 2 if report.work is Work.UNKNOWN else 2 * watch.stalled
    next_at = now + (2 * watch.every if accuses(report) and not trouble else again)
    examined = replace(examined, next_at=next_at)
    if trouble and slow:
        cause = report.diagnoses[0].cause, report.diagnoses[0].ranks
        trouble = cause not in examined.reported
        examined = replace(examined, reported=examined.reported | {cause})
    ago = span(step.began - step.since)
    text = _slower(watch, slower.share, ago) if slow and slower else f"{step.reason.value} for {ago}"
    examined = replace(examined, last=None if trouble else report, last_at=now)
    if trouble:
        examined = replace(examined, slow=slow, alarm=None if slow else step.reason)
        watch = replace(watch, events=(*watch.events, Alarm(slow, step.since, text, report, (), job)))
    elif before and not (report.diagnoses or before.diagnoses or examined.slow or examined.puzzled):
        examined = replace(examined, slow=step.reason is Reason.SLOW, puzzled=True)
        watch = watch.saying(f"{text}; nothing that was seen shows why")
    return replace(watch, examined=examined).later(now)


def accuses(report: LiveReport) -> bool:
    """Return whether an examination found what is no work, or that all ranks wait and nothing shows why.

    A job that ended meanwhile, or that nobody can look into, is accused of nothing.
    """
    if not report.ranks or not report.diagnoses:
        return False
    best = report.diagnoses[0]
    return not best.works and (best.confidence >= NAMED or best.cause == UNKNOWN)


def is_trouble(report: LiveReport, *, before: LiveReport | None) -> bool:
    """Return whether an examination is a reason for an alarm. `before`: the last one, some looks earlier."""
    if before is None or not (accuses(report) and accuses(before)):
        return False
    first, last = before.diagnoses[0], report.diagnoses[0]
    return first.cause == last.cause or bool({*first.ranks} & {*last.ranks} or {*first.nodes} & {*last.nodes})


def _slower(watch: Watch, share: float, ago: str) -> str:
    """Return how much slower the job is, and which rank uses more of a CPU than it did."""
    named = {(one.node, one.pid): one.shown for one in watch.job.ranks} if watch.job else {}
    busier = [
        f"{named[rank]} uses {now:.0%} of a CPU, {before:.0%} before"
        for rank, (before, now) in watch.progress.busier().items()
        if rank in named
    ]
    return "; ".join([f"for {ago} the job has moved {share:.0%} of what it did before", *busier[:3]])
