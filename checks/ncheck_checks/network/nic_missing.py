"""A network card is missing on a node

## What it finds
Nodes with fewer network cards than most nodes with the same GPUs, if fewer of the fastest ones are in use, too: up,
with a link, and with an address or in a bond or bridge. Names do not matter. A card that no job needs is not missed:
one that is not in use, or slower than others of the node. If another network check names the node for the network that
the card belonged to, this one is silent.

## Why it matters
A card that fell off the PCI bus leaves no trace but its absence: every interface that is left looks healthy. The job
runs with fewer rails than planned, or the plan leaves a whole network out.

## What to type
`lspci | grep -Ei 'ethernet|infiniband'` on the named node and on a good one. If the card is listed, its driver is not
loaded: `sudo dmesg` says why. If it is not, power the node off and on, then reseat the card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ncheck import Cluster, Problem, Severity, cluster_check, fold, nodes_by_value
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import BMC_DRIVERS, Interface, Kind, NicFacts
from ncheck.nccl.hca_ports import MISSING_ADAPTER
from ncheck.network.subnets import machines, parted_networks

_CARDS = frozenset({Kind.PHYSICAL, Kind.CLOUD, Kind.INFINIBAND, Kind.MACVLAN, Kind.BOND_SLAVE})


@cluster_check("NC326", Severity.ERROR, NicFacts, also=(IdentityFacts, GpuFacts), by_kind=True, hardware=True)
def nic_missing(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    cards = {node: tuple(nic for nic in nics.interfaces if _is_card(nic)) for node, nics in nodes.items()}
    used = _fastest({node: tuple(nic for nic in nics if _in_use(nic)) for node, nics in cards.items()})
    alike = bool(cluster.facts(GpuFacts))  # the check sees nodes with the same GPUs; without any they may be anything
    most_cards, most_used = (_usual([len(nics) for nics in held.values()], alike=alike) for held in (cards, used))
    not_in_a_network = {node for parted in parted_networks(nodes) for node in parted.missing}
    short = {
        node: _names(used[node])
        for node in nodes
        if len(cards[node]) < most_cards and len(used[node]) < most_used and node not in not_in_a_network
    }
    others = nodes_by_value({node: _names(nics) for node, nics in used.items() if len(nics) == most_used})
    for names, odd in nodes_by_value(short).items():
        message = (
            f"{fold(odd)} {'has' if len(odd) == 1 else 'have'} fewer network cards in use than the others: {names}"
        )
        evidence = tuple(f"{names} on {fold(having)}" for names, having in others.items())
        yield Problem(
            message, "lspci | grep -Ei 'ethernet|infiniband'", evidence, odd, look=True, follows=MISSING_ADAPTER
        )


def _is_card(nic: Interface) -> bool:
    return nic.kind in _CARDS and nic.driver not in BMC_DRIVERS


def _in_use(nic: Interface) -> bool:
    addressed = any(address.scope == "global" for address in nic.addresses)
    return nic.up and nic.running and (addressed or bool(nic.master))


def _fastest(used: Mapping[str, tuple[Interface, ...]]) -> dict[str, tuple[Interface, ...]]:
    """Keep the interfaces as fast as the fastest one of most nodes, and those whose driver reports no speed."""
    best = Counter(max((nic.speed or 0 for nic in nics), default=0) for nics in used.values())
    least = max(best, key=lambda speed: best[speed], default=0)
    return {node: tuple(nic for nic in nics if nic.speed is None or nic.speed >= least) for node, nics in used.items()}


def _names(nics: Collection[Interface]) -> str:
    return f"{len(nics)} ({', '.join(nic.name for nic in nics)})" if nics else "0"


def _usual(counts: Collection[int], *, alike: bool) -> int:
    """Return the count of more than half of the nodes, of nodes that are alike also that of half of them; else 0."""
    common = [count for count, nodes in Counter(counts).items() if 2 * nodes >= len(counts) + (not alike)]
    return max(common, default=0)
