"""Which interface of each node a line to type should name: that of the network which the plan would take."""

from __future__ import annotations

from doctor.links.faults import carrying
from doctor.model.check import ClusterView
from doctor.model.facts import IdentityFacts, LinkFacts, NicFacts
from doctor.reasoning.subnets import Seat, clashing, machines, seats

SEATED = (LinkFacts, IdentityFacts)  # what they are made of beside the interfaces


def best_seats(cluster: ClusterView) -> dict[str, tuple[Seat, ...]]:
    """Return the addresses of each node by which others can find it, the best first; none that others show, too.

    The check is to declare NicFacts and those of SEATED; of a node whose interfaces were not read there are none.
    """
    nodes = {node.name: nics for node in cluster if isinstance(nics := node.maybe(NicFacts), NicFacts)}
    links = {node.name: facts for node in cluster if isinstance(facts := node.maybe(LinkFacts), LinkFacts)}
    identities = {node.name: node.maybe(IdentityFacts) for node in cluster}
    known = machines({node: (nics, identities[node]) for node, nics in nodes.items()})
    order, clashes = {subnet: place for place, subnet in enumerate(carrying(links, known))}, clashing(known)
    found = {node: [seat for seat in seats(nics) if seat.ip not in clashes] for node, nics in nodes.items()}
    return {
        node.name: tuple(sorted(found.get(node.name, ()), key=lambda seat: order.get(seat.subnet, len(order))))
        for node in cluster
    }
