"""The interface that NCCL or gloo is set to use does not exist

## What it finds
Nodes on which NCCL_SOCKET_IFNAME, from the environment, ~/.nccl.conf, $NCCL_CONF_FILE or /etc/nccl.conf, matches no
usable interface, and nodes that lack an interface listed in GLOO_SOCKET_IFNAME. The message names the cause: an address
or subnet instead of a name, spaces, quotation marks, wrong capital letters, or an interface without an address or link.
NCCL and gloo ignore a value of one character, so it is not reported. ifname-matches-more reports a name that matches
too much.

## Why it matters
NCCL has no fallback: it stops with "no socket interface found", and gloo with "Unable to find address for".

## What to type
`ip -br address` lists the interfaces; then change the line in the file that the finding names to
`NCCL_SOCKET_IFNAME==eth0`, or `GLOO_SOCKET_IFNAME=eth0`. An `export` in a shell changes no other login.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NodeView, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.ifname import why_gloo_fails, why_nothing_matches
from ncheck.nccl.settings import gloo_interface_setting, interface_setting, releases_of
from ncheck.network.link_faults import ADDRESS_FACTS, best_addresses


@cluster_check(
    "NC321",
    Severity.ERROR,
    NicFacts,
    EnvironmentFacts,
    also=(LoadedNcclFacts, *ADDRESS_FACTS),
    alone=True,
    mended_by="NCCL_SOCKET_IFNAME",
    matters_alone=True,
)
def ifname_matches_nothing(cluster: Cluster) -> Iterator[Problem]:
    best = best_addresses(cluster)
    for node in cluster:
        yield from _judged(node, next((address.interface.name for address in best[node.name]), ""))


def _judged(node: NodeView, name: str) -> Iterator[Problem]:
    nics, environment, releases = node[NicFacts], node[EnvironmentFacts], releases_of(node.maybe(LoadedNcclFacts))
    own = (node.name,)
    nccl, gloo = interface_setting(environment, releases[-1]), gloo_interface_setting(environment)
    if nccl and (why := why_nothing_matches(nccl, nics, environment, releases)):
        fix = nccl.set_to(f"={name}" if name else "")
        yield Problem(f"{nccl.described} matches no interface: {why}", fix.line, nodes=own, look=fix.look)
    if gloo and (why := why_gloo_fails(gloo, nics)):
        fix, message = gloo.set_to(name), f"{gloo.described} names an interface that does not exist: {why}"
        yield Problem(message, fix.line, nodes=own, look=fix.look)
