"""Node to node over TCP: where a node listened, whom it reached from which address, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import TYPE_CHECKING

from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.reader import LONGEST, Reader, no_answer
from ncheck.facts.shapes import items, mapping, node, port, truth, whole, words
from ncheck.hostlist import quoted
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read
from ncheck.model.phase import NotAsked, Questions
from ncheck.model.plan import MEETING_PORTS
from ncheck.network.subnets import SubnetAddress, clashing, doubles, machines, subnet_addresses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


class LinkCause(str, Enum):
    """Why a link does not carry data."""

    REFUSED = "refused"  # RST: something on the way answers for the listener that is there
    FILTERED = "filtered"  # no answer to SYN within the time: packets are dropped
    UNROUTABLE = "unroutable"  # no route, host or network unreachable
    LARGE_LOST = "large-lost"  # it connects and small messages pass, large ones from here never arrive
    LARGE_LOST_BACK = "large-lost-back"  # the same, of what comes back
    CUT = "cut"  # it connected and was reset or closed in the middle
    STRANGER = "stranger"  # something else answered at that address
    UNTRIED = "untried"  # there was no time left: infrastructure


@dataclass(frozen=True)
class Link:
    """One way: from an address of this node to an address and port of another. `subnet` is "" where routers join them.

    `port` is 0 for the mesh's own listener, else the port that the job needs there.
    """

    source: str
    target: str  # the other node's name
    address: str
    subnet: str
    cause: LinkCause
    detail: str = ""
    port: int = 0


@dataclass(frozen=True)
class Reach:
    """How many addresses of others one address of this node reached in one subnet."""

    subnet: str
    source: str
    tried: int
    reached: int


@dataclass(frozen=True)
class LinkFacts:
    """All that this node tried: how many went well, by subnet and own address, and each that did not.

    `tried_to` are the nodes that were tried at all: silence of others about them says nothing.
    """

    reaches: tuple[Reach, ...]
    broken: tuple[Link, ...] = ()
    tried_to: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PortState:
    """One port that the job needs on this node, as a bind of it went: `taken` by whom ("python3 (pid 4711) of ada")."""

    port: int
    free: bool
    taken_by: str = ""  # "" where this user may not see whose it is
    error: str = ""  # why it could not be tried otherwise: permission denied below 1024
    assumed: bool = False  # nobody named this port, nor a launcher: it is the default of one that may be used


@dataclass(frozen=True)
class ListenFacts:
    """Where the node listens for the others, by its own addresses, and why it could not elsewhere."""

    ports: Mapping[str, int]
    failed: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[PortState, ...] = ()


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


MOST = 4096  # links of one node; beyond, each address is tried from one address of each other node, not from all


TORCH_PORT = 29500  # MASTER_PORT of torch, DeepSpeed and Accelerate where nobody names another


_MEET_BY_TORCH = ("torch", "deepspeed", "accelerate")


MAX_ADDRESSES = 64  # addresses of one node: a node that shows more would have all others dial them


_LISTENING = 5.0  # seconds for a node to bind its sockets, and to look for who has taken a port


_KEPT = 0.1  # of the run's deadline, for what comes after the mesh


_SHARED = 5  # values of a row that names no source


_LEAST = 1.0  # seconds: where there are no more, every link is said to be untried


# One address to dial, as the agent takes it: node, address, port, subnet, whether the port is the job's. A sixth is the
# one source to dial it from; without it, it is dialled from every address of the node's own in that subnet.
Row = list[JsonValue]


def spared_listening(cluster: Cluster) -> dict[str, str]:
    """Return the nodes that need not listen; one node alone may still need a port for the job."""
    unwanted = cluster.settings.mesh == "none" and _deaf(cluster) and not named_ports(cluster.settings)
    return cluster.spared() if unwanted else {}


def _deaf(cluster: Cluster) -> bool:
    """Tell whether nobody is to connect to the nodes' own addresses: neither the mesh nor, by TCP alone, the probe."""
    return bool(cluster.alone) and (cluster.settings.probe != "tcp" or len(cluster.nodes) == 1)


def ask_listen(cluster: Cluster, left: float) -> Questions:  # noqa: ARG001  binding takes no time
    """Ask each node to listen on its own addresses, and the first one on the job's ports."""
    found, doubles = usable_addresses(cluster), _doubles(cluster)
    ports: dict[str, list[JsonValue]] = {cluster.connected[0].name: _needed(cluster)} if cluster.connected else {}
    return {
        name: (_listening(cluster, name, () if _deaf(cluster) else held, ports.get(name, []), doubles.get(name, "")),)
        for name, held in found.items()
    }


def ask_connect(cluster: Cluster, left: float) -> Questions:
    """Ask each node to connect to all others that listen."""
    if cluster.alone:  # what listens does so for the probe alone
        return {}
    seconds = max(_LEAST, left - _KEPT * cluster.settings.deadline - 1.0)
    questions: Questions = {}
    found = usable_addresses(cluster)
    for name, rows in dialled(cluster, found).items():
        sources: JsonValue = {subnet: list(ips) for subnet, ips in _by_subnet(found[name]).items()}
        asked: JsonValue = {"token": cluster.token, "timeout": seconds, "sources": sources, "targets": list(rows)}
        connect = Answer(CONNECT.name, seconds + 1.0, asked)
        questions[name] = (connect if rows else NotAsked(CONNECT, _why_none(cluster, name)),)
    return questions


def dialled(cluster: Cluster, found: Mapping[str, Sequence[SubnetAddress]]) -> dict[str, list[Row]]:
    """Return what each node is to dial, in its order. Nodes share the rows: a thousand of them have a million pairs."""
    doubles, listening = _doubles(cluster), cluster.connected_facts(ListenFacts)
    names = [name for name in found if name not in doubles]
    first, asked_for = (cluster.connected[0].name, _needed_ports(cluster)) if cluster.connected else ("", ())
    own = {name: _by_subnet(found[name]) for name in names}
    ends = {name: _ends(name, found[name], listening[name]) for name in names if name in listening}
    made: dict[str, list[Row]] = {name: [] for name in found}
    for number, name in enumerate(names):
        others = [other for other in (*names[number + 1 :], *names[:number]) if other in ends]
        few = sum(len(held) ** 2 for held in own[name].values()) * len(others) <= MOST
        for other in others:
            common = [subnet for subnet in own[name] if subnet in own[other]]
            for subnet in common:
                rows = ends[other].get(subnet, [])
                made[name] += rows if few else _aligned(rows, own[name][subnet])
            if not common:
                made[name] += _routed(other, found[name], found[other], listening[other])
            if other == first:
                free = [state.port for state in listening[other].needed if state.free and state.port in asked_for]
                made[name] += _for_the_job(made[name], other, own[name], free)
    return made


def usable_addresses(cluster: Cluster) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return each node's addresses that can be told from others': not those that another machine shows as well."""
    nics = cluster.connected_facts(NicFacts)
    clashes = clashing(machines(nics, cluster.connected_facts(IdentityFacts)))
    free = {name: (seat for seat in subnet_addresses(held) if seat.ip not in clashes) for name, held in nics.items()}
    return {name: tuple(islice(held, MAX_ADDRESSES)) for name, held in free.items()}


def _doubles(cluster: Cluster) -> dict[str, str]:
    """Map each node that is a machine which was listed before under another name to that name."""
    return doubles(cluster.connected_facts(NicFacts), cluster.connected_facts(IdentityFacts))


def _listening(
    cluster: Cluster, name: str, held: Sequence[SubnetAddress], ports: list[JsonValue], double: str
) -> Answer | NotAsked:
    if double and not ports:
        return NotAsked(LISTEN, f"it is the same machine as {double}")
    if not held and not ports:
        return NotAsked(LISTEN, cluster.alone or "it has no address of its own that a job could use")
    addresses: list[JsonValue] = [*dict.fromkeys(seat.ip for seat in held)]
    asked: JsonValue = {"node": name, "token": cluster.token, "addresses": addresses, "ports": ports}
    return Answer(LISTEN.name, _LISTENING, asked)


def _why_none(cluster: Cluster, name: str) -> str:
    if double := _doubles(cluster).get(name):
        return f"it is the same machine as {double}"
    others = [node.name for node in cluster.connected if node.name != name]
    return "no other node listens for it" if others else "none of the others was reached"


# Which way


def _by_subnet(held: Sequence[SubnetAddress]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for seat in held:
        found.setdefault(seat.subnet, {})[seat.ip] = None
    return {subnet: tuple(ips) for subnet, ips in found.items()}


def _ends(name: str, held: Sequence[SubnetAddress], listening: ListenFacts) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for seat in held:
        if seat.ip in listening.ports:
            found.setdefault(seat.subnet, []).append([name, seat.ip, listening.ports[seat.ip], seat.subnet, False])
    return found


def _routed(
    other: str, mine: Sequence[SubnetAddress], theirs: Sequence[SubnetAddress], listening: ListenFacts
) -> Iterator[Row]:
    """Yield the way between the routers of two nodes that share no subnet, in a family that both have."""
    for v6 in (False, True):
        one, end = (_default([seat for seat in held if (":" in seat.ip) == v6]) for held in (mine, theirs))
        if one and end:
            if end.ip in listening.ports:
                yield [other, end.ip, listening.ports[end.ip], "", False, one.ip]
            return


def _default(held: Sequence[SubnetAddress]) -> SubnetAddress | None:
    return next((seat for seat in held if seat.interface.default_route), held[0] if held else None)


def _aligned(rows: Sequence[Row], sources: Sequence[str]) -> list[Row]:
    """Dial the first address of one node from the first of the other, the second from the second ..."""
    steps = range(max(len(rows), len(sources)) if rows else 0)
    return [[*rows[step % len(rows)], sources[step % len(sources)]] for step in steps]


def _for_the_job(rows: Sequence[Row], other: str, own: Mapping[str, Sequence[str]], free: Sequence[int]) -> list[Row]:
    """Return the job's ports on a node, once for each subnet in which it is dialled anyway."""
    ends = {str(row[3]): row for row in reversed(rows) if row[0] == other}
    return [
        [other, row[1], port, subnet, True, row[5] if len(row) > _SHARED else own[subnet][0]]
        for subnet, row in reversed(ends.items())
        for port in free
    ]


# The ports of the job


def named_ports(settings: Settings) -> tuple[int, ...]:
    """Return the ports that somebody named for the job."""
    return tuple(dict.fromkeys((*([settings.master_port] if settings.master_port else []), *settings.need_ports)))


def _needed(cluster: Cluster) -> list[JsonValue]:
    """Ask for the ports that the job needs on its first node; `assumed`: nobody named it, nor its launcher."""
    named = named_ports(cluster.settings)
    guessed = cluster.settings.launcher not in MEETING_PORTS
    return [{"port": port, "assumed": guessed and port not in named} for port in _needed_ports(cluster)]


def _needed_ports(cluster: Cluster) -> tuple[int, ...]:
    named = named_ports(cluster.settings)
    meeting = None if cluster.settings.master_port else _meeting_port(cluster)
    return tuple(dict.fromkeys((*named, *([meeting] if meeting else []))))


def _meeting_port(cluster: Cluster) -> int | None:
    launcher = cluster.settings.launcher
    if launcher and launcher in MEETING_PORTS:
        return MEETING_PORTS[launcher]
    first = cluster.connected_facts(InterpreterFacts).get(cluster.connected[0].name)
    return TORCH_PORT if first and any(name in first.frameworks for name in _MEET_BY_TORCH) else None
