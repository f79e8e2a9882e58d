"""Two cables of a node are swapped

## What it finds
Nodes whose addresses are right and whose wires are crossed: the others find the address of eth1 at the hardware address
of eth2 and that of eth2 at the one of eth1, or the node finds theirs so. If a node is crossed with several others, it
is named, else both ends. Nothing is reported if most nodes look like this: then the networks share one wire. Interfaces
in one subnet are not compared (see arp-flux).

## Why it matters
Linux answers for all its addresses on every interface, so TCP works and nothing looks broken. But each packet goes by
the other network than the one that was chosen: perhaps a slow one. RDMA, and switches that check addresses, do not work
at all.

## What to type
`ip -br link` shows the hardware addresses, and `sudo ethtool -p NAME` lets a port blink. Swap the two cables, or the
VLANs of the two switch ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ncheck import Cluster, Problem, Severity, cluster_check, fold
from ncheck.facts.login import IdentityFacts
from ncheck.facts.neighbours import Neighbour, NeighbourFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.network.subnets import clashing, machines, subnet_addresses

_MOST_SHOWN = 8

Pair = tuple[str, str]  # the node that sees, and the one that is seen


@cluster_check("NC364", Severity.ERROR, NicFacts, NeighbourFacts, also=(IdentityFacts,), next_step="ticket")
def cables_swapped(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    known = {node: facts for node, facts in cluster.facts(NeighbourFacts).items() if node in nodes}
    crossed = _crossed(nodes, known)
    for odd in _culprits({frozenset(pair) for pair in crossed}, len(nodes)):
        lines = [line for pair, found in crossed.items() if set(odd) & set(pair) for line in found]
        message = f"wires are crossed at {fold(odd)}: its addresses answer at the wrong interfaces"
        yield Problem(message, "ip -br link", tuple(lines[:_MOST_SHOWN]), odd, look=True)


def _crossed(nodes: Mapping[str, NicFacts], known: Mapping[str, NeighbourFacts]) -> dict[Pair, tuple[str, ...]]:
    """Return each pair of which the first finds interfaces of the second in each other's place, with how it does.

    If only one of two is out of its place, one wire may carry both networks, and any interface answers on it.
    """
    clashes = clashing(nodes)
    owners = {
        address.ip: (node, address)
        for node, nics in nodes.items()
        for address in subnet_addresses(nics)
        if address.ip not in clashes
    }
    every: dict[int, Neighbour] = {}  # what all see is one object
    for facts in known.values():
        every.update(zip(map(id, facts.neighbours), facts.neighbours, strict=True))
    odd = {
        at for at, found in every.items() if found.ip in owners and owners[found.ip][1].interface.mac != found.mac
    }  # fmt: skip
    moved: dict[Pair, dict[str, tuple[str, str]]] = {}
    for node, facts in known.items() if odd else ():
        for found in (found for found in facts.neighbours if id(found) in odd):
            other, address = owners[found.ip]
            if other != node and (name := _instead(nodes[other], address, found)):
                line = (
                    f"{node} finds {found.ip} ({address.interface.name} of {other}) at {name}, by its {found.interface}"
                )
                moved.setdefault((node, other), {})[address.interface.name] = (name, line)
    return {
        pair: tuple(line for _, line in places.values())
        for pair, places in moved.items()
        if places.keys() == {name for name, _ in places.values()}
    }


def _instead(nics: NicFacts, address: SubnetAddress, found: Neighbour) -> str:
    """Return the interface of a node that answers for an address of another of its interfaces; "" if none does.

    A bond and its interfaces, or a VLAN and its parent, share one hardware address. Interfaces of one subnet may
    answer for each other.
    """
    if address.interface.mac in {"", found.mac}:
        return ""
    same = {one.interface.name for one in subnet_addresses(nics) if one.subnet == address.subnet}
    names = [nic.name for nic in nics.interfaces if nic.mac == found.mac]
    return "" if same.intersection(names) or not names else names[0]


def _culprits(pairs: set[frozenset[str]], nodes: int) -> list[tuple[str, ...]]:
    """Return the nodes that explain all pairs, and both ends of a pair of which either may; none if these are most."""
    found: list[tuple[str, ...]] = []
    left = sorted(map(sorted, pairs))
    while left:
        node, count = Counter(name for pair in left for name in pair).most_common(1)[0]
        found.append((node,) if count > 1 else tuple(left[0]))
        left = [pair for pair in left if not set(found[-1]) & set(pair)]
    return found if 2 * sum(map(len, found)) <= max(nodes, 4) else []
