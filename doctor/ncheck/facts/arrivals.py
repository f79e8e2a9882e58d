"""What the reverse path filter would do with packets of other nodes: asked of the kernel, without sending any."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.decode import Ip
from ncheck.facts.definition import ASKING_PEERS, Fact, exempt_without_peers
from ncheck.facts.login import LoginFacts
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.phase import NotAsked, Questions
from ncheck.network.subnets import subnet_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Arrival:
    """A packet from `source`, an address of another node, that arrives on `interface` for its `address`."""

    interface: str
    address: Ip
    source: Ip
    taken: bool  # False: the reverse path filter drops it


@dataclass(frozen=True)
class ArrivalFacts:
    """One arrival for each address of the node and each subnet from which other nodes would send to it."""

    arrivals: tuple[Arrival, ...]


ARRIVALS = Answer("arrivals", shape=ArrivalFacts)
STRICT = 1  # net.ipv4.conf.*.rp_filter: 0 off, 1 strict, 2 loose
_WHY_NOT = "no packet of another node can arrive on a wrong interface: one interface, or no strict rp_filter"


def ask_arrivals(cluster: Cluster, _settings: Settings, left: float) -> Questions:
    """Ask each node whose interfaces and settings are known."""
    held = {
        name: [address for address in subnet_addresses(nics) if ":" not in address.ip]
        for name, nics in cluster.connected_facts(NicFacts).items()
    }
    questions: Questions = {}
    for name, kernel in cluster.connected_facts(NetSettingsFacts).items():
        if name in held:
            packets: list[JsonValue] = list(_packets(name, held, kernel))
            asked = replace(ARRIVALS, arguments={"arrivals": packets}, timeout=max(1.0, min(10.0, left - 1.0)))
            questions[name] = (asked if packets else NotAsked(ARRIVALS, _WHY_NOT),)
    return questions


def _packets(name: str, held: Mapping[str, list[SubnetAddress]], settings: NetSettingsFacts) -> Iterator[JsonValue]:
    own = held[name]
    if len({address.interface.name for address in own}) < 2:  # noqa: PLR2004  with one interface, replies leave where requests arrive
        return
    for address in own:
        if settings.effective(address.interface.name).rp_filter == STRICT:
            for source in _senders(name, address, held):
                yield {"interface": address.interface.name, "address": address.ip, "source": source}


def _senders(name: str, address: SubnetAddress, held: Mapping[str, list[SubnetAddress]]) -> Iterator[str]:
    """Yield an address for each subnet that others send from to this one: its own or, where no subnet is common to the
    two nodes, that of the other's interface of the same name (each a rail, which routers join).
    """
    seen: set[str] = set()
    mine = {one.subnet for one in held[name]}
    for other, theirs in held.items():
        apart = not mine & {one.subnet for one in theirs}
        for one in theirs if other != name else ():
            sends = one.subnet == address.subnet or (apart and one.interface.name == address.interface.name)
            if sends and one.subnet not in seen and one.ip != address.ip:
                seen.add(one.subnet)
                yield one.ip


FACTS = (
    Fact(
        ArrivalFacts, (ARRIVALS,), phase=ASKING_PEERS,
        needs=(LoginFacts, NicFacts, NetSettingsFacts), questions=ask_arrivals, exempt=exempt_without_peers,
    ),
)  # fmt: skip
