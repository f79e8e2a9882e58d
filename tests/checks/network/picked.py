"""A node with interfaces, NCCL's variables and, where it was asked, NCCL's own answer."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts, ListingFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.parse.interface_names import Kind

from tests.logins import logins

NEW, OLD = "2.28.3", "2.21.5"
LO = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),))


def nic(name: str, index: int, ip: str = "", kind: Kind = Kind.PHYSICAL, *, running: bool = True) -> Interface:
    """Return an interface of 25 Gb/s; its address is in 10.INDEX.0.0/24 unless it is named."""
    addresses = (Address(ip or f"10.{index}.0.5", 24),)
    return Interface(name, index, kind, up=running, running=running, mtu=1500, addresses=addresses, speed=25000)


def docker(index: int) -> Interface:
    return nic("docker0", index, "172.17.0.1", Kind.CONTAINER_BRIDGE)


def picks(address: str, *, error: str = "", rendezvous: str = "") -> NcclPickFacts:
    return NcclPickFacts(address, NEW, error, rendezvous)


def node(
    *nics: Interface,
    nccl: str | None = NEW,
    pick: NcclPickFacts | Unread | Absent = Absent("not asked"),  # noqa: B008  a frozen record
    conf: str = "",
    **variables: str,
) -> Mapping[type[object], object]:
    """Return one node's facts; `conf` is the line of its /etc/nccl.conf."""
    return {
        NicFacts: NicFacts((LO, *nics)),
        EnvironmentFacts: logins(variables, {"/etc/nccl.conf": (conf,) if conf else Absent("not there")}),
        LoadedNcclFacts: LoadedNcclFacts(nccl, "/x/libnccl.so.2") if nccl else Unread("no answer"),
        NcclPickFacts: pick,
        ListingFacts: ListingFacts(("nodes.txt:1",)),
        IdentityFacts: Unread("not asked"),
        InfinibandFacts: Absent("no HCA"),
        LinkFacts: Absent("not asked"),
    }


def alone(*nics: Interface, **fields: object) -> dict[str, Facts]:
    """Return a run of one node."""
    return {"n1": node(*nics, **fields)}  # type: ignore[arg-type]
