"""TCP between nodes: where each node listens, and which addresses of other nodes it reaches from which of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import lru_cache
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import TYPE_CHECKING, Annotated, cast

from ncheck.decode import Bounded, Count, NodeName, Null, Port, PortOrNone, Words, decoded
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import ASKING_PEERS, LISTENING, Fact, exempt_without_peers, no_peers
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.hostlist import quoted
from ncheck.launchers import LAUNCHER_TABLE, MEETING_PORTS
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read
from ncheck.model.phase import NotAsked, Questions
from ncheck.network.peers import ALL_UP_TO, some_of
from ncheck.network.subnets import Nodes, clashing, doubles, machines, subnet_addresses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


@lru_cache(maxsize=8192)  # each address comes with every link from it, and to it
def _address(address: str) -> str:
    """Return an address as ipaddress writes it. Raises ValueError for one with a zone, which may be any text."""
    if "%" in address:
        raise ValueError(f"{quoted(address)} has a zone; no link is tested with one")
    return str(ip_address(address))


@lru_cache(maxsize=8192)
def _subnet(subnet: str) -> str:
    return str(ip_network(subnet)) if subnet else ""


Address = Annotated[str, _address]
Subnet = Annotated[str, _subnet, Null("")]


MOST = 4096  # links of one node; beyond, each address is tried from one address of each other node, not from all
_MOST_OF_FLOWS = 0.8  # share of the connections that one dead path of several takes
_MOST_PORTS = 1024  # ports that a job may need


class LinkCause(str, Enum):
    """Why a link does not work."""

    REFUSED = "refused"  # RST, although the target listens: something on the path rejects it
    FILTERED = "filtered"  # no answer to SYN in time: packets are dropped
    UNROUTABLE = "unroutable"  # no route, host or network unreachable
    LARGE_LOST = "large-lost"  # it connects and small messages arrive, large ones from here do not
    LARGE_LOST_BACK = "large-lost-back"  # the same in the other direction
    CUT = "cut"  # it connected, then was reset or closed
    STRANGER = "stranger"  # another program answered at that address
    UNTRIED = "untried"  # no time left: not a fault of the network


@dataclass(frozen=True)
class Link:
    """One direction: from an address of this node to an address and port of another.

    `source`: the own address; `target`: the other node's name; `address`: its address. `subnet`: "" if it is
    routed. `port`: 0 for the mesh's own listener, else the port that the job needs there.
    """

    source: Address
    target: NodeName
    address: Address
    subnet: Subnet
    cause: LinkCause
    detail: Words = ""
    port: PortOrNone = 0


@dataclass(frozen=True)
class Reach:
    """One address of this node in one subnet. `tried`: how many addresses of other nodes it dialled; `reached`: how
    many of them answered.
    """

    subnet: Subnet
    source: Address
    tried: Count
    reached: Count


@dataclass(frozen=True)
class Loss:
    """Segments that were lost on a link that works. `sent_there`: how many segments this node sent; `lost_there`:
    how many of them were lost; `sent_back` and `lost_back`: the same of the answers.

    `alone`: it was measured again while this node sent nothing else.
    """

    source: str
    target: str
    address: str
    subnet: str
    lost_there: int
    sent_there: int
    lost_back: int
    sent_back: int
    alone: bool


@dataclass(frozen=True)
class Burst:
    """Connections that began at once. `begun`: how many; `late`: how many were not open within 0.9 seconds, in two
    tries; `lost`: how many of these got no answer to their first three packets, sent over 3.3 seconds.
    """

    source: str
    target: str
    address: Address
    subnet: Subnet
    begun: Count
    late: Count
    lost: Count = 0

    @property
    def of_flows(self) -> bool:
        """Whether a part of the connections never gets an answer, and all others get theirs at once.

        Where hardly any gets one, connections are limited: with one of two paths dead, nine of ten are rarely lost.
        """
        return 0 < self.lost == self.late <= _MOST_OF_FLOWS * self.begun


@dataclass(frozen=True)
class Sample:
    """The nodes that a node was to dial in a subnet of many (network/peers.py). `subnet`: "" if they are routed."""

    subnet: str
    nodes: frozenset[str]


@dataclass(frozen=True)
class LinkFacts:
    """All links that this node tried. `reaches`: how many work, by subnet and own address; `broken`: each that does
    not.

    `tried_to` are the nodes that it tried to reach; of any other node nothing is known. `losses` are the links that
    work and lose packets, `bursts` those on which several connections at once are late. `counts_losses`: false
    where the kernel of this node is too old to count them. `samples`: the subnets of many nodes, in which it was to
    dial only some of them.
    """

    reaches: tuple[Reach, ...]
    broken: tuple[Link, ...] = ()
    tried_to: frozenset[str] = frozenset()
    losses: tuple[Loss, ...] = ()
    bursts: tuple[Burst, ...] = ()
    counts_losses: bool = True
    samples: tuple[Sample, ...] = ()

    def __hash__(self) -> int:
        """Hash a part of it: every check asks for the same links of the same thousands of nodes."""
        return hash((self.tried_to, len(self.broken)))

    def sample(self, subnet: str) -> frozenset[str] | None:
        """Return the nodes that it was to dial in a subnet ("": across routers); None: all that are there."""
        return next((sample.nodes for sample in self.samples if sample.subnet == subnet), None)

    def among(self, names: frozenset[str]) -> LinkFacts:
        """Return the links to these nodes. Which of the others were reached is not listed one by one."""
        gone = [link for link in self.broken if link.target not in names]
        return LinkFacts(
            tuple(_without(reach, gone) for reach in self.reaches),
            tuple(link for link in self.broken if link.target in names),
            self.tried_to & names,
            tuple(loss for loss in self.losses if loss.target in names),
            tuple(burst for burst in self.bursts if burst.target in names),
            self.counts_losses,
            tuple(replace(sample, nodes=sample.nodes & names) for sample in self.samples),
        )


def _without(reach: Reach, gone: list[Link]) -> Reach:
    """Count no failure towards a node that is gone."""
    lost = sum((link.subnet, link.source, link.port) == (reach.subnet, reach.source, 0) for link in gone)
    return replace(reach, tried=max(reach.reached, reach.tried - lost))


@dataclass(frozen=True)
class PortState:
    """One port that the job needs on this node, and whether bind succeeded; `taken_by`: "python3 (pid 4711) of ada"."""

    port: Port
    free: bool
    taken_by: Words = ""  # "" if this user cannot see the process
    error: Words = ""  # why it could not be tried, such as permission denied below 1024
    assumed: bool = False  # neither user nor launcher named it: the default of a launcher that may be used


@dataclass(frozen=True)
class ListenFacts:
    """Where the node listens for the others. `ports` by address; `failed`: why it cannot, by address. `needed`: the
    ports that the job needs.
    """

    ports: Mapping[Address, Port]
    failed: Mapping[Address, Words] = field(default_factory=dict)
    needed: Annotated[tuple[PortState, ...], Bounded(_MOST_PORTS)] = ()


# What a node answers


def _loss(answer: _LossAnswer) -> Loss:
    (lost_there, sent_there), (lost_back, sent_back) = answer.there, answer.back
    if lost_there > sent_there or lost_back > sent_back:
        raise ValueError("more segments lost than sent")
    ends = answer.source, answer.target, answer.address, answer.subnet
    return Loss(*ends, lost_there, sent_there, lost_back, sent_back, answer.alone)


@dataclass(frozen=True)
class _LossAnswer:
    """A Loss, as the agent writes it: (lost, sent) of each direction."""

    source: Address
    target: NodeName
    address: Address
    subnet: Subnet
    there: tuple[Count, Count]
    back: tuple[Count, Count]
    alone: bool


def _burst(burst: Burst) -> Burst:
    if not burst.lost <= burst.late <= burst.begun:
        raise ValueError("more connections late than begun, or lost than late")
    return burst


def _reach(reach: Reach) -> Reach:
    if reach.reached > reach.tried:
        raise ValueError(f"{reach.reached} reached of {reach.tried} tried")
    return reach


@dataclass(frozen=True)
class _Links:
    """What the agent tried: LinkFacts without what only this machine knows."""

    reaches: Annotated[tuple[Annotated[Reach, _reach], ...], Bounded(MOST)]
    broken: Annotated[tuple[Link, ...], Bounded(MOST)]
    tried: frozenset[NodeName]
    lossy: Annotated[tuple[Annotated[Loss, _loss], ...], Bounded(MOST)]
    late: Annotated[tuple[Annotated[Burst, _burst], ...], Bounded(MOST)]
    counted: bool


LISTEN, CONNECT = Answer("listen"), Answer("connect", shape=_Links)


def links(evidence: Evidence) -> Read[LinkFacts]:
    """Read every link that the node tried. Which nodes it was to dial, this machine has kept."""
    answer = answer_of(CONNECT, evidence)
    if not isinstance(answer, _Links):
        return answer  # type: ignore[no-any-return]  # why there is none
    asked = decoded(evidence.reply(CONNECT).asked or {}, Mapping[Subnet, frozenset[NodeName]])
    samples = tuple(Sample(subnet, names) for subnet, names in asked.items())
    return LinkFacts(answer.reaches, answer.broken, answer.tried, answer.lossy, answer.late, answer.counted, samples)


TORCH_PORT = 29500  # the default MASTER_PORT of torch, DeepSpeed and Accelerate
_MEET_BY_TORCH = ("torch", "deepspeed", "accelerate")
MAX_ADDRESSES = 64  # addresses of one node that the others connect to
_LISTENING = 5.0  # seconds for a node to bind its sockets, and to find the process that uses a port
_KEPT = 0.1  # share of the deadline for what comes after the mesh
_SHARED = 5  # values of a row that names no source
_LEAST = 1.0  # seconds: with less time, every link is reported as untried

# One address to connect to, as the agent reads it: node, address, port, subnet, whether the port is the job's. A sixth
# value is the source address; without it, the node connects from each of its addresses in that subnet.
Row = list[JsonValue]


def exempt_listening(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Return the nodes that need not listen; even a single node may need a port for the job."""
    unwanted = settings.mesh == "none" and _exempt_from_listening(cluster, settings) and not named_ports(settings)
    return exempt_without_peers(cluster, settings) if unwanted else {}


def _exempt_from_listening(cluster: Cluster, settings: Settings) -> bool:
    """Return whether nothing will connect to the nodes: neither the mesh nor the TCP probe."""
    return bool(no_peers(cluster, settings.mesh)) and (settings.probe != "tcp" or len(cluster) == 1)


def ask_listen(cluster: Cluster, settings: Settings, _left: float) -> Questions:
    """Ask each node to listen on its own addresses, and on the ports that the job needs there."""
    found, doubles = usable_addresses(cluster), _doubles(cluster)
    exempt, why = _exempt_from_listening(cluster, settings), no_peers(cluster, settings.mesh)
    ports = {name: _needed(cluster, settings, name) for name in found if name not in doubles}
    return {
        name: (_listening(cluster, name, () if exempt else held, ports.get(name, []), doubles.get(name, ""), why),)
        for name, held in found.items()
    }


def ask_connect(cluster: Cluster, settings: Settings, left: float) -> Questions:
    """Ask each node to connect to all others that listen, or to some of them in a network of many."""
    if no_peers(cluster, settings.mesh):  # the nodes listen only for the probe
        return {}
    seconds = max(_LEAST, left - _KEPT * settings.deadline - 1.0)
    found = usable_addresses(cluster)
    chosen = samples(cluster, settings.mesh, found)
    kept: dict[str, dict[str, JsonValue]] = {}
    for subnet, by_node in chosen.items():
        for name, others in by_node.items():
            kept.setdefault(name, {})[subnet] = [*sorted(others)]

    def question(part: Mapping[str, JsonValue], names: Iterable[str]) -> Answer:
        asked: JsonValue = {"token": cluster.token, "timeout": seconds, **part}
        return Answer(CONNECT.name, seconds + 1.0, asked, kept={name: kept[name] for name in names if name in kept})

    own: dict[str, dict[str, JsonValue]] = {}
    questions: Questions = {}
    for name, rows in dialled(cluster, settings, found, chosen).items():
        own[name] = {"sources": _sources(found[name]), "targets": [*rows]}
        questions[name] = (question(own[name], [name]) if rows else NotAsked(CONNECT, _why_none(cluster, name)),)
    if chosen and settings.via == "srun":
        asked = {name: part for name, part in own.items() if part["targets"]}
        questions |= dict.fromkeys(asked, (question(_for_all(asked), asked),))
    return questions


def _sources(held: Sequence[SubnetAddress]) -> JsonValue:
    return {subnet: list(ips) for subnet, ips in _by_subnet(held).items()}


def _for_all(own: Mapping[str, Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the parts of all nodes as one question: srun sends every node what it sends to any, and sends that once.

    All rows are in the order of the nodes. A node has its addresses, the place of its own first row and, as steps from
    there, where runs of rows begin that it dials, each with its length: the steps of many nodes are the same.
    """
    order = {name: place for place, name in enumerate(own)}
    unique = {id(row): row for part in own.values() for row in cast("list[Row]", part["targets"])}
    rows = sorted(unique.values(), key=lambda row: order.get(str(row[0]), len(order)))
    places = {id(row): place for place, row in enumerate(rows)}
    firsts = {str(row[0]): place for place, row in reversed([*enumerate(rows)])}
    of: dict[str, JsonValue] = {}
    for name, part in own.items():
        first, runs = firsts.get(name, 0), list[JsonValue]()
        following = -1
        for row in cast("list[Row]", part["targets"]):
            place = places[id(row)]
            if place == following:
                runs[-1] = cast("int", runs[-1]) + 1
            else:
                runs += [(place - first) % len(rows), 1]
            following = place + 1
        of[name] = [part["sources"], first, runs]
    return {"rows": [*rows], "of": of}


Chosen = Mapping[str, Mapping[str, frozenset[str]]]  # by subnet ("": across routers) and node, the nodes that it dials


def samples(cluster: Cluster, mesh: str, found: Mapping[str, Sequence[SubnetAddress]]) -> Chosen:
    """Return which nodes dial which others in each network of so many that not all dial all."""
    doubles = _doubles(cluster)
    names = tuple(name for name, held in found.items() if held and name not in doubles)
    if len(names) <= ALL_UP_TO or mesh == "all":
        return {}
    own = {name: frozenset(address.subnet for address in found[name]) for name in names}
    members: dict[str, list[str]] = {}
    for name in names:
        for subnet in own[name]:
            members.setdefault(subnet, []).append(name)
    of = lru_cache(some_of)  # most networks have the same nodes
    chosen = {subnet: of(tuple(held)) for subnet, held in members.items() if len(held) > ALL_UP_TO}
    routed = {
        name: frozenset(other for other in others if own[name].isdisjoint(own[other]))
        for name, others in of(names).items()
    }
    return {**chosen, "": routed} if any(routed.values()) else chosen


def dialled(
    cluster: Cluster, settings: Settings, found: Mapping[str, Sequence[SubnetAddress]], chosen: Chosen
) -> dict[str, list[Row]]:
    """Return the rows of each node, in order. Nodes share row objects: a thousand nodes have a million pairs."""
    doubles, listening = _doubles(cluster), cluster.connected_facts(ListenFacts)
    names = [name for name in found if name not in doubles]
    asked_for = {name: frozenset(needed_ports(cluster, settings, name)) for name in names}
    own = {name: _by_subnet(found[name]) for name in names}
    ends = {name: _ends(name, found[name], listening[name]) for name in names if name in listening}
    made: dict[str, list[Row]] = {name: [] for name in found}
    for name, after in _after(names, own, chosen):
        others = [other for other in after if other in ends]
        few = sum(len(held) ** 2 for held in own[name].values()) * len(others) <= MOST
        for other in others:
            common = [subnet for subnet in own[name] if subnet in own[other]]
            for subnet in common:
                if subnet not in chosen or other in chosen[subnet][name]:
                    rows = ends[other].get(subnet, [])
                    made[name] += rows if few else _aligned(rows, own[name][subnet])
            if not common:
                made[name] += _routed(other, found[name], found[other], listening[other])
            if asked_for[other]:
                free = [
                    state.port for state in listening[other].needed if state.free and state.port in asked_for[other]
                ]
                made[name] += _for_the_job(made[name], other, own[name], free)
    return made


def _after(names: Sequence[str], own: Mapping[str, Iterable[str]], chosen: Chosen) -> Iterator[tuple[str, list[str]]]:
    """Yield each node with those that it may dial, the ones after it in the list first: no node is dialled by all."""
    if not chosen:
        for number, name in enumerate(names):
            yield name, [*names[number + 1 :], *names[:number]]
        return
    places = {name: place for place, name in enumerate(names)}
    few: dict[str, list[str]] = {}
    for name in names:
        for subnet in own[name]:
            if subnet not in chosen:
                few.setdefault(subnet, []).append(name)
    for name, place in places.items():
        others = {other for nodes in chosen.values() for other in nodes.get(name, ())}
        others.update(other for subnet in own[name] for other in few.get(subnet, ()) if other != name)
        yield name, sorted(others, key=lambda other: (places[other] - place) % len(names))


def usable_addresses(cluster: Cluster) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return each node's addresses, without those that another machine has as well."""
    nics = cluster.connected_facts(NicFacts)
    return addresses_to_try(nics, machines(nics, cluster.connected_facts(IdentityFacts)))


def addresses_to_try(nodes: Nodes, single: Nodes) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return the addresses of each node that the others connect to. `single`: each machine once."""
    clashes = clashing(single)
    free = {
        name: (address for address in subnet_addresses(held) if address.ip not in clashes)
        for name, held in nodes.items()
    }
    return {name: tuple(islice(held, MAX_ADDRESSES)) for name, held in free.items()}


def _doubles(cluster: Cluster) -> dict[str, str]:
    """Map each node that is the same machine as an earlier one to the name of that one."""
    return doubles(cluster.connected_facts(NicFacts), cluster.connected_facts(IdentityFacts))


def _listening(  # noqa: PLR0913, PLR0917  each is a part of one question
    cluster: Cluster, name: str, held: Sequence[SubnetAddress], ports: list[JsonValue], double: str, why: str
) -> Answer | NotAsked:
    if double and not ports:
        return NotAsked(LISTEN, f"it is the same machine as {double}")
    if not held and not ports:
        return NotAsked(LISTEN, why or "the node has no address that a job could use")
    addresses: list[JsonValue] = [*dict.fromkeys(address.ip for address in held)]
    asked: JsonValue = {"node": name, "token": cluster.token, "addresses": addresses, "ports": ports}
    return Answer(LISTEN.name, _LISTENING, asked)


def _why_none(cluster: Cluster, name: str) -> str:
    if double := _doubles(cluster).get(name):
        return f"it is the same machine as {double}"
    others = [node.name for node in cluster.connected if node.name != name]
    return "no other node listens" if others else "no other node is reachable"


def _by_subnet(held: Sequence[SubnetAddress]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for address in held:
        found.setdefault(address.subnet, {})[address.ip] = None
    return {subnet: tuple(ips) for subnet, ips in found.items()}


def _ends(name: str, held: Sequence[SubnetAddress], listening: ListenFacts) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for address in held:
        if address.ip in listening.ports:
            found.setdefault(address.subnet, []).append(
                [name, address.ip, listening.ports[address.ip], address.subnet, False]
            )
    return found


def _routed(
    other: str, mine: Sequence[SubnetAddress], theirs: Sequence[SubnetAddress], listening: ListenFacts
) -> Iterator[Row]:
    """Yield the routed link between two nodes without a common subnet, in an address family that both have."""
    for v6 in (False, True):
        one, end = (_default([address for address in held if (":" in address.ip) == v6]) for held in (mine, theirs))
        if one and end:
            if end.ip in listening.ports:
                yield [other, end.ip, listening.ports[end.ip], "", False, one.ip]
            return


def _default(held: Sequence[SubnetAddress]) -> SubnetAddress | None:
    return next((address for address in held if address.interface.default_route), held[0] if held else None)


def _aligned(rows: Sequence[Row], sources: Sequence[str]) -> list[Row]:
    """Connect to the first address of a node from the first of the other, to the second from the second ..."""
    steps = range(max(len(rows), len(sources)) if rows else 0)
    return [[*rows[step % len(rows)], sources[step % len(sources)]] for step in steps]


def _for_the_job(rows: Sequence[Row], other: str, own: Mapping[str, Sequence[str]], free: Sequence[int]) -> list[Row]:
    """Return rows for the job's ports on a node, one for each subnet with another row."""
    ends = {str(row[3]): row for row in reversed(rows) if row[0] == other}
    return [
        [other, row[1], port, subnet, True, row[5] if len(row) > _SHARED else own[subnet][0]]
        for subnet, row in reversed(ends.items())
        for port in free
    ]


def named_ports(settings: Settings) -> tuple[int, ...]:
    """Return the ports that the user named for the job."""
    return tuple(dict.fromkeys((*([settings.master_port] if settings.master_port else []), *settings.need_ports)))


def _needed(cluster: Cluster, settings: Settings, node: str) -> list[JsonValue]:
    """Return the ports that the job needs on a node; `assumed`: neither user nor launcher named it."""
    named = named_ports(settings)
    guessed = settings.launcher not in MEETING_PORTS
    return [{"port": port, "assumed": guessed and port not in named} for port in needed_ports(cluster, settings, node)]


def needed_ports(cluster: Cluster, settings: Settings, node: str) -> tuple[int, ...]:
    """Return the ports that the job needs on a node: the ranks meet on the first one, others are opened on each."""
    if settings.run.ranks:  # the launcher or the job itself may hold its port by now
        return ()
    launcher = LAUNCHER_TABLE.get(settings.launcher or "")
    everywhere = launcher is not None and launcher.port_everywhere
    meets = everywhere or (bool(cluster.connected) and node == cluster.connected[0].name)
    meeting = (settings.master_port or _meeting_port(cluster, settings.launcher)) if meets else None
    return tuple(dict.fromkeys((*([meeting] if meeting else []), *settings.need_ports)))


def _meeting_port(cluster: Cluster, launcher: str | None) -> int | None:
    if launcher and launcher in MEETING_PORTS:
        return MEETING_PORTS[launcher]
    first = cluster.connected_facts(InterpreterFacts).get(cluster.connected[0].name)
    return TORCH_PORT if first and any(name in first.frameworks for name in _MEET_BY_TORCH) else None


_ADDRESSES = (LoginFacts, IdentityFacts, NicFacts, InterpreterFacts)
FACTS = (
    Fact(ListenFacts, (LISTEN,), phase=LISTENING, needs=_ADDRESSES, questions=ask_listen, exempt=exempt_listening),
    Fact(
        LinkFacts, (CONNECT,), links, ASKING_PEERS,
        needs=(*_ADDRESSES, ListenFacts), questions=ask_connect, exempt=exempt_without_peers,
    ),
)  # fmt: skip
