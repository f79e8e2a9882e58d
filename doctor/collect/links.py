"""Node to node over TCP: where each node listens, and how the links went that it tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.hostlist import is_name, is_v6, quoted
from doctor.model.evidence import Answer, Evidence, JsonValue
from doctor.model.fact import Read
from doctor.model.facts import Link, LinkCause, LinkFacts, ListenFacts, PortState, Reach

LISTEN, CONNECT = Answer("listen"), Answer("connect")
_MOST = 65536  # of anything in one answer: more is no cluster but a flood
_MOST_TOLD = 4096  # links: an agent tells no more of them one by one
_MOST_PORTS = 1024  # that a job was said to need
_LARGEST_PORT = 65535


def listening(evidence: Evidence) -> Read[ListenFacts]:
    """Read where the node listens, and which of the job's ports are free there."""
    reply = evidence.reply(LISTEN)
    if why := no_answer(LISTEN, reply):
        return why
    said = _mapping(reply.value)
    return ListenFacts(
        {_address(ip): _port(port) for ip, port in _mapping(said["ports"]).items()},
        {_address(ip): _words(why) for ip, why in _mapping(said["failed"]).items()},
        tuple(_state(_mapping(state)) for state in _list(said["needed"], _MOST_PORTS)),
    )


def links(evidence: Evidence) -> Read[LinkFacts]:
    """Read every link that the node tried."""
    reply = evidence.reply(CONNECT)
    if why := no_answer(CONNECT, reply):
        return why
    said = _mapping(reply.value)
    return LinkFacts(
        tuple(_reach(_mapping(reach)) for reach in _list(said["reaches"], _MOST_TOLD)),
        tuple(_link(_mapping(link)) for link in _list(said["broken"], _MOST_TOLD)),
        frozenset(_node(name) for name in _list(said["tried"])),
    )


def _state(said: Mapping[str, JsonValue]) -> PortState:
    return PortState(
        _port(said["port"]), _truth(said["free"]), _words(said["taken_by"]), _words(said["error"]),
        _truth(said["assumed"]),
    )  # fmt: skip


def _link(said: Mapping[str, JsonValue]) -> Link:
    return Link(
        _address(said["source"]), _node(said["target"]), _address(said["address"]), _subnet(said["subnet"]),
        LinkCause(said["cause"]), _words(said["detail"]), _port(said["port"]) if said["port"] else 0,
    )  # fmt: skip


def _reach(said: Mapping[str, JsonValue]) -> Reach:
    """Read one fold of links. Raises ValueError where more was reached than was tried."""
    tried, reached = _count(said["tried"]), _count(said["reached"])
    if reached > tried:
        raise ValueError(f"{reached} reached of {tried} tried")
    to = _node(said["slowest_to"]) if said["slowest_to"] else ""
    return Reach(
        _subnet(said["subnet"]), _address(said["source"]), tried, reached, _seconds(said["round_trip"]),
        _seconds(said["slowest"]), to,
    )  # fmt: skip


# What a node may say


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        raise TypeError("no mapping stands where one should")
    _list(list(value))
    return value


def _list(value: JsonValue, most: int = _MOST) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError("no list stands where one should")
    if len(value) > most:
        raise ValueError(f"{len(value)} of one kind in an answer are more than any cluster has")
    return value


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


def _node(value: JsonValue) -> str:
    if not isinstance(value, str) or not (is_name(value) or is_v6(value)):
        raise ValueError(f"{quoted(str(value))} is no node")
    return value


def _port(value: JsonValue) -> int:
    if _count(value) not in range(1, _LARGEST_PORT + 1):
        raise ValueError(f"{value} is no port")
    return _count(value)


def _count(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("no number stands where one should")
    return value


def _seconds(value: JsonValue) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise TypeError("no seconds stand where they should")
    return float(value)


def _truth(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false stands where one should")
    return value


def _words(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError("no words stand where they should")
    return value[:LONGEST]


READERS = (Reader(ListenFacts, (LISTEN,), listening), Reader(LinkFacts, (CONNECT,), links))
