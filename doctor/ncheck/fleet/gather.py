"""Evidence of many nodes at once: a bounded fan-out with one deadline, which never raises for a bad node.

Each node has one connection. A run is a few acts: first every node is logged in to and asked for what it can tell of
itself; what needs the others (their addresses, who was reached) is asked in later acts, on the connections that are
open already. An act begins when the nodes have answered the one before, and waits for no straggler for ever.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.engine import LoginFailedError
from ncheck.fleet.session import Known, Session, SessionEndedError, Wanted, job_environment
from ncheck.model.evidence import Cause, Evidence, Login, Reply, Source, Status
from ncheck.model.phase import Act, NotAsked, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ncheck.fleet.engine import Engine, Stream
    from ncheck.model.node import Node
    from ncheck.observer import Observer
    from ncheck.settings import Settings


_RESERVE = 0.04  # of the deadline, kept for judging and printing what came


_GRACE = 0.5  # seconds for the workers to say in their own words where they stood when the deadline came


_BLINK = 0.2  # seconds: a ^C that comes just before a wait does not end it, and Python looks for one after it


_OUT_OF_TIME = frozenset({Cause.FILTERED, Cause.SILENT, Cause.STALLED, Cause.CLOSED})


def gather(  # noqa: PLR0913  the run's inputs, each given by the pipeline
    nodes: Sequence[Node],
    acts: Sequence[Act],
    settings: Settings,
    engine_for: Callable[[Node], Engine],
    observer: Observer,
    *,
    more: Iterable[Act] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Evidence]:
    """Yield each node's evidence once an act that asks it, as it comes: the replies are those of that act alone.

    Every node comes at least once: the first act asks all of them. `more` are acts with `seconds`, each made of what
    came before it: the next one is taken when all of that was yielded. They may ask any node, so every connection is
    kept for them. On ^C what is known of the busy ones is yielded, and KeyboardInterrupt raised after that.
    """
    return _Run(tuple(nodes), tuple(acts), settings, engine_for, observer, dict(environ), more).evidence()


@dataclass
class _Place:
    """One node's place in the run. `acts` counts how many may still ask it."""

    known: Known
    acts: int = 1
    session: Session | None = None
    stream: Stream | None = None


@dataclass
class _Run:
    nodes: tuple[Node, ...]
    acts: tuple[Act, ...]
    settings: Settings
    engine_for: Callable[[Node], Engine]
    observer: Observer
    environ: dict[str, str]
    more: Iterable[Act] | None = None
    places: dict[str, _Place] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)
    workers: int = 0
    ended: bool = False

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.deadline = self.began + self.settings.deadline * (1 - _RESERVE)
        self.end_of_all = self.deadline + (0.0 if self.more is None else self.settings.probe_time)
        self.nonce = os.urandom(8).hex()
        self.finished: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.work: queue.SimpleQueue[tuple[Callable[..., None], str, tuple[Source, ...]] | None] = queue.SimpleQueue()

    def evidence(self) -> Iterator[Evidence]:
        """Yield what comes until all came, the deadline did, or the user has had enough."""
        self.begin()
        try:
            for number, act in enumerate(self.acts):
                self.open(act, first=number == 0)
                last = number == len(self.acts) - 1
                yield from self.answers(self.deadline if last else self.began + act.until * self.settings.deadline)
            yield from self.answers(self.deadline)
            for act in self.more or ():
                asked = self.open(act)
                yield from self.answers(min(time.monotonic() + (act.seconds or 0.0), self.end_of_all), asked)
            yield from self.rest("the run's deadline came")
        except KeyboardInterrupt:
            yield from self.rest("ncheck was interrupted")
            raise
        finally:
            self.end()

    def begin(self) -> None:
        """Give every node its place, and start the workers."""
        for node in self.nodes:
            acts = sum(node.name in act.nodes for act in self.acts) + (self.more is not None)
            self.places[node.name] = _Place(Known(node), acts)
        self.hire(min(self.settings.width, len(self.nodes)))

    def hire(self, wanted: int) -> None:
        """Let there be so many workers."""
        while self.workers < wanted:
            self.workers += 1
            threading.Thread(target=self.toil, daemon=True).start()

    def open(self, act: Act, *, first: bool = False) -> frozenset[str]:
        """Begin an act with the nodes that are free for it, and return those."""
        end = self.deadline if act.seconds is None else min(self.end_of_all, time.monotonic() + act.seconds)
        names = [node.name for node in self.nodes if node.name in act.nodes]
        free = [name for name in names if first or (self.places[name].session and name not in self.busy)]
        for name in free:  # before it is asked: a program of the head may run all of the act in there
            self.observer.stage(name, "connecting" if first else act.stage)
        questions = act.ask(max(0.0, end - time.monotonic()))
        for name in names:
            self.places[name].acts -= act.seconds is None
        asked = frozenset(name for name in free if first or name in questions)
        for name in free:
            if name in asked:
                self.begin_with(name, questions.get(name, ()), first=first)
            else:
                self.observer.stage(name, "done")
        if act.seconds is not None:  # those that it asks wait for one another: none may wait for its turn
            self.hire(len(self.busy))
        return asked

    def begin_with(self, name: str, questions: tuple[Source | NotAsked | Told, ...], *, first: bool) -> None:
        """Give a node its part of an act to a worker."""
        self.busy.add(name)
        sources = self.spared(self.places[name], questions)
        self.work.put((self.examine if first else self.go_on, name, sources))

    @staticmethod
    def spared(place: _Place, questions: tuple[Source | NotAsked | Told, ...]) -> tuple[Source, ...]:
        """Return what is to be asked, and note what is not."""
        for question in questions:
            if isinstance(question, NotAsked):
                place.known.replies[question.source.key] = Reply(Status.NOT_ASKED, question.reason)
            elif isinstance(question, Told):
                place.known.replies[question.source.key] = question.reply
        return tuple(question for question in questions if not isinstance(question, NotAsked | Told))

    def answers(self, until: float, asked: frozenset[str] | None = None) -> Iterator[Evidence]:
        """Yield what the busy nodes answered, until none (of those asked) is busy or the time has come."""
        while self.busy if asked is None else self.busy & asked:
            left = until + _GRACE - time.monotonic()
            try:
                name = self.finished.get(timeout=max(0.0, min(left, _BLINK)))
            except queue.Empty:
                if left <= _BLINK:
                    return
                continue
            yield self.take(name)

    def take(self, name: str) -> Evidence:
        """Hand on what a node answered, and keep nothing of it."""
        self.busy.discard(name)
        place = self.places[name]
        evidence = place.known.evidence()
        place.known.replies.clear()
        return evidence

    def rest(self, why: str) -> Iterator[Evidence]:
        """Yield what is known of the nodes that did not come to an end."""
        for name in self.busy:  # before its worker sees the connection close, and says only that
            self.places[name].known.fail(Cause.DEADLINE, why)
        self.end()
        for name in sorted(self.busy):
            yield self.take(name)

    def end(self) -> None:
        """Close every connection; the workers see that and stop. Each node's side ends at end of input."""
        self.ended = True
        for _ in range(self.workers):
            self.work.put(None)
        for place in self.places.values():
            if place.stream:
                place.stream.close()

    # In the workers

    def toil(self) -> None:
        """Take one piece of work after the other."""
        while (piece := self.work.get()) and not self.ended:
            task, name, sources = piece
            try:
                task(name, sources)
            except SessionEndedError as error:
                self.fail(name, error.cause, error.detail)
            except Exception as error:  # noqa: BLE001  one node must not cost the others; our fault, and it says so
                self.fail(name, Cause.TRANSPORT, f"{type(error).__name__}: {error}")
            if not self.ended:
                self.done(name)

    def examine(self, name: str, sources: tuple[Source, ...]) -> None:
        """Take one node from connecting to its last answer of the first act."""
        place = self.places[name]
        started = time.monotonic()
        stream = self.connected(place)
        if stream is None:
            return
        place.stream = stream
        if self.ended:  # the run went on without it: nobody else knows of this connection
            stream.close()
            return
        place.session = session = Session(stream, place.known, self.wanted(name, sources), module_text)
        session.greet(started)
        self.observer.stage(name, "logged in")
        if session.wanted.agent:
            session.start()
            self.observer.stage(name, self.acts[0].stage)
            session.collect(sources)

    def go_on(self, name: str, sources: tuple[Source, ...]) -> None:
        """Ask a node, on the connection that it has, for what a later act wants of it."""
        session = self.places[name].session
        if session:
            session.collect(sources)

    def connected(self, place: _Place) -> Stream | None:
        """Return the stream, or None with the reason noted."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            place.known.fail(Cause.DEADLINE, "the run's deadline came before its turn")
            return None
        try:
            node = place.known.node
            return self.engine_for(node).connect(node, min(self.settings.connect_timeout, left))
        except LoginFailedError as error:
            place.known.login = self.blamed(error.login, left)
            return None

    def blamed(self, login: Login, left: float) -> Login:
        """Blame no node that was given less than the full time to connect."""
        if left < self.settings.connect_timeout and login.cause in _OUT_OF_TIME:
            return replace(login, cause=Cause.DEADLINE, detail=f"the run's deadline came: {login.detail}")
        return login

    def wanted(self, name: str, sources: tuple[Source, ...]) -> Wanted:
        """Return what this node is asked for; one that only later acts ask needs the agent too."""
        agent = bool(sources) or self.places[name].acts > 0
        environment = self.settings.environment_of(name)
        return Wanted(
            self.nonce, self.end_of_all, agent, self.settings.connect_timeout, self.settings.command_timeout,
            sudo=self.settings.sudo, enter=environment.enter,
            environment=job_environment(environment, self.environ) if agent else {},
        )  # fmt: skip

    def fail(self, name: str, cause: Cause, detail: str) -> None:
        """Note why a node goes no further, and be done with it."""
        place = self.places[name]
        place.known.fail(cause, detail)
        place.acts = 0

    def done(self, name: str) -> None:
        """Hand over what a node answered; its connection is kept where an act to come may ask it."""
        place = self.places[name]
        login = place.known.login
        if place.acts <= 0 and place.session:
            place.session.bye()
            place.session = None
        if login and login.cause:
            self.observer.login_failed(name, login)
        self.observer.stage(name, "done")  # until an act to come asks it
        self.finished.put(name)
