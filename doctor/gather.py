"""Evidence of many nodes at once: a bounded fan-out with one deadline, which never raises for a bad node.

Each node has one connection. A worker takes it as far as it goes; nodes that open ssh to others are then set aside,
with no thread, until every login is settled, and asked for their peers on the same connection.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from doctor.mesh.edges import edges
from doctor.model.evidence import Answer, Cause, Evidence, JsonValue, Login, Reply, Source, Status
from doctor.open_files import allow_open_files
from doctor.own_interpreter import job_environment
from doctor.transport.link import LoginFailedError
from doctor.transport.modules import module_text
from doctor.transport.session import Known, Session, SessionEndedError, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from doctor.model.node import Node
    from doctor.observer import Observer
    from doctor.settings import Settings
    from doctor.transport.link import Stream, Transport

PEERS = Answer("ssh-peers")
_RESERVE = 0.04  # of the deadline, kept for judging and printing what came
_GRACE = 0.5  # seconds for the workers to say in their own words where they stood when the deadline came
_FILES_PER_NODE = 6  # a socket, or three pipes and what their making needs
_LEAST_FOR_A_PEER = 3.0  # seconds for one node's login to another, where many are to be tried
_OUT_OF_TIME = frozenset({Cause.FILTERED, Cause.SILENT, Cause.STALLED, Cause.CLOSED})


def gather(  # noqa: PLR0913  the run's inputs, each given by the pipeline
    nodes: Sequence[Node],
    sources: Iterable[Source],
    settings: Settings,
    transport_for: Callable[[Node], Transport],
    observer: Observer,
    *,
    peers: Mapping[int, tuple[int, ...]] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Evidence]:
    """Yield each node's evidence as it is complete, every node once.

    Where `sources` hold Answer("ssh-peers"), the edges are those of settings.mesh, unless `peers` names others (by the
    nodes' places). On ^C what is known of every node is yielded, and KeyboardInterrupt raised after that.
    """
    wanted = tuple(sources)
    run = _Run(tuple(nodes), wanted, settings, transport_for, observer, dict(environ))
    if PEERS in wanted:
        run.edges = edges(len(run.nodes), settings.mesh) if peers is None else dict(peers)
    allow_open_files(_FILES_PER_NODE * (min(settings.width, len(run.nodes)) + len(run.edges)))
    run.begin()
    return run.evidence()


@dataclass
class _Place:
    """One node's place in the run."""

    known: Known
    session: Session | None = None
    stream: Stream | None = None
    settled: bool = False  # whether it can be logged in to is known
    asides: bool = False  # it waits for the others' logins


@dataclass
class _Run:
    nodes: tuple[Node, ...]
    sources: tuple[Source, ...]
    settings: Settings
    transport_for: Callable[[Node], Transport]
    observer: Observer
    environ: dict[str, str]
    edges: dict[int, tuple[int, ...]] = field(default_factory=dict)
    places: dict[int, _Place] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    unsettled: int = 0
    deadline: float = 0.0
    ended: bool = False

    def begin(self) -> None:
        """Start the workers."""
        self.deadline = time.monotonic() + self.settings.deadline * (1 - _RESERVE)
        self.nonce = os.urandom(8).hex()
        self.lock = threading.Lock()
        self.finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.work: queue.SimpleQueue[tuple[Callable[[int], None], int] | None] = queue.SimpleQueue()
        self.unsettled = len(self.nodes)
        self.first_round = tuple(source for source in self.sources if source != PEERS)
        for number, node in enumerate(self.nodes):
            self.places[number] = _Place(Known(node))
            self.work.put((self.examine, number))
        for _ in range(min(self.settings.width, len(self.nodes))):
            threading.Thread(target=self.toil, daemon=True).start()

    def evidence(self) -> Iterator[Evidence]:
        """Yield what comes until all came, the deadline did, or the user has had enough."""
        try:
            while self.places:
                left = self.deadline + _GRACE - time.monotonic()
                yield self.take(self.finished.get(timeout=max(0.0, left)))
        except queue.Empty:
            yield from self.rest("the run's deadline came")
        except KeyboardInterrupt:
            yield from self.rest("ncheck was interrupted")
            raise
        finally:
            self.end()

    def take(self, number: int) -> Evidence:
        """Hand a node's evidence on, and keep nothing of it."""
        return self.places.pop(number).known.evidence()

    def rest(self, why: str) -> Iterator[Evidence]:
        """Yield what is known of the nodes that did not come to an end."""
        self.end()
        for number in sorted(self.places):
            self.places[number].known.fail(Cause.DEADLINE, why)
            yield self.take(number)

    def end(self) -> None:
        """Close every connection; the workers see that and stop. Each node's side ends at end of input."""
        self.ended = True
        for _ in range(self.settings.width):
            self.work.put(None)
        for place in list(self.places.values()):
            if place.stream:
                place.stream.close()

    # In the workers

    def toil(self) -> None:
        """Take one piece of work after the other."""
        while (piece := self.work.get()) and not self.ended:
            task, number = piece
            place = self.places.get(number)
            if place is None:
                continue
            try:
                task(number)
            except SessionEndedError as error:
                place.known.fail(error.cause, error.detail)
                self.close(number)
            except Exception as error:  # noqa: BLE001  one node must not cost the others; our fault, and it says so
                place.known.fail(Cause.TRANSPORT, f"{type(error).__name__}: {error}")
                self.close(number)

    def examine(self, number: int) -> None:
        """Take one node from connecting to its last answer of the first round."""
        place, node = self.places[number], self.nodes[number]
        self.observer.stage(node.name, "connecting")
        started = time.monotonic()
        stream = self.connected(place)
        if stream is None:
            self.close(number)
            return
        place.stream = stream
        if self.ended:  # the run went on without it: nobody else knows of this connection
            stream.close()
            return
        place.session = session = Session(stream, place.known, self.wanted(number), module_text)
        session.greet(started)
        self.settle(number, reached=True)
        self.observer.stage(node.name, "logged in")
        if session.wanted.agent:
            session.start()
            self.observer.stage(node.name, "collecting")
            session.collect(self.first_round)
        self.set_aside(number) if number in self.edges else self.close(number)

    def connected(self, place: _Place) -> Stream | None:
        """Return the stream, or None with the reason noted."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            place.known.fail(Cause.DEADLINE, "the run's deadline came before its turn")
            return None
        try:
            node = place.known.node
            return self.transport_for(node).connect(node, min(self.settings.connect_timeout, left))
        except LoginFailedError as error:
            place.known.login = self.blamed(error.login, left)
            return None

    def blamed(self, login: Login, left: float) -> Login:
        """Blame no node that was given less than the full time to connect."""
        if left < self.settings.connect_timeout and login.cause in _OUT_OF_TIME:
            return replace(login, cause=Cause.DEADLINE, detail=f"the run's deadline came: {login.detail}")
        return login

    def wanted(self, number: int) -> Wanted:
        """Return what this node is asked for; one that only opens ssh to others needs the agent for that."""
        environment = self.settings.environment_of(self.nodes[number].name)
        return Wanted(
            self.first_round or ((PEERS,) if number in self.edges else ()), self.nonce, self.deadline,
            self.settings.connect_timeout, self.settings.command_timeout, sudo=self.settings.sudo,
            enter=environment.enter, environment=job_environment(environment, self.environ),
        )  # fmt: skip

    def settle(self, number: int, *, reached: bool) -> None:
        """Note that this node's login is settled; the last one sets the waiting nodes going."""
        with self.lock:
            place = self.places.get(number)
            if place is None or place.settled:
                return
            place.settled = True
            self.unsettled -= 1
            if reached:
                self.reached.add(number)
            if self.unsettled == 0:
                for other, waiting in self.places.items():
                    if waiting.asides:
                        self.work.put((self.ask_peers, other))

    def set_aside(self, number: int) -> None:
        """Wait for the others' logins without holding a worker."""
        with self.lock:
            self.places[number].asides = True
            if self.unsettled == 0:
                self.work.put((self.ask_peers, number))

    def ask_peers(self, number: int) -> None:
        """Second round: this node's own ssh to the others that can be logged in to at all."""
        place = self.places[number]
        self.observer.stage(self.nodes[number].name, "asking its peers")
        targets: list[JsonValue] = [self.peer(other) for other in self.edges[number] if other in self.reached]
        if targets and place.session:
            left = self.deadline - time.monotonic()
            each = min(self.settings.connect_timeout, max(_LEAST_FOR_A_PEER, left / (1 + len(targets) // 6)))
            asked: JsonValue = {"peers": targets, "timeout": each}
            place.session.collect((replace(PEERS, arguments=asked, timeout=max(1.0, left - 1.0)),))
        else:
            place.known.replies[PEERS.key] = Reply(Status.OK, value={"peers": {}})
        self.close(number)

    def peer(self, number: int) -> JsonValue:
        """Return how a node is reached, as the listing names it."""
        node = self.nodes[number]
        port, user = node.port or self.settings.port, node.user or self.settings.user
        return {"target": node.name, "host": node.name, "port": port, "user": user}

    def close(self, number: int) -> None:
        """Be done with one node, unless the run is done with it already."""
        place, name = self.places.get(number), self.nodes[number].name
        self.settle(number, reached=False)
        if place is None:
            return
        if place.session:
            place.session.bye()
        login = place.known.login
        if PEERS in self.sources and number not in self.edges and login and login.cause is None:
            place.known.replies[PEERS.key] = Reply(Status.OK, value={"peers": {}})
        if login and login.cause:
            self.observer.login_failed(name, login)
        self.observer.stage(name, "done")
        self.finished.put(number)
