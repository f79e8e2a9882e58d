"""This machine under many names, by ways whose connections do as they are told."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ncheck.fleet.engine import Engine, NotConnectedError, Stream
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.fleet import Fleet
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Command, Evidence, Login, Source
from ncheck.model.node import Node
from ncheck.model.phase import Phase, Questions
from ncheck.observer import Observer, Silent
from ncheck.settings import Settings

HELLO = Command(("echo", "hello"))


@dataclass
class Ways:
    """This machine under many names; some of them fail as they are told to, or wait for an event."""

    name: str = "ways"
    failing: dict[str, Cause | Exception] = field(default_factory=dict)
    waiting: dict[str, threading.Event] = field(default_factory=dict)
    connected: int = 0
    open_at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def connect(self, node: Node, timeout: float) -> Stream:
        with self.lock:
            self.connected += 1
            self.open_at_once += 1
            self.most_at_once = max(self.most_at_once, self.open_at_once)
        try:
            if event := self.waiting.get(node.name):
                event.wait(timeout)
            why = self.failing.get(node.name)
            if isinstance(why, Exception):
                raise why
            if why:
                raise NotConnectedError(Login(reached=False, cause=why, detail="scripted"))
            return LocalEngine().connect(node, timeout)
        finally:
            with self.lock:
                self.open_at_once -= 1


@dataclass
class Told(Silent):
    """An observer that keeps what it was told."""

    failed: list[tuple[str, Cause | None]] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)

    def stage(self, node: str, stage: str, *, slow: bool = False) -> None:  # noqa: ARG002
        self.last[node] = stage

    def login_failed(self, node: str, login: Login) -> None:
        self.failed.append((node, login.cause))


def nodes(*names: str) -> tuple[Node, ...]:
    return tuple(Node(name) for name in names)


def phase(
    stage: str,
    nodes: Iterable[str],
    ask: Callable[[float], Questions],
    until: float = 1.0,
    seconds: float | None = None,
) -> Phase:
    """Return a phase whose questions need nothing of the cluster."""
    return Phase(stage, frozenset(nodes), lambda _cluster, left: ask(left), until, seconds)


def first(names: Sequence[str], sources: Sequence[Source]) -> Phase:
    return phase("collecting", names, lambda _: dict.fromkeys(names, tuple(sources)))


def asked(  # noqa: PLR0913  the inputs of a fleet, and what it is asked
    nodes: Sequence[Node],
    phases: Sequence[Phase],
    settings: Settings,
    engine_for: Callable[[Node], Engine],
    observer: Observer,
    *,
    more: Iterable[Phase] | None = None,
) -> Iterator[Evidence]:
    """Yield all evidence of these phases, then of `more`, one by one as a pipeline takes them."""
    later = frozenset().union(*(one.nodes for one in phases[1:]))
    kept, probe_time = (later, 0.0) if more is None else (frozenset(n.name for n in nodes), settings.probe_time)
    with Fleet(nodes, settings, engine_for, observer) as fleet:
        fleet.keep(kept, probe_time)
        try:
            for one in (*phases, Phase("waiting", frozenset(), None)):
                yield from _asked(fleet, one)
            for one in more or ():
                yield from _asked(fleet, one)
            yield from fleet.rest("the run's deadline passed")
        except KeyboardInterrupt:
            yield from fleet.rest("ncheck was interrupted")
            raise


def _asked(fleet: Fleet, one: Phase) -> Iterator[Evidence]:
    seconds = fleet.begin(one)
    yield from fleet.ask(one, one.questions(Cluster((), {}), seconds) if one.questions else {})


def collected(
    names: Sequence[str], sources: Sequence[Source], ways: Ways, settings: Settings | None = None
) -> dict[str, Evidence]:
    run = asked(nodes(*names), [first(names, sources)], settings or Settings(), lambda _: ways, Told())
    return {evidence.node: evidence for evidence in run}


def interrupted(run: Iterator[Evidence]) -> None:
    """Press ^C while the run is waited for, and at no other time: it would end the tests."""
    assert inspect.isgenerator(run)
    while inspect.getgeneratorstate(run) != inspect.GEN_RUNNING:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
