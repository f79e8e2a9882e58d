"""Links as made nodes would tell of them: all whole, but for those that a test breaks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import Facts
from ncheck.network.subnets import SubnetMembers, subnets


def linked(nodes: Mapping[str, Facts], dead: Collection[str] = ()) -> dict[str, Facts]:
    """Return the nodes with what each tried: every subnet that it shares with another, the dead ones in vain."""
    nics = {name: held for name, facts in nodes.items() if isinstance(held := facts.get(NicFacts), NicFacts)}
    nets = {subnet: members for subnet, members in subnets(nics).items() if len(members) > 1}
    return {
        name: {**facts, LinkFacts: _links(name, nets, dead)} if name in nics else facts for name, facts in nodes.items()
    }


def _links(node: str, nets: Mapping[str, SubnetMembers], dead: Collection[str]) -> LinkFacts:
    reaches, broken, others = [], [], set()
    for subnet, members in nets.items():
        for own in members.get(node, ()):
            there = [(other, address) for other, addresses in members.items() for address in addresses if other != node]
            others |= {other for other, _ in there}
            lost = [Link(own.ip, other, address.ip, subnet, LinkCause.FILTERED) for other, address in there]
            broken += lost if subnet in dead else []
            tried = len({other for other, _ in there})
            reaches.append(Reach(subnet, own.ip, tried, 0 if subnet in dead else tried))
    return LinkFacts(tuple(reaches), tuple(broken), frozenset(others))
