"""Node to node over TCP: where each node listens, and how the links went that it tried."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.collect.shapes import items, mapping, node, port, truth, whole, words
from doctor.hostlist import quoted
from doctor.model.evidence import Answer, Evidence, JsonValue
from doctor.model.fact import Read
from doctor.model.facts import Link, LinkCause, LinkFacts, ListenFacts, PortState, Reach

LISTEN, CONNECT = Answer("listen"), Answer("connect")
_MOST_TOLD = 4096  # links: an agent tells no more of them one by one
_MOST_PORTS = 1024  # that a job was said to need


def listening(evidence: Evidence) -> Read[ListenFacts]:
    """Read where the node listens, and which of the job's ports are free there."""
    reply = evidence.reply(LISTEN)
    if why := no_answer(LISTEN, reply):
        return why
    said = mapping(reply.value)
    return ListenFacts(
        {_address(ip): port(at) for ip, at in mapping(said["ports"]).items()},
        {_address(ip): _words(why) for ip, why in mapping(said["failed"]).items()},
        tuple(_state(mapping(state)) for state in items(said["needed"], _MOST_PORTS)),
    )


def links(evidence: Evidence) -> Read[LinkFacts]:
    """Read every link that the node tried."""
    reply = evidence.reply(CONNECT)
    if why := no_answer(CONNECT, reply):
        return why
    said = mapping(reply.value)
    return LinkFacts(
        tuple(_reach(mapping(reach)) for reach in items(said["reaches"], _MOST_TOLD)),
        tuple(_link(mapping(link)) for link in items(said["broken"], _MOST_TOLD)),
        frozenset(node(name) for name in items(said["tried"])),
    )


def _state(said: Mapping[str, JsonValue]) -> PortState:
    return PortState(
        port(said["port"]), truth(said["free"]), _words(said["taken_by"]), _words(said["error"]),
        truth(said["assumed"]),
    )  # fmt: skip


def _link(said: Mapping[str, JsonValue]) -> Link:
    return Link(
        _address(said["source"]), node(said["target"]), _address(said["address"]), _subnet(said["subnet"]),
        LinkCause(said["cause"]), _words(said["detail"]), port(said["port"]) if said["port"] else 0,
    )  # fmt: skip


def _reach(said: Mapping[str, JsonValue]) -> Reach:
    """Read one fold of links. Raises ValueError where more was reached than was tried."""
    tried, reached = whole(said["tried"]), whole(said["reached"])
    if reached > tried:
        raise ValueError(f"{reached} reached of {tried} tried")
    return Reach(_subnet(said["subnet"]), _address(said["source"]), tried, reached)


# What a node may say


def _address(value: JsonValue) -> str:
    return _own_words(str(value))


@lru_cache(maxsize=8192)  # each address comes with every link from it, and to it
def _own_words(address: str) -> str:
    """Return an address as ipaddress writes it. Raises ValueError for a zone, in which anything may stand."""
    if "%" in address:
        raise ValueError(f"{quoted(address)} bears a zone, and no link is tried by one")
    return str(ip_address(address))


def _subnet(value: JsonValue) -> str:
    return _network(str(value)) if value else ""


@lru_cache(maxsize=8192)
def _network(subnet: str) -> str:
    return str(ip_network(subnet))


def _words(value: JsonValue) -> str:
    return words(value)[:LONGEST]


READERS = (Reader(ListenFacts, (LISTEN,), listening), Reader(LinkFacts, (CONNECT,), links))
