"""The mesh over bare hosts: the real run's own acts, and the facts that they bring."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ncheck.facts.learning import learn
from ncheck.facts.links import CONNECT, LinkFacts, ListenFacts
from ncheck.fleet.engines import engines
from ncheck.fleet.fleet import Fleet
from ncheck.inventory.read import read_inventory
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Reply
from ncheck.observer import Observer, Silent
from ncheck.settings import JobEnvironment, Settings
from ncheck.steps.phases import asked_later, collection_phases, with_needs

from .wires import BareHosts

_WANTED = with_needs((ListenFacts, LinkFacts))


@dataclass(frozen=True)
class Linked:
    """What a run brought: each node's facts, and its reply about its links."""

    facts: Mapping[str, Mapping[type, object]]
    replies: Mapping[str, Reply]

    def links(self, node: str) -> LinkFacts:
        found = self.facts[node][LinkFacts]
        assert isinstance(found, LinkFacts), found
        return found


def linked(
    made: BareHosts,
    *,
    before: Callable[[str], object] = str,
    observer: Observer | None = None,
    deadline: float = 240.0,
    **settings: object,
) -> Linked:
    """Ask all hosts about their links. `before` is called with each phase as it begins: "2 asking its peers"; when all
    are over, with "end".
    """
    run = replace(_patient(made, deadline), **settings)  # type: ignore[arg-type]
    nodes = read_inventory(run, stdin=io.BytesIO(), environ={})
    cluster = Cluster(nodes, {})
    replies: dict[str, Reply] = {}
    phases = collection_phases(cluster, _WANTED, run)
    with Fleet(nodes, run, engines(run), observer or Silent()) as fleet:
        fleet.keep(asked_later(phases, cluster))
        for number, phase in enumerate(phases):
            before(f"{number} {phase.stage}")
            seconds = fleet.begin(phase)
            questions = phase.questions(cluster, seconds) if phase.questions else {}
            cluster = learn(cluster, _kept(fleet.ask(phase, questions), replies), _WANTED)
        before("end")
        cluster = learn(cluster, _kept(fleet.rest("the run's deadline passed"), replies), _WANTED)
    return Linked(cluster.known, replies)


def _kept(evidence: Iterable[Evidence], replies: dict[str, Reply]) -> Iterator[Evidence]:
    """Keep each node's reply about its links as it passes."""
    for one in evidence:
        if CONNECT.key in one.replies:
            replies[one.node] = one.replies[CONNECT.key]
        yield one


def _patient(made: BareHosts, deadline: float) -> Settings:
    return Settings(
        hosts=",".join(host.name for host in made.hosts), environment=JobEnvironment(rsh=made.rsh),
        connect_timeout=60.0, command_timeout=60.0, deadline=deadline, width=len(made.hosts),
    )  # fmt: skip
