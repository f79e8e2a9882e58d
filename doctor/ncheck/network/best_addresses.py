"""Which interface of each node a line to type should name: that of the network which the plan would take."""

from __future__ import annotations

from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import Cluster
from ncheck.network.link_faults import carrying
from ncheck.network.subnets import Seat, clashing, machines, seats

SEATED = (LinkFacts, IdentityFacts)  # what they are made of beside the interfaces


def best_seats(cluster: Cluster) -> dict[str, tuple[Seat, ...]]:
    """Return the addresses of each node by which others can find it, the best first; none that others show, too.

    The check is to declare NicFacts and those of SEATED; of a node whose interfaces were not read there are none.
    """
    nodes = cluster.facts(NicFacts)
    single = machines(nodes, cluster.facts(IdentityFacts))
    whole, clashes = carrying(cluster.facts(LinkFacts), single), clashing(single)
    order = {subnet: place for place, subnet in enumerate(whole)}
    found = {node: [seat for seat in seats(nics) if seat.ip not in clashes] for node, nics in nodes.items()}
    return {
        node.name: tuple(sorted(found.get(node.name, ()), key=lambda seat: order.get(seat.subnet, len(order))))
        for node in cluster
    }
