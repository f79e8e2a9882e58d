"""Nodes that tried each other, by hand: which subnets they have, and which ways between them failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.links import Burst, Link, LinkCause, LinkFacts, ListenFacts, Loss, PortState, Reach
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent
from ncheck.parse.interface_names import Kind

Broken = Mapping[tuple[int, int], LinkCause]
ALL = range(1, 5)
NO_SPEEDS: Mapping[int, int] = {}


def ways(sources: Iterable[int], targets: Collection[int], cause: LinkCause = LinkCause.FILTERED) -> Broken:
    """Return the ways from each source to each target but itself, all broken alike."""
    return {(source, to): cause for source in sources for to in targets if source != to}


def both(one: Collection[int], other: Collection[int], cause: LinkCause = LinkCause.FILTERED) -> Broken:
    return {**ways(one, other, cause), **ways(other, one, cause)}


def name(number: int) -> str:
    return f"n{number}"


def cluster(networks: Mapping[int, Broken], count: int = 4, speeds: Mapping[int, int] = NO_SPEEDS) -> dict[str, Facts]:
    """Return so many nodes, each with eth1, eth2 ... in 10.1.0.0/24, 10.2.0.0/24 ...; NCCL picks the first."""
    return {name(number): Dialler(number, count, networks, speeds=speeds).facts() for number in range(1, count + 1)}


@dataclass
class Dialler:
    """One node that tried all others in each of its subnets."""

    number: int
    count: int
    networks: Mapping[int, Broken]
    mtus: Mapping[int, int] = field(default_factory=dict)
    speeds: Mapping[int, int] = field(default_factory=dict)
    ports: tuple[PortState, ...] = ()
    blocked: tuple[Link, ...] = ()  # links to ports of the job
    losses: tuple[Loss, ...] = ()
    bursts: tuple[Burst, ...] = ()

    def facts(self) -> Facts:
        return {
            LinkFacts: self.links(),
            NicFacts: NicFacts(tuple(self.nic(network) for network in self.networks)),
            LoginFacts: LoginFacts(Login(reached=True, port=22, user="train")),
            EnvironmentFacts: EnvironmentFacts({}, {}),
            LoadedNcclFacts: LoadedNcclFacts("2.28.3", "/x/libnccl.so.2"),
            NcclPickFacts: Absent("not asked"),
            ListenFacts: ListenFacts({}, needed=self.ports),
            IdentityFacts: Absent("not asked"),
            InfinibandFacts: Absent("no device"),
            JobFacts: JobFacts(),
        }

    def nic(self, network: int) -> Interface:
        address = Address(f"10.{network}.0.{self.number}", 24)
        mtu = self.mtus.get(network, 1500)
        return Interface(
            f"eth{network}", network + 1, Kind.PHYSICAL, up=True, running=True, mtu=mtu, addresses=(address,),
            speed=self.speeds.get(network),
        )  # fmt: skip

    def links(self) -> LinkFacts:
        broken = tuple(link for network, failed in self.networks.items() for link in self.broken(network, failed))
        reaches = tuple(self.reach(network, broken) for network in self.networks)
        skipped = {link.target for link in broken if link.cause is LinkCause.UNTRIED}
        others = frozenset(name(other) for other in range(1, self.count + 1) if other != self.number)
        tried = tuple(reach for reach in reaches if reach.tried)
        return LinkFacts(tried, (*broken, *self.blocked), others - skipped, self.losses, self.bursts)

    def broken(self, network: int, failed: Broken) -> tuple[Link, ...]:
        return tuple(link(network, self.number, to, cause) for (at, to), cause in failed.items() if at == self.number)

    def reach(self, network: int, broken: tuple[Link, ...]) -> Reach:
        own = f"10.{network}.0.{self.number}"
        causes = [link.cause for link in broken if link.source == own]
        tried = self.count - 1 - causes.count(LinkCause.UNTRIED)
        failed = len(causes) - causes.count(LinkCause.UNTRIED)
        return Reach(f"10.{network}.0.0/24", own, tried, tried - failed)


def link(network: int, one: int, to: int, cause: LinkCause, port: int = 0) -> Link:
    """Return one way that failed."""
    subnet = f"10.{network}.0.0/24"
    return Link(f"10.{network}.0.{one}", name(to), f"10.{network}.0.{to}", subnet, cause, "seen by hand", port)
