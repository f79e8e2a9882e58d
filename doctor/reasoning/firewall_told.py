"""Which nodes a firewall closes to the others, what is said of it, and the line that opens it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote

from doctor.model.fact import Unread
from doctor.model.facts import Chain, FirewallFacts, LinkCause, LinkFacts, NetSettingsFacts, NicFacts
from doctor.reasoning.firewall import Packet, stopped
from doctor.reasoning.subnets import Seats, networks

DEFAULT_PORTS = (32768, 60999)
_BY_IPTABLES = "iptables"
_STOPPED = frozenset({LinkCause.REFUSED, LinkCause.FILTERED})
_MOST_SOURCES = 3  # other nodes that are tried as the sender: rules seldom tell one host of a subnet from another


@dataclass(frozen=True)
class Closed:
    """One node, in words; `fix` is a line to type on it."""

    node: str
    message: str
    fix: str


def closed_nodes(
    firewalls: Mapping[str, FirewallFacts],
    nics: Mapping[str, NicFacts],
    settings: Mapping[str, NetSettingsFacts],
    links: Mapping[str, LinkFacts],
) -> Iterator[Closed]:
    """Yield the nodes that are closed, or where that must be feared and nobody has connected to them."""
    subnets = {subnet: members for subnet, members in networks(nics).items() if ":" not in subnet}
    for node, facts in firewalls.items():
        if _proved_open(node, links):
            continue
        ports = settings[node].ephemeral if node in settings else DEFAULT_PORTS
        if isinstance(facts.chains, Unread):
            yield from _feared(node, facts, next((s for s, held in subnets.items() if node in held), "SUBNET"), ports)
        else:
            yield from _found(node, facts.chains, facts.managers, subnets, ports)


def _proved_open(node: str, links: Mapping[str, LinkFacts]) -> bool:
    """Tell whether other nodes did connect to it, every one that tried."""
    tried = [held for held in links.values() if node in held.tried_to]
    broken = (link for held in tried for link in held.broken if link.target == node and not link.port)
    return bool(tried) and not any(link.cause in _STOPPED for link in broken)


def _feared(node: str, facts: FirewallFacts, subnet: str, ports: tuple[int, int]) -> Iterator[Closed]:
    if facts.managers:
        names = " and ".join(facts.managers)
        message = (
            f"{names} is active: TCP ports {ports[0]} to {ports[1]} must be open between the nodes, and only root "
        )
        yield Closed(node, message + "is shown whether they are", _opened(facts.managers, None, subnet))


def _found(
    node: str,
    chains: tuple[Chain, ...],
    managers: tuple[str, ...],
    subnets: Mapping[str, Seats],
    ports: tuple[int, int],
) -> Iterator[Closed]:
    samples = (ports[0], (ports[0] + ports[1]) // 2, ports[1])
    for subnet, members in subnets.items():
        for packet in _packets(node, members, samples):
            if chain := stopped(chains, packet):
                who = f"{chain.table}, chain {chain.name}"
                message = (
                    f"new TCP connections from other nodes in {subnet} to port {packet.port} are stopped ({who}): "
                )
                message += f"ports {ports[0]} to {ports[1]} must be open between the nodes"
                yield Closed(node, message, _opened(managers, chain, subnet))
                return


def _packets(node: str, members: Seats, ports: tuple[int, ...]) -> Iterator[Packet]:
    others = [seats[0].ip for other, seats in members.items() if other != node]
    for seat in members.get(node, ()):
        for source in others[:_MOST_SOURCES]:
            yield from (Packet(seat.interface.name, source, seat.ip, port) for port in ports)


def _opened(managers: tuple[str, ...], chain: Chain | None, subnet: str) -> str:
    if "firewalld" in managers:
        return f"sudo firewall-cmd --permanent --zone=trusted --add-source={subnet} && sudo firewall-cmd --reload"
    if "ufw" in managers:
        return f"sudo ufw allow from {subnet}"
    if chain is None or chain.table.startswith(_BY_IPTABLES):
        return f"sudo iptables -I INPUT -s {subnet} -j ACCEPT"
    family, _, table = chain.table.partition(" ")
    return f"sudo nft insert rule {quote(family)} {quote(table)} {quote(chain.name)} ip saddr {subnet} accept"
