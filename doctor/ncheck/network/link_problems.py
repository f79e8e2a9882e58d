"""What broken links mean for a job: which of them it cannot do without, and the words and lines for each.

A job needs one subnet in which all nodes reach each other. What is broken beside such a one costs nothing, unless NCCL
would pick it as things are; where there is none, all that is broken in a subnet that all share stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from shlex import quote

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.model.check import Inconclusive, Problem
from ncheck.model.cluster import Cluster, FactType
from ncheck.nccl.picks import MADE_OF, line_into, picked_addresses
from ncheck.network.link_faults import Fault, Trouble, carries, doubt, faults, subnets_tried
from ncheck.network.link_matrix import Known, Shape, Tried, joined, shown
from ncheck.network.logins import by_ssh
from ncheck.network.subnets import SubnetAddress, SubnetMembers, best_first, shared

READS: tuple[FactType, ...] = (LinkFacts, NicFacts)


ALSO: tuple[FactType, ...] = (LoginFacts, EnvironmentFacts, *MADE_OF)


class Weight(Enum):
    """What a fault means for a job."""

    NEEDED = "no other subnet is known to carry all nodes"
    PICKED = "NCCL would pick this subnet, and another one carries all nodes"
    SPARE = "no job needs it"


@dataclass(frozen=True)
class Weighed:
    """A fault with its weight; `instead` is the subnet that carries all nodes, "" where there is none."""

    fault: Fault
    weight: Weight
    instead: str = ""

    @property
    def meaning(self) -> str:
        """Say what it means for the job."""
        if self.weight is Weight.PICKED:
            return f"NCCL picks this subnet as things are, and would hang; {self.instead} carries all nodes"
        if self.weight is Weight.SPARE:
            return f"{self.instead} carries all nodes: keep the job there" if self.instead else "no job needs it"
        when = "at its first large message" if self.fault.trouble is Trouble.LARGE_LOST else "at its start"
        return f"no other subnet is known to carry all nodes, so a job over them hangs {when}"


def problems(cluster: Cluster, weight: Weight, trouble: Trouble | None = None) -> Iterator[Problem | Inconclusive]:
    """Yield what is broken of this weight (and this trouble), one problem a sentence, and what is not known."""
    scales = _Scales(cluster)
    for one in scales.weighed():
        if one.weight is weight and trouble in (None, one.fault.trouble):
            yield _problem(cluster, one, scales.everywhere)
    for subnet in subnets_tried(scales.known):
        if left_out := doubt(scales.known, subnet, scales.known):
            yield left_out


@dataclass(frozen=True)
class _Scales:
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
            yield Weighed(fault, self._weight(fault, carried=bool(whole)), whole[0] if whole else "")

    def _weight(self, fault: Fault, *, carried: bool) -> Weight:
        if carried:
            return Weight.PICKED if self._picked(fault) else Weight.SPARE
        if self.everywhere:
            return Weight.NEEDED if fault.subnet in self.everywhere else Weight.SPARE
        return Weight.NEEDED if fault.pairs & self._lost else Weight.SPARE

    @cached_property
    def _lost(self) -> frozenset[frozenset[str]]:
        return frozenset(pair for pair, good in joined(self.known).items() if not good)

    def _picked(self, fault: Fault) -> bool:
        """Tell whether both ends of some broken pair are where NCCL would meet."""
        there = {node for node, seat in self._picks.items() if seat.subnet == fault.subnet}
        return any(pair <= there for pair in fault.pairs)

    @cached_property
    def _picks(self) -> Mapping[str, SubnetAddress]:
        return picked_addresses(self.cluster)


def _problem(cluster: Cluster, one: Weighed, everywhere: Mapping[str, SubnetMembers]) -> Problem:
    fault = one.fault
    nics = cluster.facts(NicFacts)
    picked = one.weight is Weight.PICKED
    fix = line_into(everywhere, one.instead) if picked else cure(fault, nics, cluster.facts(LoginFacts))
    return Problem(
        message=f"{fault.told}{mtus_told(fault, nics)}; {one.meaning}",
        fix=fix,
        evidence=shown(fault.links),
        nodes=fault.nodes,
    )


Logins = Mapping[str, LoginFacts]


Nics = Mapping[str, NicFacts]


_HEADERS = {4: 28, 6: 48}  # bytes of IP and ICMP before what ping sends


def cure(fault: Fault, nics: Nics, logins: Logins) -> str:
    """Return the line that mends a fault, or that shows more of it than ncheck could see."""
    first = fault.links[0]
    if fault.trouble is Trouble.LARGE_LOST:
        return _about_mtu(first, nics, logins)
    if fault.trouble is Trouble.CUT:
        return there(first.node, logins, "ip", "neigh", "show", "to", first.link.address)
    if first.link.cause is LinkCause.UNROUTABLE or fault.shape is Shape.NOBODY:
        own = next((tried for tried in fault.links if tried.node in fault.nodes), first)
        return there(own.node, logins, "ip", "route", "get", own.link.address, "from", own.link.source)
    alone = fault.shape in (Shape.CUT_OFF, Shape.UNREACHED, Shape.MUTE)
    return there(fault.left[0] if alone else first.link.target, logins, "sudo", "nft", "list", "ruleset")


def mtus_told(fault: Fault, nics: Nics) -> str:
    """Say which MTUs the two ends of a path have on which large packets are lost; "" of any other fault."""
    if fault.trouble is not Trouble.LARGE_LOST:
        return ""
    near, far = (_interface(nics, *end) for end in _ends(fault.links[0]))
    if not near or not far:
        return ""
    if near.mtu == far.mtu:
        return f" (MTU {near.mtu} at both ends: something between them takes less)"
    names = [node for node, _ in _ends(fault.links[0])]
    return f" (MTU {near.mtu} on {names[0]}, {far.mtu} on {names[1]})"


def there(node: str, logins: Logins, *argv: str) -> str:
    """Return the line that runs this on a node, as the run logged in to it."""
    start = by_ssh(quote(node), logins[node].login) if node in logins else f"ssh {quote(node)}"
    start = start.replace("ssh ", "ssh -t ", 1) if argv[0] == "sudo" else start  # it may ask for a password
    words = " ".join(map(quote, argv))
    return f"{start} {words}" if words == " ".join(argv) else f"{start} {quote(words)}"


def _about_mtu(first: Tried, nics: Nics, logins: Logins) -> str:
    """Return the smaller MTU to set where the ends differ, else a ping of the largest size."""
    (node, source), (other, address) = _ends(first)
    near, far = _interface(nics, node, source), _interface(nics, other, address)
    if near and far and near.mtu > far.mtu:
        return there(node, logins, "sudo", "ip", "link", "set", "dev", near.name, "mtu", str(far.mtu))
    size = (near.mtu if near else 1500) - _HEADERS[6 if ":" in address else 4]
    return there(node, logins, "ping", "-c", "3", "-M", "do", "-s", str(size), "-I", source, address)


def _ends(tried: Tried) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return node and address that large packets come from, and those that they do not come to."""
    link = tried.link
    ends = (tried.node, link.source), (link.target, link.address)
    return (ends[1], ends[0]) if link.cause is LinkCause.LARGE_LOST_BACK else ends


def _interface(nics: Nics, node: str, ip: str) -> Interface | None:
    held = nics[node].interfaces if node in nics else ()
    return next((nic for nic in held if any(address.ip == ip for address in nic.addresses)), None)
