"""Whether this node's kernel knows a route to where other nodes' NCCL would wait: asked, and nothing was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import islice
from typing import TYPE_CHECKING

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.reader import LONGEST, Reader, no_answer
from ncheck.facts.shapes import mapping, words
from ncheck.model.cluster import NodeView
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Absent, Read
from ncheck.model.phase import NotAsked, Questions
from ncheck.nccl.picks import MADE_OF, picked_addresses
from ncheck.network.subnets import subnet_addresses

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster


@dataclass(frozen=True)
class RouteFacts:
    """The addresses that were asked about, each with why there is no route to it; "" where there is one."""

    routes: Mapping[str, str]


ROUTES = Answer("routes")


def routes(evidence: Evidence) -> Read[RouteFacts]:
    """Read them; a node of whose subnets all picks are was not asked, and is Absent."""
    reply = evidence.reply(ROUTES)
    if why := no_answer(ROUTES, reply):
        return why
    said = mapping(mapping(reply.value)["routes"])
    return RouteFacts({str(ip_address(address)): _why(none) for address, none in said.items()})


def _why(none: JsonValue) -> str:
    return "" if none is None else words(none)[:LONGEST]


READERS = (Reader(RouteFacts, (ROUTES,), routes),)


MADE_FROM = (NicFacts, EnvironmentFacts, *MADE_OF)


MOST = 4096  # addresses that one node is asked about


_WHY_NOT = "wherever NCCL picks on the other nodes lies in a subnet of its own"


def ask_routes(cluster: Cluster, left: float) -> Questions:
    """Ask each node whose interfaces are known."""
    nics = cluster.connected_facts(NicFacts)
    views = (NodeView(name, {fact: cluster.known[name].get(fact, Absent("")) for fact in MADE_FROM}) for name in nics)
    picks = picked_addresses(views)
    questions: Questions = {}
    for name, held in nics.items():
        own = {seat.subnet for seat in subnet_addresses(held)}
        far = (seat.ip for other, seat in picks.items() if other != name and seat.subnet not in own)
        addresses: list[JsonValue] = [*islice(dict.fromkeys(far), MOST)]
        asked = replace(ROUTES, arguments={"addresses": addresses}, timeout=max(1.0, min(10.0, left - 1.0)))
        questions[name] = (asked if addresses else NotAsked(ROUTES, _WHY_NOT),)
    return questions
