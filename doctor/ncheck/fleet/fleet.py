"""Open connections to the nodes, behind one contract: ask a phase's questions, and yield the evidence of each node.

A bounded fan-out that never raises for a bad node. Each node has one connection for the whole run: the first phase logs
in, later ones ask about what earlier ones answered. A phase begins when the nodes have answered the one before, and
waits for no slow node for ever.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, cast

from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.engine import DiallingEngine, NotConnectedError
from ncheck.fleet.session import Known, Request, Session, SessionEndedError, SessionTerms, job_environment
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Cause, Evidence, Login
from ncheck.model.phase import Answered, NotAsked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from ncheck.fleet.engine import Engine, Stream
    from ncheck.model.evidence import Source
    from ncheck.model.node import Node
    from ncheck.model.phase import Phase, Questions
    from ncheck.observer import Observer
    from ncheck.settings import JobEnvironment, Settings

SHARED = "srun"  # the engine whose nodes share one stream
_RESERVE = 0.04  # of the deadline, kept for judging and printing what came
_GRACE = 0.5  # seconds for the workers to say where they were when the deadline came
_MOST_WAITING = 64  # nodes whose answers nobody has taken: with more, no further node is asked, for memory's sake
_BLINK = 0.2  # seconds: a ^C that comes just before a wait does not end it, and Python looks for one after it
_OUT_OF_TIME = frozenset({Cause.FILTERED, Cause.SILENT, Cause.STALLED, Cause.CLOSED})


class _Requests:
    """The questions of a phase as they are sent: those that many nodes are asked are written once for all of them."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.times = Counter(map(id, chain.from_iterable(questions.values())))
        self.alike: dict[tuple[int, ...], Request] = {}

    def of(self, name: str) -> tuple[tuple[Request, ...], list[NotAsked | Answered]]:
        """Return what is sent to a node, and what is answered here or need not be asked."""
        alike: list[Source] = []
        own: list[Source] = []
        noted: list[NotAsked | Answered] = []
        for question in self.questions.get(name, ()):
            if isinstance(question, (NotAsked, Answered)):
                noted.append(question)
            else:
                (alike if self.times[id(question)] > 1 else own).append(question)
        same = tuple(map(id, alike))
        if alike and same not in self.alike:
            self.alike[same] = Request(alike)
        return (*([self.alike[same]] if alike else []), *([Request(own)] if own else [])), noted


@dataclass
class _Place:
    """One node's place in the run. `kept`: a later phase may ask it, so its connection stays open. `requests` are its
    first questions. `given` are the seconds that it had to answer, None as long as it was not tried.
    """

    known: Known
    kept: bool = False
    requests: tuple[Request, ...] = ()
    given: float | None = None
    session: Session | None = None
    stream: Stream | None = None


class Fleet:
    """A fleet over one connection per node, each opened by an engine and served by a worker thread when it is asked."""

    def __init__(
        self,
        nodes: Sequence[Node],
        settings: Settings,
        engine_for: Callable[[Node], Engine],
        observer: Observer,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.settings, self.engine_for, self.observer, self.environ = settings, engine_for, observer, environ
        self.nodes = tuple(nodes)
        self.places = {node.name: _Place(Known(node)) for node in nodes}
        self.busy: set[str] = set()
        self.workers = 0
        self.ended = False
        self.stage = ""  # of the first phase, while it goes on
        self.began = time.monotonic()
        self.deadline = self.began + settings.deadline * (1 - _RESERVE)
        self.end_of_all = self.deadline
        self.nonce = os.urandom(8).hex()
        self.finished: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.dialled = False
        self.asked = threading.Event()  # it is known what the nodes are asked first
        self.taken = threading.Condition()
        self.work: queue.SimpleQueue[tuple[str, Callable[[str], None]] | None] = queue.SimpleQueue()
        self._alike = cache(self._wanted)
        self._dials: dict[int, bool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def dial(self) -> None:
        """Begin to log in to the nodes, while it is made ready what they are asked. A node of an engine that does not
        dial waits for its first questions.
        """
        self.dialled = True
        self._add_workers(min(self.settings.width, len(self.nodes)))
        for node in self.nodes:
            if self._dialling(node):
                self._approach(node.name)

    def keep(self, names: Collection[str], probe_time: float = 0.0) -> None:
        """Keep the connections to these nodes, which later phases may ask. `probe_time` is in seconds, beyond the run's
        deadline. To be said before the first phase.
        """
        if names and any(self.engine_for(node).name == SHARED for node in self.nodes):
            names = self.places.keys()  # one script: an agent for all, or for none
        for name in names:
            self.places[name].kept = True
        self.end_of_all = self.deadline + probe_time

    def begin(self, phase: Phase) -> float:
        """Begin a phase on the nodes that are free for it, and return the seconds that it may take."""
        stage = phase.stage if self.stage else "connecting"
        for name in self._free(phase) if stage else ():
            self.observer.stage(name, stage, slow=phase.seconds is not None and phase.meeting)
        end = self.deadline if phase.seconds is None else min(self.end_of_all, time.monotonic() + phase.seconds)
        return max(0.0, end - time.monotonic())

    def ask(self, phase: Phase, questions: Questions) -> Iterator[Evidence]:
        """Ask each node its questions; yield its evidence as it comes, until all came or the phase's time is over.

        What is asked is under way when this returns, and this machine may do something else before it looks.

        The evidence holds the replies to these questions alone. In the first phase every node yields it once, also one
        that could not be reached.
        """
        first = not self.stage
        free = self._free(phase)
        self.stage = self.stage or phase.stage
        if first and not self.dialled:
            self._add_workers(min(self.settings.width, len(self.nodes)))
        requests = _Requests(questions)
        for name in free:
            if first or name in questions:
                self._give(name, *requests.of(name), first=first)
            else:
                self.observer.stage(name, "done")
        self.asked.set()
        if phase.seconds is None:
            return self._answers(min(self.deadline, self.began + phase.until * self.settings.deadline))
        asked = frozenset(name for name in free if name in questions)
        width = len(asked) if phase.meeting else self.settings.width  # who is waited for must not wait for its turn
        self._add_workers(len(self.busy - asked) + min(width, len(asked)))
        return self._answers(min(time.monotonic() + phase.seconds, self.end_of_all), asked)

    def rest(self, why: str) -> Iterator[Evidence]:
        """End the run: yield what is known of the nodes that are still busy, with the reason why it is not more."""
        for name in self.busy:  # before its worker sees the connection close, and says only that
            self._late(self.places[name], why)
        self.end()
        for name in sorted(self.busy):
            yield self._take(name)

    def end(self) -> None:
        """Close every connection; the workers see that and stop. Each node's side ends at end of input."""
        if self.ended:
            return
        with self.taken:
            self.ended = True
            self.taken.notify_all()
        self.asked.set()
        for _ in range(self.workers):
            self.work.put(None)
        for engine in {id(engine): engine for engine in map(self.engine_for, self.nodes)}.values():
            if isinstance(engine, DiallingEngine):
                engine.close()
        for place in self.places.values():
            if place.stream:
                place.stream.close()

    def _free(self, phase: Phase) -> list[str]:
        """Return the phase's nodes that can be asked now: in the first phase all, later those that are connected."""
        if not self.stage:
            return [node.name for node in self.nodes]
        if phase.questions is None:
            return []
        places = ((node.name, self.places[node.name]) for node in self.nodes if node.name in phase.nodes)
        return [name for name, place in places if place.session and name not in self.busy]

    def _add_workers(self, wanted: int) -> None:
        """Let there be so many workers."""
        while self.workers < wanted:
            self.workers += 1
            threading.Thread(target=self._work, daemon=True).start()

    def _give(
        self, name: str, requests: tuple[Request, ...], noted: Sequence[NotAsked | Answered], *, first: bool
    ) -> None:
        """Give a node's requests to a worker; what is answered without it is noted."""
        self.busy.add(name)
        known = self.places[name].known
        for question in noted:
            if isinstance(question, NotAsked):
                known.notes[question.source.key] = question.note
            else:
                known.replies[question.source.key] = question.reply
        if not first:
            self.work.put((name, partial(self._go_on, requests=requests)))
            return
        self.places[name].requests = requests
        if not (self.dialled and self._dialling(known.node)):
            self._approach(name)

    def _approach(self, name: str) -> None:
        """Give a node to a worker once it answers: one that is silent holds none."""
        place = self.places[name]
        engine = self._dialling(place.known.node)

        def then(error: NotConnectedError | None) -> None:
            if error is None:
                self.work.put((name, self._examine))
            elif not self.ended:
                place.known.login = self._blamed(error.login, place.given or 0.0)
                self._done(name)

        if engine is None:
            then(None)
            return
        try:
            engine.approach(place.known.node, self._time_left(), lambda: self._tried(place), then)
        except (OSError, RuntimeError):  # this machine lacks descriptors or threads: connect() will say so
            then(None)

    def _dialling(self, node: Node) -> DiallingEngine | None:
        """Return the node's engine if it dials by itself. To ask that of a protocol takes long, so it is asked once."""
        engine = self.engine_for(node)
        if id(engine) not in self._dials:
            self._dials[id(engine)] = isinstance(engine, DiallingEngine)
        return cast("DiallingEngine", engine) if self._dials[id(engine)] else None

    def _answers(self, until: float, asked: frozenset[str] | None = None) -> Iterator[Evidence]:
        """Yield what the busy nodes answered, until none (of those asked) is busy or the time has come."""
        while self.busy if asked is None else self.busy & asked:
            left = until + _GRACE - time.monotonic()
            try:
                name = self.finished.get(timeout=max(0.0, min(left, _BLINK)))
            except queue.Empty:
                if left <= _BLINK:
                    return
                continue
            yield self._take(name)

    def _take(self, name: str) -> Evidence:
        """Hand on what a node answered, and keep nothing of it."""
        self.busy.discard(name)
        if (waiting := self.finished.qsize()) < _MOST_WAITING:
            with self.taken:  # one worker for each place: a thousand that wake for it cost more than all else
                self.taken.notify(1 if waiting else self.workers)
        place = self.places[name]
        evidence = place.known.evidence()
        place.known.replies.clear()
        place.known.notes.clear()
        return evidence

    # In the workers

    def _work(self) -> None:
        """Take one piece of work after the other."""
        while (piece := self.work.get()) and not self.ended:
            name, task = piece
            try:
                task(name)
            except SessionEndedError as error:
                self._fail(name, error.cause, error.detail)
            except Exception as error:  # noqa: BLE001  one node must not cost the others; our fault, and it says so
                self._fail(name, Cause.TRANSPORT, f"{type(error).__name__}: {error}")
            if not self.ended:
                self._done(name)
            if self.finished.qsize() >= _MOST_WAITING:
                with self.taken:
                    self.taken.wait_for(lambda: self.ended or self.finished.qsize() < _MOST_WAITING)

    def _examine(self, name: str) -> None:
        """Take one node from connecting to its last answer of the first phase."""
        place = self.places[name]
        started = time.monotonic()
        stream = self._connected(place)
        if stream is None:
            return
        place.stream = stream
        self.asked.wait()
        if self.ended:  # the run went on without it: nobody else knows of this connection
            stream.close()
            return
        node = place.known.node
        shared = self.engine_for(node).name == SHARED
        wanted = self._alike(self.settings.environment_of(name), bool(place.requests) or place.kept, shared)
        place.session = session = Session(stream, place.known, wanted, module_text)
        session.greet(started)
        self.observer.stage(name, "logged in")
        if session.wanted.agent:
            self.observer.stage(name, self.stage)
            session.start(*place.requests)

    def _go_on(self, name: str, requests: tuple[Request, ...]) -> None:
        """Ask a node, on the connection that it has, for what a later phase wants of it."""
        session = self.places[name].session
        if session:
            session.collect(*requests)

    def _connected(self, place: _Place) -> Stream | None:
        """Return the stream, or None with the reason noted."""
        left = self._time_left()
        if left <= 0:
            self._late(place, "the run's deadline passed before its turn")
            return None
        place.given = left if place.given is None else place.given
        try:
            node = place.known.node
            return self.engine_for(node).connect(node, left)
        except NotConnectedError as error:
            place.known.login = self._blamed(error.login, min(left, place.given))
            return None

    def _time_left(self) -> float:
        """Return the seconds that a node has to connect if it is tried now."""
        return min(self.settings.connect_timeout, self.deadline - time.monotonic())

    def _tried(self, place: _Place) -> float:
        """Note that a node is tried now."""
        left = self._time_left()
        place.given = left if left > 0 else None
        return left

    @staticmethod
    def _late(place: _Place, why: str) -> None:
        """Note that the run ended before a node was done, or even tried."""
        if place.given is None:
            place.known.fail(Cause.NOT_TRIED, f"not tried: {why}")
        else:
            place.known.fail(Cause.DEADLINE, why)

    def _blamed(self, login: Login, given: float) -> Login:
        """Blame no node that was given less than the full time to connect."""
        if given < self.settings.connect_timeout and login.cause in _OUT_OF_TIME:
            return replace(login, cause=Cause.DEADLINE, detail=f"the run's deadline passed: {login.detail}")
        return login

    def _wanted(self, environment: JobEnvironment, agent: bool, shared: bool) -> SessionTerms:  # noqa: FBT001
        """Return what all nodes with this environment are asked for."""
        return SessionTerms(
            self.nonce, self.end_of_all, agent, self.settings.connect_timeout, self.settings.command_timeout,
            sudo=self.settings.sudo, enter=environment.enter, shared=shared,
            environment=job_environment(environment, self.environ, self.settings.program) if agent else {},
        )  # fmt: skip

    def _fail(self, name: str, cause: Cause, detail: str) -> None:
        """Note why a node goes no further, and be done with it."""
        place = self.places[name]
        place.known.fail(cause, detail)
        place.kept = False

    def _done(self, name: str) -> None:
        """Hand over what a node answered; its connection is kept where a later phase may ask it."""
        place = self.places[name]
        login = place.known.login
        if not place.kept and place.session:
            place.session.bye()
            place.session = None
        if login and login.cause:
            self.observer.login_failed(name, login)
        self.observer.stage(name, "done")  # until a later phase asks it
        self.finished.put(name)
