"""Which interface of each node a line to type should name: that of the network which the plan would take."""

from __future__ import annotations

from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import Cluster
from ncheck.network.link_faults import carrying
from ncheck.network.subnets import SubnetAddress, clashing, machines, subnet_addresses

ADDRESS_FACTS = (LinkFacts, IdentityFacts)  # what they are made of beside the interfaces


def best_addresses(cluster: Cluster) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return the addresses of each node by which others can find it, the best first; none that others show, too.

    The check must declare NicFacts and ADDRESS_FACTS. A node whose interfaces were not read has no addresses.
    """
    nodes = cluster.facts(NicFacts)
    single = machines(nodes, cluster.facts(IdentityFacts))
    whole, clashes = carrying(cluster.facts(LinkFacts), single), clashing(single)
    order = {subnet: place for place, subnet in enumerate(whole)}
    found = {node: [seat for seat in subnet_addresses(nics) if seat.ip not in clashes] for node, nics in nodes.items()}
    return {
        node.name: tuple(sorted(found.get(node.name, ()), key=lambda seat: order.get(seat.subnet, len(order))))
        for node in cluster
    }
