"""What rules do to a packet that opens a connection, followed as the kernel follows them.

A condition that is not understood may hold or not, and both ways are followed: a packet is stopped only where no way
leads to its acceptance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address, ip_network

from doctor.model.facts import Chain, Match

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
