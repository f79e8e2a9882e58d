"""A node's own hostname resolves to loopback, or does not resolve

## What it finds
Nodes on which the node's own name (`hostname`) resolves first to an address in 127.0.0.0/8 or to ::1, or does not
resolve. Debian and Ubuntu write such a line into /etc/hosts: "127.0.1.1 NAME".

## Why it matters
gloo, and with it torch.distributed on CPUs, looks up its own hostname and sends the address to all other ranks. They
then connect to themselves: one rank stops with "Gloo connectFullMesh failed ... remote=[127.0.1.1]", and
the others wait past their timeouts.
MASTER_ADDR=$(hostname) fails in the same way. NCCL and Open MPI read addresses from the interfaces and are not
affected. The launch plan uses an IP address for MASTER_ADDR and sets GLOO_SOCKET_IFNAME, which is enough; nodes whose
environment sets it are not judged.

## What to type
`ncheck plan nodes.txt` prints the command that starts the job, with GLOO_SOCKET_IFNAME where gloo is used. Or change
that line of /etc/hosts to the node's address on the network; `getent ahosts $(hostname)` shows what programs get.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ncheck import HERE, PLAN, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.names import HostNameFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.link_faults import ADDRESS_FACTS, best_addresses

GLOO = "GLOO_SOCKET_IFNAME"
LOOKUP = "getent ahosts $(hostname)"


@cluster_check("NC360", Severity.WARNING, HostNameFacts, also=(NicFacts, EnvironmentFacts, *ADDRESS_FACTS))
def host_name_is_loopback(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    best = best_addresses(cluster)
    for node in cluster:
        resolved, addresses, own = node[HostNameFacts].leads_to, best[node.name], (node.name,)
        # The plan sets what gloo needs; without an address to use, there is only the lookup to see.
        fix = (
            partial(Problem, fix=PLAN, where=HERE, look=True) if addresses else partial(Problem, fix=LOOKUP, look=True)
        )
        environment = node.maybe(EnvironmentFacts)
        if isinstance(environment, EnvironmentFacts) and environment.variables.get(GLOO):
            yield NotApplicable(f"{GLOO} is set, so gloo does not look up the hostname", own)
        elif resolved.late:
            yield Inconclusive("the lookup of its own hostname did not finish in time", own)
        elif resolved.error:
            yield fix(f"its hostname does not resolve there: {resolved.error}", nodes=own)
        elif resolved.addresses and (resolved.addresses[0].startswith("127.") or resolved.addresses[0] == "::1"):
            yield fix(f"its hostname resolves to {resolved.addresses[0]} there", nodes=own)
