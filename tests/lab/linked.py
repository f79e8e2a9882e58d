"""The mesh over bare hosts: the real run's own acts, and the facts that they bring."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ncheck.facts.links import CONNECT, LinkFacts, ListenFacts
from ncheck.facts.parsing import facts_of, joined
from ncheck.fleet.engines import engines
from ncheck.fleet.gather import gather
from ncheck.inventory.read import read_inventory
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Reply
from ncheck.model.phase import Act, Questions
from ncheck.observer import Observer, Silent
from ncheck.phases import acts_for, brought, with_needs
from ncheck.settings import JobEnvironment, Settings

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
    """Ask all hosts about their links. `before` is told of each act as it begins: "2 asking its peers"."""
    run = replace(_patient(made, deadline), **settings)  # type: ignore[arg-type]
    nodes = read_inventory(run, stdin=io.BytesIO(), environ={})
    known: dict[str, dict[type, object]] = {}
    replies: dict[str, Reply] = {}
    acts = [_told(act, number, before) for number, act in enumerate(acts_for(Cluster(nodes, known, run), _WANTED))]
    for evidence in gather(nodes, acts, run, engines(run), observer or Silent()):
        first = evidence.node not in known
        facts = known.setdefault(evidence.node, {})
        facts.update(joined(facts, facts_of(evidence, brought(evidence, _WANTED, first=first))))
        if CONNECT.key in evidence.replies:
            replies[evidence.node] = evidence.replies[CONNECT.key]
    return Linked(known, replies)


def _patient(made: BareHosts, deadline: float) -> Settings:
    return Settings(
        hosts=",".join(host.name for host in made.hosts), environment=JobEnvironment(rsh=made.rsh),
        connect_timeout=60.0, command_timeout=60.0, deadline=deadline, width=len(made.hosts),
    )  # fmt: skip


def _told(act: Act, number: int, before: Callable[[str], object]) -> Act:
    def ask(left: float) -> Questions:
        before(f"{number} {act.stage}")
        return act.ask(left)

    return replace(act, ask=ask)
