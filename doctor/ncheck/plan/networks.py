"""The networks between the nodes: which ones all nodes share, which ones work, and why the others are not used.

Clusters here hold only nodes that were logged in to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.network.link_faults import Carries, carries
from ncheck.network.subnets import (
    Missing,
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
from ncheck.plan.inputs import missing_reason


@dataclass(frozen=True)
class Network:
    """The network for the job's TCP traffic. `subnet` is "" if the nodes share none and routers connect them.

    `members` are the addresses of each node in the network.
    """

    subnet: str
    members: SubnetMembers

    @property
    def names(self) -> tuple[str, ...]:
        """The interface names that are in the network on every node."""
        return common_names(self.members)

    @property
    def first_names(self) -> frozenset[str]:
        """The name of each node's first interface in the network."""
        return frozenset(addresses[0].interface.name for addresses in self.members.values())

    @property
    def label(self) -> str:
        """The network's name in a sentence."""
        return self.subnet or "the default route"


@dataclass(frozen=True)
class NetworkChoice:
    """The network for the job; None if there is none, with the reason. `not_used` are other networks, with reasons."""

    network: Network | None
    reason: str = ""
    notes: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()


Rank = Callable[[Network], tuple[int | bool, ...]]


def choose_network(cluster: Cluster, rank: Rank) -> NetworkChoice:
    """Return the best network that all nodes share and, as far as it was tested, connects all of them.

    If no network connects all nodes, return the best of the broken ones, with a note: the plan works once it is fixed.
    """
    candidates = shared_by_all(cluster)
    if not candidates:
        return _without_common_subnet(cluster)
    states = {network.subnet: connectivity(cluster, network) for network in candidates}
    working = [network for network in candidates if states[network.subnet].whole is not False]
    best = max(working or candidates, key=rank)
    broken = tuple(
        f"{network.subnet} is not used: {states[network.subnet].why}"
        for network in candidates
        if network is not best and states[network.subnet].whole is False
    )
    faster, slower = _not_shared(cluster, speed(best.members))
    notes = (*_connectivity_notes(best, states[best.subnet]), *broken, *faster)
    return NetworkChoice(best, notes=notes, not_used=(*broken, *faster, *slower))


def connectivity(cluster: Cluster, network: Network) -> Carries:
    """Return whether the nodes reach each other in the network, by their own connection tests."""
    tested = cluster.facts(LinkFacts)
    members = [node for node in _machines(cluster) if node in network.members]
    if not tested and len(members) > 1:
        return Carries(None, f"not tested: {missing_reason(cluster, LinkFacts)}")
    return carries(tested, network.subnet, members)


def _connectivity_notes(network: Network, state: Carries) -> Iterator[str]:
    if state.whole is None:
        yield f"it is unknown whether all nodes reach each other on {network.label}: {state.why}"
    elif not state.whole:
        yield f"no network connects all nodes; the plan uses {network.label}, so fix this first: {state.why}"


def _machines(cluster: Cluster) -> Mapping[str, NicFacts]:
    """Return the nodes without second names of the same machine."""
    return machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))


def shared_by_all(cluster: Cluster) -> list[Network]:
    """Return the networks of all nodes. A machine that is listed under two names has its addresses under both."""
    everywhere = subnets(cluster.facts(NicFacts))
    return [Network(subnet, everywhere[subnet]) for subnet in shared(_machines(cluster))]


def _not_shared(cluster: Cluster, chosen_speed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return why each subnet of several, but not all, nodes is not used: the faster subnets, and the other ones."""
    nodes = _machines(cluster)
    faster: list[str] = []
    slower: list[str] = []
    for subnet, members in subnets(nodes).items():
        if reason := _why_not_shared(nodes, subnet, members):
            group = faster if speed(members) > chosen_speed else slower
            group.append(f"{subnet} is not used: {reason}")
    return tuple(faster), tuple(slower)


def _why_not_shared(nodes: Mapping[str, NicFacts], subnet: str, members: SubnetMembers) -> str:
    if len(members) < 2:  # noqa: PLR2004  a subnet of one node is no network between nodes
        return ""
    for ip, owners in clashing_addresses(members).items():
        return f"{fold(owners)} have the same address in it, {ip}"
    without = {node: why_missing(nics, subnet, members) for node, nics in nodes.items() if node not in members}
    return ", ".join(_not_in(reason, names) for reason, names in nodes_by_value(without).items())


def _not_in(reason: Missing, nodes: Collection[str]) -> str:
    if reason.name:
        return f"{reason.reason} on {fold(nodes)}"
    return f"{fold(nodes)} {'has' if len(nodes) == 1 else 'have'} no address in it"


def _without_common_subnet(cluster: Cluster) -> NetworkChoice:
    """Return the network of nodes that share no subnet: the default route if routers connect them, else none."""
    nodes = _machines(cluster)
    without = [node for node, nics in nodes.items() if not any(subnet_addresses(nics))]
    faster, slower = _not_shared(cluster, 0)
    not_used = (*faster, *slower)
    if not nodes:
        return NetworkChoice(None, "the interfaces of all nodes are unknown", not_used, not_used)
    if without:
        reason = (
            f"{fold(without)} {'has' if len(without) == 1 else 'have'} no usable interface: see ncheck explain NC301"
        )
        return NetworkChoice(None, reason, not_used, not_used)
    separate = apart(nodes)
    if separate is None or not separate.routed:
        reason = "the nodes have no subnet in common" + (f": {separate.summary}" if separate else "")
        return NetworkChoice(
            None, f"{reason}; see ncheck explain NC305", not_used, separate.evidence if separate else ()
        )
    network = Network("", {node: _on_default_route(nics) for node, nics in cluster.facts(NicFacts).items()})
    notes = tuple(_connectivity_notes(network, connectivity(cluster, network)))
    return NetworkChoice(network, notes=notes, not_used=separate.evidence)


def _on_default_route(nics: NicFacts) -> tuple[SubnetAddress, ...]:
    return tuple(address for address in subnet_addresses(nics) if address.interface.default_route)
