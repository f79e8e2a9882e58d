"""What broken links mean for a job, with a message and a fix for each.

A job needs one subnet in which all nodes reach each other. If there is one, faults in other subnets do no harm unless
NCCL would pick that subnet. If there is none, every fault in a subnet that all nodes share matters.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import cached_property

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.nics import Interface, NicFacts, SubnetAddress
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE, PLAN, Fix, Inconclusive, Problem
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.finding import Severity
from ncheck.nccl.choice import PICK_FACTS, picked_addresses
from ncheck.network.link_faults import FaultKind, SubnetFault, carries, doubts, faults, subnets_tried
from ncheck.network.link_matrix import Known, Shape, Tried, joined, shown
from ncheck.network.slowdown import SLOWDOWN_FACTS, slowdown
from ncheck.network.subnets import SubnetMembers, best_first, shared
from ncheck.parse.interface_names import Kind

READS: tuple[FactType, ...] = (LinkFacts, NicFacts)
ALSO: tuple[FactType, ...] = (EnvironmentFacts, *PICK_FACTS, *SLOWDOWN_FACTS)


class Weight(Enum):
    """How much a fault matters to a job."""

    NEEDED = "no other subnet is known to connect all nodes"
    PICKED = "NCCL would pick this subnet, but another one connects all nodes"
    SLOWER = "another subnet connects all nodes, and it is slower"
    SPARE = "no job needs it"


@dataclass(frozen=True)
class Weighed:
    """A fault with its weight; `instead` is the subnet that connects all nodes, "" if there is none.

    `loss`: what the job loses by using that one.
    """

    fault: SubnetFault
    weight: Weight
    instead: str = ""
    loss: str = ""

    @property
    def effect(self) -> str:
        """The effect on the job."""
        if self.weight is Weight.PICKED:
            return f"NCCL would pick this subnet and hang; {self.instead} connects all nodes"
        if self.weight is Weight.SLOWER:
            return self.loss
        if self.weight is Weight.SPARE:
            return f"{self.instead} connects all nodes: use it for the job" if self.instead else "no job needs it"
        when = "at its first large message" if self.fault.trouble is FaultKind.LARGE_LOST else "at its start"
        return f"no other subnet is known to connect all nodes, so a job hangs {when}"


def problems(cluster: Cluster, weight: Weight, trouble: FaultKind | None = None) -> Iterator[Problem | Inconclusive]:
    """Yield one problem for each fault of this weight (and this trouble), and the links that were not tried."""
    assessment = _Assessment(cluster)
    for weighed in assessment.weighed():
        partly = weighed.fault.trouble is FaultKind.PARTLY  # these have one check, whatever they weigh
        if weighed.weight is weight and trouble in (None, weighed.fault.trouble) and not partly:
            yield _problem(cluster, weighed)
    yield from doubts(assessment.known, cluster.facts(NicFacts))


def lost_flows(cluster: Cluster) -> Iterator[Problem]:
    """Yield one problem for each node, or two, that lose a part of their connections."""
    for weighed in _Assessment(cluster).weighed():
        if weighed.fault.trouble is FaultKind.PARTLY:
            spare = weighed.weight in (Weight.SLOWER, Weight.SPARE)
            yield replace(_problem(cluster, weighed), severity=Severity.WARNING if spare else None)


@dataclass(frozen=True)
class _Assessment:
    """Weighs the faults of a cluster."""

    cluster: Cluster

    @cached_property
    def known(self) -> Known:
        return self.cluster.facts(LinkFacts)

    @cached_property
    def everywhere(self) -> dict[str, SubnetMembers]:
        return best_first(shared(self.cluster.facts(NicFacts)))

    def weighed(self) -> Iterator[Weighed]:
        found = [fault for subnet in subnets_tried(self.known) for fault in faults(self.known, subnet, self.known)]
        whole = [subnet for subnet in self.everywhere if found and carries(self.known, subnet, self.known).whole]
        for fault in found:
            loss = self._loss(fault, whole[0]) if whole else ""
            yield Weighed(fault, self._weight(fault, loss, carried=bool(whole)), whole[0] if whole else "", loss)

    def _weight(self, fault: SubnetFault, loss: str, *, carried: bool) -> Weight:
        if carried:
            return Weight.PICKED if self._picked(fault) else Weight.SLOWER if loss else Weight.SPARE
        if self.everywhere:
            return Weight.NEEDED if fault.subnet in self.everywhere else Weight.SPARE
        return Weight.NEEDED if fault.pairs & self._lost else Weight.SPARE

    def _loss(self, fault: SubnetFault, instead: str) -> str:
        """Return what the job loses by this fault; a network in which no two nodes reach each other was never meant."""
        never_meant = fault.shape is Shape.NOBODY and fault.trouble is not FaultKind.LARGE_LOST
        if never_meant or fault.subnet not in self.everywhere:
            return ""
        return slowdown(self.cluster, self.everywhere[fault.subnet], instead, self.everywhere[instead])

    @cached_property
    def _lost(self) -> frozenset[frozenset[str]]:
        return frozenset(pair for pair, good in joined(self.known).items() if not good)

    def _picked(self, fault: SubnetFault) -> bool:
        """Tell whether NCCL would pick this subnet on both nodes of some broken pair."""
        nodes = {node for node, pick in self._picks.items() if pick.subnet == fault.subnet}
        return any(pair <= nodes for pair in fault.pairs)

    @cached_property
    def _picks(self) -> Mapping[str, SubnetAddress]:
        return picked_addresses(self.cluster)


def _problem(cluster: Cluster, weighed: Weighed) -> Problem:
    fault = weighed.fault
    nics = cluster.facts(NicFacts)
    picked = weighed.weight is Weight.PICKED
    fix = PLANNED if picked else _fix(fault, nics)
    return Problem(
        message=f"{fault.summary}{_mtus(fault, nics)}; {weighed.effect}",
        fix=fix.line,
        evidence=shown(fault.links),
        nodes=fault.nodes,
        where=fix.where,
        look=fix.look,
    )


PLANNED = Fix(PLAN, HERE)


def on(node: str, *argv: str, look: bool = True) -> Fix:
    """Return a command for this node."""
    return Fix(shlex.join(argv), node, look)


Nics = Mapping[str, NicFacts]
_HEADERS = {4: 28, 6: 48}  # bytes of the IP and ICMP headers of a ping


def _fix(fault: SubnetFault, nics: Nics) -> Fix:
    """Return the command that removes a fault, or that shows more of it than ncheck can see."""
    first = fault.links[0]
    if fault.trouble is FaultKind.PARTLY:
        return _legs(fault, nics)
    if fault.trouble is FaultKind.LARGE_LOST:
        return _mtu_fix(first, nics)
    if fault.trouble is FaultKind.CUT:
        return on(first.node, "ip", "neigh", "show", "to", first.link.address)
    if first.link.cause is LinkCause.UNROUTABLE or fault.shape is Shape.NOBODY:
        own = next((tried for tried in fault.links if tried.node in fault.nodes), first)
        return on(own.node, "ip", "route", "get", own.link.address, "from", own.link.source)
    one_sided = fault.shape in (Shape.CUT_OFF, Shape.UNREACHED, Shape.MUTE)
    node = fault.left[0] if one_sided else first.link.target
    firewall = on(node, "sudo", "nft", "list", "ruleset")
    if first.link.cause is not LinkCause.FILTERED:
        return firewall
    # Or packets are led astray, by a static route that is left over at either end: there an own address is "local".
    routes = "".join(f"ip route get {address}; " for address in (first.link.source, first.link.address))
    both = not one_sided and {first.node, first.link.target} == set(fault.nodes)
    return Fix(routes + firewall.line, "" if both else node, look=True)


def _legs(fault: SubnetFault, nics: Nics) -> Fix:
    """Return the command that shows each leg of a bond, or what an interface dropped."""
    tried, node = fault.links[0], fault.nodes[0]
    ends = {tried.node: tried.link.source, tried.link.target: tried.link.address}
    nic = _interface(nics, node, ends[node])
    bond = nic and nic.kind is Kind.BOND
    return on(node, "cat", f"/proc/net/bonding/{nic.name}") if nic and bond else on(node, "ip", "-s", "-s", "link")


def _mtus(fault: SubnetFault, nics: Nics) -> str:
    """Return the MTUs of the two ends if large packets are lost between them, otherwise ""."""
    if fault.trouble is not FaultKind.LARGE_LOST:
        return ""
    near, far = (_interface(nics, *end) for end in _ends(fault.links[0]))
    if not near or not far:
        return ""
    if near.mtu == far.mtu:
        return f" (MTU {near.mtu} at both ends: something between them has a smaller one)"
    names = [node for node, _ in _ends(fault.links[0])]
    return f" (MTU {near.mtu} on {names[0]}, {far.mtu} on {names[1]})"


def _mtu_fix(first: Tried, nics: Nics) -> Fix:
    """Return the command that sets the smaller MTU if the ends differ, otherwise a ping of the largest size."""
    (node, source), (other, address) = _ends(first)
    near, far = _interface(nics, node, source), _interface(nics, other, address)
    if near and far and near.mtu > far.mtu:
        return on(node, "sudo", "ip", "link", "set", "dev", near.name, "mtu", str(far.mtu), look=False)
    size = (near.mtu if near else 1500) - _HEADERS[6 if ":" in address else 4]
    return on(node, "ping", "-c", "3", "-M", "do", "-s", str(size), "-I", source, address)


def _ends(tried: Tried) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return node and address of the sender of the lost packets, and of their receiver."""
    link = tried.link
    ends = (tried.node, link.source), (link.target, link.address)
    return (ends[1], ends[0]) if link.cause is LinkCause.LARGE_LOST_BACK else ends


def _interface(nics: Nics, node: str, ip: str) -> Interface | None:
    interfaces = nics[node].interfaces if node in nics else ()
    return next((nic for nic in interfaces if any(address.ip == ip for address in nic.addresses)), None)
