"""The TCP connections of a job, both ends put together: who is connected to whom, and which node has which address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from ipaddress import ip_address
from typing import TYPE_CHECKING

from ncheck.facts.login import LoginFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.job import Job, Process, RankProcess
from ncheck.parse.interface_names import Kind, kind_by_name
from ncheck.text import printable
from ncheck.triage.facts.processes import is_launcher
from ncheck.triage.facts.sockets import Connection, NetworkPlace, Socket, SocketsFacts, master_port

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster


@dataclass(frozen=True)
class Party:
    """A process of the job: a rank with those beneath it, or a launcher with what it started."""

    node: str
    pid: int
    process: Process = field(compare=False)
    rank: RankProcess | None = field(default=None, compare=False)

    @property
    def number(self) -> int | None:
        return self.rank.rank if self.rank else None

    @property
    def ranks(self) -> tuple[int, ...]:
        return () if self.number is None else (self.number,)

    @property
    def shown(self) -> str:
        """Name it for people: "rank 3 (pid 4711 on gpu02)", "mpirun (pid 17 on gpu01)"."""
        return self.rank.shown if self.rank else f"{printable(self.process.name, 40)} (pid {self.pid} on {self.node})"


@dataclass(frozen=True)
class ConnectionEnd:
    """One side of a connection, or a socket that listens. `place` is the namespace that it is in, if that was read."""

    party: Party
    socket: Socket
    place: NetworkPlace | None

    @property
    def interface(self) -> str:
        """The interface that has its local address; "" unknown."""
        return self.place.addresses.get(self.socket.local, "") if self.place else ""

    @property
    def remote(self) -> str:
        return f"{bracketed(self.socket.remote)}:{self.socket.remote_port}"


@dataclass(frozen=True)
class Home:
    """Where an address is."""

    node: str
    namespace: str
    interface: str


@dataclass(frozen=True)
class Connections:
    """All that was seen of a job's sockets. `parties` could be read, `complete` says whether all could."""

    parties: tuple[Party, ...]
    ends: tuple[ConnectionEnd, ...]
    listening: tuple[ConnectionEnd, ...]
    homes: Mapping[str, tuple[Home, ...]]
    complete: bool
    by_name: Mapping[tuple[str, int, str, int], tuple[ConnectionEnd, ...]]
    places: Mapping[tuple[str, str], NetworkPlace]

    def homes_of(self, ip: str, node: str) -> tuple[Home, ...]:
        """Return where an address is, as one node sees it: its own, if it has it too."""
        homes = self.homes.get(ip, ())
        return tuple(home for home in homes if home.node == node) or homes

    def peer(self, end: ConnectionEnd) -> ConnectionEnd | None:
        """Return the other end of a connection, if a process of the job has it."""
        one = end.socket
        found = self.by_name.get((one.remote, one.remote_port, one.local, one.local_port), ())
        nodes = {home.node for home in self.homes_of(one.remote, end.party.node)}
        if is_loopback(one.remote):
            nodes = {end.party.node}
        return next((it for it in found if it.socket is not one and (not nodes or it.party.node in nodes)), None)

    def listener(self, node: str, ip: str, port: int) -> ConnectionEnd | None:
        """Return the socket of the job that listens there."""
        fitting = (
            one for one in self.listening if one.party.node == node and one.socket.local_port == port
            and one.socket.local in (ip, *_ANY)
        )  # fmt: skip
        return next(fitting, None)

    def other(self, end: ConnectionEnd) -> Connection | None:
        """Return the other end, if a process of that node has it that is none of the job's, or has ended."""
        one = end.socket
        wanted = (one.remote, one.remote_port, one.local, one.local_port)
        return next((it for it in self._others(end) if _name(it) == wanted), None)

    def _others(self, end: ConnectionEnd) -> Iterator[Connection]:
        nodes = {(home.node, home.namespace) for home in self.homes_of(end.socket.remote, end.party.node)}
        for key in nodes:
            place = self.places.get(key)
            yield from place.others if place else ()

    def gone(self, end: ConnectionEnd) -> bool:
        """Return whether the other end is certainly nowhere: on its node all connections are known, and it is not."""
        homes = self.homes_of(end.socket.remote, end.party.node)
        places = [self.places.get((home.node, home.namespace)) for home in homes]
        known = bool(places) and all(place and place.complete for place in places)
        return known and self.complete and self.peer(end) is None and self.other(end) is None


_ANY = ("0.0.0.0", "::")  # noqa: S104  of a socket that listens at all addresses


def connections(job: Job, cluster: Cluster) -> Connections:
    """Return what the sockets of all nodes show of a job."""
    facts = cluster.facts(SocketsFacts)
    places = {(node, name): place for node, one in facts.items() for name, place in one.places.items()}
    parties, ends, complete = [], [], set(job.nodes) <= set(facts)
    for party in _parties(job):
        known = facts.get(party.node)
        held = known.of(party.pid) if known else None
        if not isinstance(held, tuple):
            complete = complete and party.rank is None
            continue
        parties.append(party)
        ends += [ConnectionEnd(party, one, places.get((party.node, one.namespace))) for one in held]
    complete = complete and all(one.complete for one in facts.values())
    listening = tuple(one for one in ends if _states(one.socket) <= {"LISTEN"})
    connected = tuple(one for one in ends if one not in listening)
    by_name: dict[tuple[str, int, str, int], list[ConnectionEnd]] = {}
    for end in connected:
        by_name.setdefault(_name(end.socket), []).append(end)
    return Connections(
        tuple(parties), connected, listening, _homes(facts, cluster), complete,
        {name: tuple(found) for name, found in by_name.items()}, places,
    )  # fmt: skip


def _parties(job: Job) -> Iterable[Party]:
    for one in job.ranks:
        yield Party(one.node, one.pid, one.process, one)
    for node, above in job.launchers.items():
        for process in above:
            if is_launcher(process):
                yield Party(node, process.pid, process)


def _states(socket: Socket) -> set[str]:
    return {seen.state for seen in (socket.first, socket.last) if seen}


def _name(one: Socket | Connection) -> tuple[str, int, str, int]:
    return one.local, one.local_port, one.remote, one.remote_port


def _homes(facts: Mapping[str, SocketsFacts], cluster: Cluster) -> dict[str, tuple[Home, ...]]:
    """Return where each address is, loopback left out. A node that gave no answer has that of its login."""
    found: dict[str, list[Home]] = {}
    for node, one in facts.items():
        for namespace, place in one.places.items():
            for ip, interface in place.addresses.items():
                if not is_loopback(ip):
                    found.setdefault(ip, []).append(Home(node, namespace, interface))
    for node, login in cluster.facts(LoginFacts).items():
        if node not in facts and login.login.address:
            found.setdefault(login.login.address, []).append(Home(node, "", ""))
    return {ip: tuple(homes) for ip, homes in found.items()}


def is_loopback(ip: str) -> bool:
    return ip_address(ip).is_loopback


def bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


# Their addresses reach no other node, or are the same on every node.
_ISOLATED = frozenset({Kind.LOOPBACK, Kind.CONTAINER_BRIDGE, Kind.VETH, Kind.TUN, Kind.OTHER})


def leads_nowhere(ip: str, interface: str) -> bool:
    """Return whether other nodes cannot be expected to reach this address: of docker0, virbr0, lo, a tunnel."""
    return ip_address(ip).is_link_local or kind_by_name(interface) in _ISOLATED


_RAS_PORT = 28028


def is_ras(end: ConnectionEnd) -> bool:
    """Return whether NCCL's RAS listens here, which is on loopback by default: NCCL_RAS_ADDR=localhost:28028."""
    text = (end.party.process.variables or {}).get("NCCL_RAS_ADDR", "").rpartition(":")[2]
    return str(end.socket.local_port) == (text or str(_RAS_PORT))


def ports_of_masters(job: Job) -> frozenset[int]:
    """Return the ports at which the ranks rendezvous."""
    return frozenset(port for one in job.ranks if (port := master_port(one.variables)))
