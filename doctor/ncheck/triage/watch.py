"""Watch a running job: cheap looks as long as it works, and the whole of triage when it stands still or is slow.

A look asks each node for a few sums (triage/facts/pulse.py). Where these say that the job no longer gets on, triage
examines it, and only that decides: what a rank does while the others wait for it may be right, and take its time. An
alarm may end the job: it takes two examinations, some looks apart, that accuse the same ranks of what is no work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from ncheck.facts.definition import FINDING, LOOKING, WATCHING
from ncheck.facts.learning import facts_of, learn
from ncheck.fleet.fleet import Fleet
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Evidence, Login
from ncheck.model.job import Job, Target
from ncheck.model.phase import Phase, Questions
from ncheck.steps.phases import collection_phases, with_needs
from ncheck.text import printable, span
from ncheck.triage.causes import UNKNOWN
from ncheck.triage.certainty import NAMED
from ncheck.triage.facts.jobs import SeveralJobsError, job_of, jobs_of, questions_about
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.pulse import PULSE, PulseFacts
from ncheck.triage.join import LiveReport, Work, examine_job
from ncheck.triage.live import cluster_of, facts_read
from ncheck.triage.progress import Progress, Rank, Slower
from ncheck.triage.watched import listed

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
_EACH = 20.0  # seconds in which a node must answer
_SESSION = 3600.0  # seconds: an agent whose head was lost without a word ends by then


@dataclass(frozen=True)
class Note:
    """What happened, for people: the job was found, a rank ended, the job started again, it ended.

    `blind`: a node was not watched from then on.
    """

    text: str
    blind: bool = False


@dataclass(frozen=True)
class Alarm:
    """The job stands still, or became slow. `since`: seconds since 1970. `evidence` and `job` are what is saved."""

    slow: bool
    since: float
    text: str
    report: LiveReport
    evidence: tuple[Evidence, ...]
    job: Job | None


Event = Note | Alarm


class Reason(Enum):
    """Why a job is examined."""

    STILL = "the job has moved next to nothing"
    SLOW = "the job has moved less than before"
    ENDED = "ranks have been gone, and others wait for them,"


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
    watching = _Watch(settings, nodes, stalled)
    while not watching.over:
        with Fleet(nodes, settings, engines(), observer) as fleet:
            fleet.keep({one.name for one in nodes}, _SESSION)
            yield from watching.events(fleet)


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


class _Watch:
    """What is known of the job from one session with the nodes to the next."""

    def __init__(self, settings: Settings, nodes: tuple[Node, ...], stalled: float) -> None:
        self.settings, self.nodes, self.stalled = settings, nodes, stalled
        self.every = max(_OFTENEST, min(_SELDOMEST, stalled / _LOOKS))
        self.target = settings.run.target or Target()
        self.over = False
        self.job: Job | None = None
        self.progress = Progress(stalled)
        self.looks = 0
        self.unreached: dict[str, str] = {}
        self.ended: dict[Rank, float] = {}  # ranks that were seen to have ended, and when
        self.absent: set[int] = set()  # ranks that the first look did not find: they may have yet to start
        self.noted: set[Rank] = set()  # those of them that were named: at the next look, as a job ends rank by rank
        self.alarm: Reason | None = None  # that was raised, and is not over yet
        self.slowed = False  # the job is slow, and that was said
        self.reported: set[tuple[str, tuple[int, ...]]] = (
            set()
        )  # causes and ranks that made the job slow: said once each
        self.calm: LiveReport | None = None  # the last examination, which was no reason for an alarm
        self.puzzled = False  # the job stands still, nothing shows why, and that was said
        self.calm_at = self.next_examination = 0.0

    def events(self, fleet: Fleet) -> Iterator[Event]:
        """Watch over one session with the nodes, until it has lasted long enough, or a lost node is tried again."""
        session = _Session(fleet, self.settings, self.nodes)
        yield from self._reached(session)
        until, retry = time.monotonic() + _SESSION - self.every - 2 * _EACH, max(self.stalled, _RETRY)
        if not self.looks and not session.answer:
            self.over = True
        else:
            yield from self._find(session)
        while not self.over and time.monotonic() < until:
            time.sleep(self.every)
            if self.job and self.looks % _FIND_EVERY != _FIND_EVERY - 1:
                yield from self._look(session)
            else:
                yield from self._find(session)
            if session.unreached.keys() != self.unreached.keys():
                yield from self._reached(session)
                until = min(until, time.monotonic() + retry)

    def _reached(self, session: _Session) -> Iterator[Event]:
        """Say which nodes are not watched, or are watched again."""
        new: dict[str, list[str]] = {}
        for name in session.unreached.keys() - self.unreached.keys():
            new.setdefault(session.unreached[name], []).append(name)
        for why, names in sorted(new.items()):
            yield Note(f"not watched: {fold(names)}: {why}", blind=True)
        if again := self.unreached.keys() - session.unreached.keys():
            yield Note(f"watched again: {fold(sorted(again))}")
        self.unreached = dict(session.unreached)

    # The job

    def _find(self, session: _Session) -> Iterator[Event]:
        """Look for the job; say that it was found, that it started again, or that it has ended."""
        self.looks += 1
        cluster, before = session.found(), self.job
        found = self._one_of(cluster)
        if found and found.ranks:
            self.job = found
            session.watch(found)
            if before is None or not _ranks(before) & _ranks(found):
                yield self._begun(found, again=bool(self.ended) or before is not None)
            elif absent := self.absent & {*found.missing}:
                names = listed("rank", sorted(absent))
                yield Note(f"{names} of {found.size} not found: not started, or ended before the watch")
                self.absent = set()
        elif before and cluster.facts(ProcessesFacts).keys() >= set(before.nodes):  # else it may go on, unseen
            self.job = None
            yield Note(self._end(before, restarts=found is not None))
            self.over = found is None
        elif self.looks == 1:
            report = examine_job(cluster, self.target)
            why = next(iter((*report.notes, *(f"{one.name}: {one.reason}" for one in report.unread))), "")
            yield Note("no job runs on these nodes yet: waiting for one" + (f" ({why})" if why else ""))

    def _one_of(self, cluster: Cluster) -> Job | None:
        """Return the job. Where others have started since, it is the one that was watched, or has its key."""
        try:
            return job_of(cluster, self.target)
        except SeveralJobsError:
            if self.job is None:
                raise
            known = self.job
            alike = [one for one in jobs_of(cluster) if _ranks(one) & _ranks(known)]
            alike = alike or [one for one in jobs_of(cluster) if one.key == known.key]
            if len(alike) == 1:
                return alike[0]
            raise

    def _begun(self, job: Job, *, again: bool) -> Note:
        self.progress, self.ended, self.alarm, self.calm = Progress(self.stalled), {}, None, None
        self.puzzled = False
        self.next_examination, self.noted, self.reported = 0.0, set(), set()
        count = f"{len(job.ranks)} rank{'s' if len(job.ranks) > 1 else ''} on {listed('node', job.nodes)}"
        started = "the job has started again" if again else "the job is watched"
        self.absent = set(job.missing)
        return Note(f"{started}: {count}")

    def _end(self, job: Job, *, restarts: bool) -> str:
        words = (
            "all ranks have ended, and their launcher has not: waiting for a restart" if restarts else "the job ended"
        )
        first = min(self.ended.values(), default=None)
        names = [one.shown for one in job.ranks if first and self.ended.get((one.node, one.pid), first + 1) <= first]
        if names and len(names) < len(job.ranks):
            words += f"; first to end: {listed('', names)}"
        if self.calm and self.calm.diagnoses and time.monotonic() - self.calm_at < 2 * self.stalled:
            words += f"; before that, {self.calm.summary}"
        return words

    # Looks

    def _look(self, session: _Session) -> Iterator[Event]:
        """Look once, and examine the job if there is a reason."""
        self.looks += 1
        job, now = self.job, time.monotonic()
        assert job  # noqa: S101  the caller has looked
        pulses = session.pulses()
        self.progress = self.progress.after(now, pulses)
        alive = {(node, one.pid) for node, facts in pulses.items() for one in facts.ranks}
        gone = {rank for rank in _ranks(job) if rank[0] in pulses and rank not in alive}
        news = [one.shown for one in job.ranks if (one.node, one.pid) in self.ended.keys() & gone - self.noted]
        self.noted |= self.ended.keys()
        for rank in gone:
            self.ended.setdefault(rank, now)
        if pulses and not alive:
            yield from self._find(session)
            return
        if news:
            yield Note(f"{listed('', news)} ended; {len(alive)} of the job go on")
        stands = self.progress.stands_since
        if self.alarm is Reason.STILL and stands is None:
            self.alarm, self.next_examination = None, 0.0
            yield Note("the job makes progress again")
        self.slowed = self.slowed and self.progress.slower is not None
        if stands is None and not self.ended and self.progress.slower is None:
            self.calm, self.puzzled = None, False  # what was suspected before has passed
        if why := self._reason(now, stands):
            yield from self._examine(session, why)

    def _reason(self, now: float, stands: float | None) -> Reason | None:
        """Return why the job is to be examined now, None if it is not. What was no reason for alarm is asked later."""
        if self.alarm or now < self.next_examination:
            return None
        if self.ended and now - min(self.ended.values()) >= _GRACE * self.every:
            return Reason.ENDED
        if stands is not None:
            return Reason.STILL
        return Reason.SLOW if self.progress.slower and not self.slowed else None

    def _examine(self, session: _Session, why: Reason) -> Iterator[Event]:
        began = time.monotonic()
        slower, stands = self.progress.slower, self.progress.stands_since
        since = {Reason.ENDED: min(self.ended.values(), default=None), Reason.SLOW: slower and slower.since}
        ago = began - (since.get(why, stands) or began)
        target = self._exactly()
        evidence = session.examined(target)
        cluster = cluster_of(evidence)
        report, now = examine_job(cluster, target), time.monotonic()
        trouble, before = is_trouble(report, before=self.calm), self.calm
        again = self.stalled / 2 if report.work is Work.UNKNOWN else 2 * self.stalled
        self.next_examination = now + (2 * self.every if accuses(report) and not trouble else again)
        slow = report.work is Work.MOVES
        if trouble and slow:
            cause = report.diagnoses[0].cause, report.diagnoses[0].ranks
            trouble = cause not in self.reported
            self.reported.add(cause)
        self.calm, self.calm_at = None if trouble else report, now
        text = self._slow(slower, ago) if slow and slower else f"{why.value} for {span(ago)}"
        if trouble:
            self.slowed, self.alarm = slow, None if slow else why
            yield Alarm(slow, time.time() - (now - began) - ago, text, report, evidence, job_of(cluster, target))
        elif before and not (report.diagnoses or before.diagnoses or self.slowed or self.puzzled):
            self.slowed, self.puzzled = why is Reason.SLOW, True
            yield Note(f"{text}; nothing that was seen shows why")

    def _exactly(self) -> Target:
        """Return what names this job alone: a rank that goes on."""
        ranks = [one for one in self.job.ranks if (one.node, one.pid) not in self.ended] if self.job else []
        reached = [one for one in ranks if one.node not in self.unreached]
        return (
            replace(self.target, pid=reached[0].pid, node=reached[0].node, match=None, slurm=None)
            if reached
            else self.target
        )

    def _slow(self, slower: Slower, ago: float) -> str:
        """Return how much slower the job is, and which rank uses more of a CPU than it did."""
        words = f"for {span(ago)} the job has moved {slower.share:.0%} of what it did before"
        named = {(one.node, one.pid): one.shown for one in self.job.ranks} if self.job else {}
        busier = [
            f"{named[rank]} uses {now:.0%} of a CPU, {before:.0%} before"
            for rank, (before, now) in self.progress.busier().items()
            if rank in named
        ]
        return "; ".join([words, *busier[:3]])


def _ranks(job: Job) -> frozenset[Rank]:
    return frozenset((one.node, one.pid) for one in job.ranks)


class _Session:
    """The nodes as long as their connections last. `unreached`: nodes that do not answer, and why."""

    def __init__(self, fleet: Fleet, settings: Settings, nodes: tuple[Node, ...]) -> None:
        self.fleet, self.settings, self.nodes = fleet, settings, nodes
        self.wanted = with_needs(facts_read())
        self.evidence = {node.name: Evidence(node.name, Login(reached=False)) for node in nodes}
        self.unreached: dict[str, str] = {}
        self.silent: dict[str, int] = {}
        self.questions: Questions = {}
        first, *_ = collection_phases(Cluster(nodes, {}), self.wanted, settings)
        self._learned(Cluster(nodes, {}), first)
        self.logins = dict(self.evidence)
        for name, one in self.logins.items():
            if not one.login.reached:
                self.unreached[name] = printable(one.login.detail or "it did not answer in time", 200)

    @property
    def answer(self) -> bool:
        """Whether any node does."""
        return len(self.unreached) < len(self.nodes)

    def found(self) -> Cluster:
        """Ask for the processes, and return what is known then."""
        self.evidence = dict(self.logins)
        cluster = learn(Cluster(self.nodes, {}), self.evidence.values(), self.wanted)
        return self._learned(cluster, self._phase(FINDING, self.settings))

    def watch(self, job: Job) -> None:
        """Let looks be at the ranks of this job."""
        self.questions = questions_about(job, PULSE)
        self.silent = dict.fromkeys(job.nodes, 0)

    def pulses(self) -> Mapping[str, PulseFacts]:
        """Ask for a look, and return what the nodes answered."""
        phase = Phase(WATCHING, frozenset(self.questions), lambda *_: self.questions, seconds=_EACH, meeting=False)
        found = {}
        for one in self._asked(Cluster(self.nodes, {}), phase):
            facts = facts_of(one, (PulseFacts,))[PulseFacts]
            if isinstance(facts, PulseFacts):
                found[one.node] = facts
        for name in self.questions.keys() - self.unreached.keys():
            self.silent[name] = 0 if name in found else self.silent[name] + 1
            if self.silent[name] == _SILENT:
                self._lose(
                    name, replace(self.logins[name].login, cause=Cause.SILENT, detail=f"no answer to {_SILENT} looks")
                )
        return found

    def examined(self, target: Target) -> tuple[Evidence, ...]:
        """Ask all that triage asks about a job, and return it."""
        run = replace(self.settings.run, target=target)
        self._learned(self.found(), self._phase(LOOKING, replace(self.settings, run=run)))
        return tuple(self.evidence.values())

    def _phase(self, stage: str, settings: Settings) -> Phase:
        phases = collection_phases(Cluster(self.nodes, {}), self.wanted, settings)
        return next(replace(one, seconds=_EACH, meeting=False) for one in phases if one.stage == stage)

    def _learned(self, cluster: Cluster, phase: Phase) -> Cluster:
        """Ask a phase's questions, keep the answers, and return what is known then."""
        return learn(cluster, self._kept(self._asked(cluster, phase)), self.wanted)

    def _asked(self, cluster: Cluster, phase: Phase) -> Iterator[Evidence]:
        seconds = self.fleet.begin(phase)
        for one in self.fleet.ask(phase, phase.questions(cluster, seconds) if phase.questions else {}):
            if one.login.reached and one.login.cause:
                self._lose(one.node, one.login)
            yield one

    def _kept(self, evidence: Iterable[Evidence]) -> Iterator[Evidence]:
        for one in evidence:
            self.evidence[one.node] = self.evidence[one.node].before(one)
            yield one

    def _lose(self, name: str, login: Login) -> None:
        """Note that a node no longer answers. Until the next session it is not asked."""
        self.logins[name] = replace(self.logins[name], login=login)
        self.unreached[name] = printable(login.detail, 200)
