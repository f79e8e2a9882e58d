"""Whether the nodes look each other up rightly: what each name leads to, held against whose addresses these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ncheck.facts.names import NameFacts, Resolved
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.parity import gathered, split
from ncheck.parse.interface_names import Kind


@dataclass(frozen=True)
class Misled:
    """A name that leads astray on these nodes; `what` says how."""

    name: str
    what: str
    nodes: tuple[str, ...]


def owned(nics: NicFacts) -> frozenset[str]:
    """Return the addresses by which others can mean this node."""
    held = (nic for nic in nics.interfaces if nic.kind is not Kind.CONTAINER_BRIDGE)
    return frozenset(address.ip for nic in held for address in nic.addresses if address.scope == "global")


def misled(asked: Mapping[str, NameFacts], own: Mapping[str, frozenset[str]]) -> Iterator[Misled]:
    """Yield what is wrong. `own` holds the addresses of nodes, as far as they are known.

    A name that resolves nowhere is no fault: the nodes know it by their ssh configuration, or not at all, and then ssh
    between them fails. What a node's own name leads to on itself is a matter of its own.
    """
    unresolved: dict[str, tuple[tuple[str, ...], str]] = {}
    for name in dict.fromkeys(name for held in asked.values() for name in held.names):
        answers = {node: held.names[name] for node, held in asked.items() if name in held.names}
        found = {node: frozenset(one.addresses) for node, one in answers.items() if one.addresses}
        if node_itself := found.get(name):
            found = found if not all(map(_loopback, node_itself)) else {n: ips for n, ips in found.items() if n != name}
        lost = tuple(node for node, one in answers.items() if one.error)
        if found and lost:
            unresolved[name] = (lost, answers[lost[0]].error)
        yield from _strange(name, found, own.get(name, frozenset()))
    for (lost, error), names in gathered(unresolved).items():
        yield Misled(names[0], f"{fold(names)} {'does' if len(names) == 1 else 'do'} not resolve: {error}", lost)


def late(asked: Mapping[str, NameFacts]) -> tuple[str, ...]:
    """Return the nodes whose resolver did not answer in time."""
    return tuple(node for node, held in asked.items() if any(one.late for one in held.names.values()))


def _strange(name: str, found: Mapping[str, frozenset[str]], own: frozenset[str]) -> Iterator[Misled]:
    """Tell addresses that are not the node's from a choice among its own that is not the same everywhere."""
    astray = {node: _told(ips) for node, ips in found.items() if own and not ips & own}
    for told, nodes in gathered(astray).items():
        yield Misled(name, f"{name} is {told}, which is no address of it", nodes)
    right = {node: ips for node, ips in found.items() if node not in astray}
    parted = split({node: _told(ips) for node, ips in right.items()})
    if parted and not frozenset.intersection(*right.values()):
        yield Misled(name, f"{name} is not the same address everywhere: {parted.told()}", parted.odd)


def _told(ips: frozenset[str]) -> str:
    return " and ".join(sorted(ips))


def _loopback(ip: str) -> bool:
    return ip.startswith("127.") or ip == "::1"


def leads_home(resolved: Resolved) -> bool:
    """Tell whether a program that takes a name's first address ends at loopback."""
    return bool(resolved.addresses) and _loopback(resolved.addresses[0])
