"""The networks between the nodes: which of them all nodes share, which carry, and why the others are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.network.link_faults import Carries, carries
from ncheck.network.subnets import (
    Missing,
    SubnetAddress,
    SubnetMembers,
    apart,
    clashing_addresses,
    common_names,
    machines,
    shared,
    speed,
    subnet_addresses,
    subnets,
    why_missing,
)
from ncheck.parity import nodes_by_value
from ncheck.plan.sight import Sight


@dataclass(frozen=True)
class Network:
    """Where the job's TCP goes. `subnet` is "" where the nodes share none and routers join them."""

    subnet: str
    members: SubnetMembers

    @property
    def names(self) -> tuple[str, ...]:
        """The interface names that lead there on every node."""
        return common_names(self.members)

    @property
    def first_names(self) -> frozenset[str]:
        """The name of the first interface there on each node."""
        return frozenset(held[0].interface.name for held in self.members.values())

    @property
    def told(self) -> str:
        return self.subnet or "the default route"


@dataclass(frozen=True)
class Chosen:
    """The network for the job, None where none can be named, then `why`. `left_out` tells of those that it is not."""

    network: Network | None
    why: str = ""
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


Merit = Callable[[Network], tuple[int | bool, ...]]


def choose(sight: Sight, merit: Merit) -> Chosen:
    """Return the best of the networks that all nodes share and, as far as was tried, reach each other on.

    Where none is whole, the best of the broken ones: it is the plan's once that is mended, and a note says so.
    """
    found = shared_by_all(sight)
    if not found:
        return _unshared(sight)
    states = {network.subnet: reached(sight, network) for network in found}
    carrying = [network for network in found if states[network.subnet].whole is not False]
    best = max(carrying or found, key=merit)
    broken = tuple(
        f"{network.subnet} is left out: {states[network.subnet].why}"
        for network in found
        if network is not best and states[network.subnet].whole is False
    )
    faster, others = _not_shared(sight, speed(best.members))
    notes = (*_doubts(best, states[best.subnet]), *broken, *faster)
    return Chosen(best, notes=notes, left_out=(*broken, *faster, *others))


def reached(sight: Sight, network: Network) -> Carries:
    """Tell whether the nodes reach each other there, by what they tried themselves."""
    known = sight.known(LinkFacts)
    members = [node for node in _machines(sight) if node in network.members]
    if not known and len(members) > 1:
        return Carries(None, f"nobody tried it: {sight.why_not(LinkFacts)}")
    return carries(known, network.subnet, members)


def _doubts(network: Network, state: Carries) -> Iterator[str]:
    if state.whole is None:
        yield f"whether all nodes reach each other on {network.told} is not known: {state.why}"
    elif not state.whole:
        yield f"no network is whole: the plan is for {network.told} once this is mended: {state.why}"


def _machines(sight: Sight) -> Mapping[str, NicFacts]:
    """Return the nodes of which each is a machine of its own."""
    return machines(sight.known(NicFacts), sight.known(IdentityFacts))


def shared_by_all(sight: Sight) -> list[Network]:
    """Return the networks of all nodes; a machine that is listed twice has its addresses under both names."""
    everywhere = subnets(sight.known(NicFacts))
    return [Network(subnet, everywhere[subnet]) for subnet in shared(_machines(sight))]


def _not_shared(sight: Sight, chosen_speed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say of each subnet of several nodes why it is not one of all: of those that are faster, and of the rest."""
    nodes = _machines(sight)
    lines: tuple[list[str], list[str]] = ([], [])
    for subnet, members in subnets(nodes).items():
        if why := _why_not_shared(nodes, subnet, members):
            lines[speed(members) <= chosen_speed].append(f"{subnet} is left out: {why}")
    return tuple(lines[0]), tuple(lines[1])


def _why_not_shared(nodes: Mapping[str, NicFacts], subnet: str, members: SubnetMembers) -> str:
    if len(members) < 2:  # noqa: PLR2004  of one node alone it is no network between nodes
        return ""
    for ip, owners in clashing_addresses(members).items():
        return f"{fold(owners)} show one address there, {ip}"
    without = {node: why_missing(nics, subnet, members) for node, nics in nodes.items() if node not in members}
    return ", ".join(_lacking(why, names) for why, names in nodes_by_value(without).items())


def _lacking(why: Missing, nodes: Collection[str]) -> str:
    if why.name:
        return f"{why.reason} on {fold(nodes)}"
    return f"{fold(nodes)} {'has' if len(nodes) == 1 else 'have'} no address there"


def _unshared(sight: Sight) -> Chosen:
    """Return what joins nodes that share no subnet: routers, or nothing."""
    nodes = _machines(sight)
    bare = [node for node, nics in nodes.items() if not any(subnet_addresses(nics))]
    lines = _not_shared(sight, 0)
    told = (*lines[0], *lines[1])
    if bare or not nodes:
        why = f"{fold(bare)} {'has' if len(bare) == 1 else 'have'} no usable interface: see ncheck explain NC301"
        return Chosen(None, why if bare else "no interface is known of any node", told, told)
    lying = apart(nodes)
    if lying is None or not lying.routed:
        why = f"no subnet is common to all nodes: {lying.summary}" if lying else "no subnet is common to all nodes"
        return Chosen(None, f"{why}; see ncheck explain NC305", told, lying.evidence if lying else ())
    network = Network("", {node: _default_seats(nics) for node, nics in sight.known(NicFacts).items()})
    return Chosen(network, notes=tuple(_doubts(network, reached(sight, network))), left_out=lying.evidence)


def _default_seats(nics: NicFacts) -> tuple[SubnetAddress, ...]:
    return tuple(seat for seat in subnet_addresses(nics) if seat.interface.default_route)
