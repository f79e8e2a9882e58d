"""Two InfiniBand ports have the same address

## What it finds
A port GUID that two InfiniBand ports of the cluster have, or a LID that the same port of two nodes has in the same
subnet (subnet prefix and subnet manager). LIDs are not compared if nodes name their HCAs differently: each rail may
have a subnet manager of its own. Nor are nodes that are the same machine, virtual functions, which share the address of
a card, and RoCE ports, which have MAC addresses.

## Why it matters
GUIDs and LIDs are unique in a subnet. Of two ports with one GUID the subnet manager brings up one, or both in turns; of
two with one LID, packets reach the wrong node: connections end with "Got completion with error 12", hang, or fail on
some pairs only. Cards that were flashed with another card's image have its GUIDs; equal LIDs mean two subnet managers.

## What to type
`sudo ibnetdiscover | grep -i GUID` where the subnet manager sees
them; `sudo sminfo` on both nodes whether it is the same one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.hcas import HcaFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.login import IdentityFacts
from ncheck.nccl.hca import active, is_virtual, subnet_prefix
from ncheck.nccl.hca_ports import named_differently
from ncheck.network.subnets import doubles

V = TypeVar("V", bound=Hashable)
Held = tuple[str, HcaPort]  # a node and one of its ports


@cluster_check("NC414", Severity.ERROR, InfinibandFacts, HcaFacts, also=(IdentityFacts,), alone=True, hardware=True)
def ib_address_twice(cluster: Cluster) -> Iterator[Problem]:
    nodes, details = cluster.facts(InfinibandFacts), cluster.facts(HcaFacts)
    again = doubles(nodes, cluster.facts(IdentityFacts))
    ports = [
        (node, port) for node, facts in nodes.items() if node not in again for port in active(facts.ports)
        if port.link_layer == "InfiniBand" and not is_virtual(port)
    ]  # fmt: skip
    guids = _shared((held, held[1].port_guid) for held in ports if held[1].port_guid.strip("0x"))
    lids = _shared(
        ((node, port), (port.lid, port.place, port.sm_lid, subnet_prefix(details[node].of(*port.place).gids)))
        for node, port in ports if port.lid not in (None, 0, 0xFFFF)
    )  # fmt: skip
    for guid, holders in guids.items():
        yield _problem(f"port GUID {guid}", holders)
    for (lid, *_), holders in lids.items():
        if not named_differently(nodes) and len({port.port_guid for _, port in holders}) > 1:
            yield _problem(f"LID {lid}", holders)


def _shared(values: Iterable[tuple[Held, V]]) -> dict[V, list[Held]]:
    """Return the values that several ports have, with these."""
    holders: dict[V, list[Held]] = {}
    for held, value in values:
        holders.setdefault(value, []).append(held)
    return {value: found for value, found in holders.items() if len(found) > 1}


def _problem(address: str, holders: list[Held]) -> Problem:
    places = ", ".join(f"{node} {port.hca} port {port.port}" for node, port in holders)
    nodes = tuple(dict.fromkeys(node for node, _ in holders))
    message = f"{address} is used by {len(holders)} ports: {places}"
    return Problem(message, "sudo ibnetdiscover", nodes=nodes, look=True, summary="an InfiniBand address is used twice")
