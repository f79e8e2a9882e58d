"""At which hardware address, and through which interface, the node has found its neighbours: the kernel's ARP table."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from ncheck.decode import decoded
from ncheck.expression import expression
from ncheck.facts.definition import TRYING_PLAN, Fact, exempt_without_peers, no_answer
from ncheck.facts.login import LoginFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, File
from ncheck.model.fact import Read

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Neighbour:
    """An address of another host. `mac`: what answered for it. `interface`: that of this node."""

    ip: str
    mac: str
    interface: str


@dataclass(frozen=True)
class NeighbourFacts:
    """The IPv4 neighbours that have answered, after the node has connected to the others."""

    neighbours: tuple[Neighbour, ...]


ARP = File("/proc/net/arp")
_HEADER = "IP address"
_COMPLETE = 0x2  # ATF_COM in linux/if_arp.h: an answer came
_MAC = expression(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_MOST = 65536  # lines: no kernel keeps more by default


def neighbours(evidence: Evidence) -> Read[NeighbourFacts]:
    """Read the table. Raises ValueError if it is none."""
    reply = evidence.reply(ARP)
    if why := no_answer(ARP, reply):
        return why
    header, *lines = decoded(reply.value, str).splitlines()[:_MOST]
    if not header.startswith(_HEADER):
        raise ValueError("no ARP table")
    return NeighbourFacts(tuple(filter(None, map(_neighbour, lines))))


@lru_cache(maxsize=4096)  # every node of a cluster has all the others in its table
def _neighbour(line: str) -> Neighbour | None:
    """Read one line; None if nobody answered yet, or not by Ethernet."""
    # 10.1.0.7         0x1         0x2         02:00:00:00:00:07     *        eth0
    ip, _, flags, mac, _, interface = line.split()
    complete = int(flags, 16) & _COMPLETE and _MAC.fullmatch(mac)
    return Neighbour(str(IPv4Address(ip)), mac, interface) if complete else None


def ask_neighbours(cluster: Cluster, _settings: Settings, _left: float) -> Questions:
    """Ask each node once the links have been tried: only then does it know its neighbours."""
    return {node.name: (ARP,) for node in cluster.connected}


FACTS = (
    Fact(
        NeighbourFacts, (ARP,), neighbours, TRYING_PLAN,
        needs=(LoginFacts,), questions=ask_neighbours, exempt=exempt_without_peers,
    ),
)  # fmt: skip
