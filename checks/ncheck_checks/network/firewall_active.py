"""A firewall stops new connections between the nodes

## What it finds
Nodes whose packet filter (nft or iptables rules at the input hook) surely drops or rejects new TCP connections from
other nodes to some of the ports that connections get, on an interface that a job may use. The rules are shown to root
only: without, a node is named where firewalld or ufw is active. A node is not named where the others did connect to
it. Rules for containers (Docker's FORWARD and NAT) and rules that cannot be told from here are passed over.

## Why it matters
NCCL, gloo and MPI listen on ports that the kernel picks (32768 to 60999 by default), and every node connects to every
other. Rejected, NCCL tries again for a minute and stops; dropped, each try takes two minutes, and the job hangs
without a word for more than an hour.

## What to type
Let the nodes' own network in. firewalld: `sudo firewall-cmd --permanent --zone=trusted --add-source=10.1.0.0/24`, then
`sudo firewall-cmd --reload`; ufw: `sudo ufw allow from 10.1.0.0/24`; bare nftables:
`sudo nft insert rule inet filter input ip saddr 10.1.0.0/24 accept`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address, ip_network
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.firewall import FirewallFacts
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.fact import Unread
from ncheck.network.subnets import SubnetMembers, networks
from ncheck.parse.packet_filters import Chain, Match

DEEPEST = 32  # jumps: the kernel allows 16


_END = "end"  # the packet came to the end of a chain, or was sent back


_DONE = frozenset({"accept", "drop", "reject"})


@dataclass(frozen=True)
class Packet:
    """The first packet of a TCP connection over IPv4."""

    interface: str
    source: str
    target: str
    port: int


def stopped(chains: Iterable[Chain], packet: Packet) -> Chain | None:
    """Return the chain at the input hook that surely stops the packet; None where all of them may let it pass."""
    tables: dict[str, dict[str, Chain]] = {}
    for chain in chains:
        tables.setdefault(chain.table, {})[chain.name] = chain
    for table in tables.values():
        for chain in table.values():
            if chain.policy:
                ends = _Way(table, packet).through(chain.name, 0)
                if "accept" not in {chain.policy if end == _END else end for end in ends}:
                    return chain
    return None


class _Way:
    """One packet on its way through the chains of one table."""

    def __init__(self, table: Mapping[str, Chain], packet: Packet) -> None:
        self.table, self.packet = table, packet
        self.known: dict[str, frozenset[str]] = {}

    def through(self, name: str, depth: int) -> frozenset[str]:
        """Return all that may become of the packet in a chain; of one that is not there or never ends, anything."""
        if name not in self.known:
            if name not in self.table or depth > DEEPEST:
                return frozenset({"accept", _END})
            self.known[name] = self._followed(self.table[name], depth)
        return self.known[name]

    def _followed(self, chain: Chain, depth: int) -> frozenset[str]:
        ends: set[str] = set()
        for rule in chain.rules:
            held = [holds(match, self.packet) for match in rule.matches]
            if False in held:
                continue
            becomes = self._verdict(rule.verdict, rule.to, depth)
            ends |= becomes - {"on"}
            if "on" not in becomes and None not in held:
                return frozenset(ends)
        return frozenset({*ends, _END})

    def _verdict(self, verdict: str, to: str, depth: int) -> frozenset[str]:
        """Return what a rule that holds does; "on" is that the next rule is looked at."""
        if verdict in _DONE:
            return frozenset({verdict})
        if verdict == "return":
            return frozenset({_END})
        if verdict == "goto":
            return self.through(to, depth + 1)
        if verdict == "jump":
            return frozenset("on" if end == _END else end for end in self.through(to, depth + 1))
        return frozenset({"on"})


def holds(match: Match, packet: Packet) -> bool | None:
    """Tell whether a condition holds for the packet; None where that cannot be told."""
    if match.field == "other":  # of another protocol than TCP over IPv4, so that the rule is for none of its packets
        return False
    found = [_is(match.field, value, packet) for value in match.values]
    if match.field == "" or (None in found and True not in found):
        return None
    return (True in found) != match.negated


def _is(field: str, value: str, packet: Packet) -> bool | None:
    try:
        return _compared(field, value, packet)
    except ValueError:  # a name where a number or an address was due
        return None


def _compared(field: str, value: str, packet: Packet) -> bool | None:
    if field == "interface":
        return packet.interface.startswith(value[:-1]) if value.endswith("*") else packet.interface == value
    if field in ("source", "target"):
        return _within(value, packet.source if field == "source" else packet.target)
    if field == "port":
        first, _, last = value.partition("-")
        return int(first) <= packet.port <= int(last or first)
    words: dict[str, tuple[str, ...]] = {
        "protocol": ("tcp", "6", "all"),
        "state": ("new",),
        "family": ("ipv4", "ip", "2"),
        "status": (),
    }
    return value in words[field] if field in words else None


def _within(value: str, ip: str) -> bool:
    if ":" in value:
        return False
    if "-" in value:
        first, last = (int(IPv4Address(part)) for part in value.split("-"))
        return first <= int(IPv4Address(ip)) <= last
    return ip_address(ip) in ip_network(value, strict=False)


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
    subnets: Mapping[str, SubnetMembers],
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


def _packets(node: str, members: SubnetMembers, ports: tuple[int, ...]) -> Iterator[Packet]:
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


@cluster_check("NC358", Severity.WARNING, FirewallFacts, NicFacts, also=(NetSettingsFacts, LinkFacts))
def firewall_active(cluster: Cluster) -> Iterator[Problem]:
    settings, links = cluster.facts(NetSettingsFacts), cluster.facts(LinkFacts)
    for closed in closed_nodes(cluster.facts(FirewallFacts), cluster.facts(NicFacts), settings, links):
        yield Problem(closed.message, closed.fix, nodes=(closed.node,))
