"""The interface that NCCL or gloo is told to use is not there

## What it finds
Nodes on which NCCL_SOCKET_IFNAME, from the environment, ~/.nccl.conf, $NCCL_CONF_FILE or /etc/nccl.conf, takes no
interface that NCCL looks at, and nodes without an interface that GLOO_SOCKET_IFNAME lists. Addresses and subnets,
blanks, quotation marks, wrong capital letters, interfaces without an address or a link are told apart. A value of one
character is no setting: both pass it over and choose by themselves. A name that takes more than was meant is
ifname-matches-more.

## Why it matters
NCCL falls back on nothing: it stops with "no socket interface found", and gloo with "Unable to find address for".

## What to type
`ip -br address` names the interfaces; then `export NCCL_SOCKET_IFNAME='=eth0'`, `export GLOO_SOCKET_IFNAME=eth0`, or
change the line in the named file.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NodeView, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.choice import releases_of
from ncheck.nccl.ifname import named, named_for_gloo, why_no_gloo, why_nothing
from ncheck.network.best_addresses import ADDRESS_FACTS, best_addresses


@cluster_check("NC321", Severity.ERROR, NicFacts, EnvironmentFacts, also=(LoadedNcclFacts, *ADDRESS_FACTS), alone=True)
def ifname_matches_nothing(cluster: Cluster) -> Iterator[Problem]:
    best = best_addresses(cluster)
    for node in cluster:
        yield from _judged(node, next((seat.interface.name for seat in best[node.name]), ""))


def _judged(node: NodeView, name: str) -> Iterator[Problem]:
    nics, environment, releases = node[NicFacts], node[EnvironmentFacts], releases_of(node.maybe(LoadedNcclFacts))
    own = (node.name,)
    nccl, gloo = named(environment, releases[-1]), named_for_gloo(environment)
    if nccl and (why := why_nothing(nccl, nics, environment, releases)):
        yield Problem(f"{nccl.told} takes no interface: {why}", nccl.set_to(f"={name}" if name else ""), nodes=own)
    if gloo and (why := why_no_gloo(gloo, nics)):
        yield Problem(f"{gloo.told} names what is not here: {why}", gloo.set_to(name), nodes=own)
