"""Whether the node has a route to the addresses on which other nodes' NCCL would listen: asked of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import Ip, Null, Words
from ncheck.facts.definition import ASKING_PEERS, Fact, exempt_without_peers
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import NicFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import NodeView
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Absent
from ncheck.model.phase import NotAsked, Questions
from ncheck.nccl.choice import PICK_FACTS, used_addresses
from ncheck.network.subnets import subnet_addresses

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


@dataclass(frozen=True)
class RouteFacts:
    """Each address with the reason why there is no route to it; "" if there is one."""

    routes: Mapping[Ip, Annotated[Words, Null("")]]


def unroutable(facts: Mapping[str, RouteFacts]) -> dict[str, dict[str, str]]:
    """Return the addresses to which some nodes have no route, each with these nodes and why."""
    found: dict[str, dict[str, str]] = {}
    for node, own in facts.items():
        for address, error in own.routes.items():
            if error:
                found.setdefault(address, {})[node] = error
    return found


ROUTES = Answer("routes", shape=RouteFacts)
MADE_FROM = (NicFacts, EnvironmentFacts, *PICK_FACTS)
MOST = 4096  # addresses that one node is asked about
_WHY_NOT = "the addresses that NCCL uses on the other nodes are in subnets of this node"


def ask_routes(cluster: Cluster, _settings: Settings, left: float) -> Questions:
    """Ask each node whose interfaces are known."""
    nics = cluster.connected_facts(NicFacts)
    views = (NodeView(name, {fact: cluster.known[name].get(fact, Absent("")) for fact in MADE_FROM}) for name in nics)
    used = {view.name: used_addresses(view) for view in views}
    listening: dict[str, list[str]] = {}
    for name, held in nics.items():
        for address in (address for address in subnet_addresses(held) if address.ip in used[name]):
            listening.setdefault(address.subnet, []).append(address.ip)
    questions: Questions = {}
    for name, held in nics.items():
        own = {address.subnet for address in subnet_addresses(held)}
        far = (ip for subnet, ips in listening.items() if subnet not in own for ip in ips)
        addresses: list[JsonValue] = [*islice(dict.fromkeys(far), MOST)]
        asked = replace(ROUTES, arguments={"addresses": addresses}, timeout=max(1.0, min(10.0, left - 1.0)))
        questions[name] = (asked if addresses else NotAsked(ROUTES, _WHY_NOT),)
    return questions


FACTS = (
    Fact(
        RouteFacts, (ROUTES,), phase=ASKING_PEERS,
        needs=(LoginFacts, *MADE_FROM), questions=ask_routes, exempt=exempt_without_peers,
    ),
)  # fmt: skip
