"""The name of a node does not lead to that node from everywhere

## What it finds
Names of listed nodes, looked up on the nodes as a launch would: one that leads to an address that its node does not
have, to different addresses on different nodes, or that only some nodes can resolve. Asked are all pairs up to 16
nodes, beyond that the first node's name on all and the names along Open MPI's tree. A name that no node resolves is no
finding: it stands in the ssh configuration, or behind a jump host, and ncheck reached its node. Where a launcher is to
use it, node-to-node-ssh-fails tells whether the nodes reach it. Nodes that are listed by address need no name.

## Why it matters
Launchers hand names to the nodes and let them look these up: MASTER_ADDR, the host file, horovodrun's -H. A stale
line in one /etc/hosts sends that node's ranks to another machine or to nobody, and all others wait for them. Behind
address translation a name may lead to an address that its node does not show, and be right.

## What to type
`getent ahosts NAME` on each of the nodes shows what it gets, and `getent hosts NAME` what the hosts file or DNS say;
/etc/hosts goes first on most machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.names import NameFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.names import late, misled, owned


@cluster_check("NC361", Severity.WARNING, NameFacts, also=(NicFacts,))
def names_resolve_differently(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    own = {name: owned(nics) for name, nics in cluster.facts(NicFacts).items()}
    asked = cluster.facts(NameFacts)
    for wrong in misled(asked, own):
        yield Problem(wrong.what, f"getent ahosts {quote(wrong.name)}", nodes=wrong.nodes)
    if nodes := late(asked):
        yield Inconclusive("names of other nodes were still being looked up when the time was over", nodes=nodes)
