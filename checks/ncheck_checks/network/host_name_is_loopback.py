"""A node's own host name leads to loopback on itself, or nowhere

## What it finds
Nodes on which the name that the node calls itself by (`hostname`) resolves first to 127.0.0.0/8 or ::1, as in the
line "127.0.1.1 NAME" that Debian and Ubuntu write into /etc/hosts, or does not resolve.

## Why it matters
gloo, and with it torch.distributed on CPUs, looks its own host name up and hands the address to all other ranks: they
connect to themselves, and while one rank stops with "Connection refused", the others wait past their time-outs. The
same happens to MASTER_ADDR=$(hostname). NCCL and Open MPI take addresses off interfaces and do not mind. The plan
names an IP address for MASTER_ADDR and sets GLOO_SOCKET_IFNAME: whoever follows it needs nothing more.

## What to type
`export GLOO_SOCKET_IFNAME=eth0` in the job, or change that line of /etc/hosts to the node's address on the network;
`getent ahosts $(hostname)` shows what programs get.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.names import HostNameFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.best_addresses import ADDRESS_FACTS, best_addresses
from ncheck.network.names import leads_home
from ncheck.text import export


@cluster_check("NC360", Severity.WARNING, HostNameFacts, also=(NicFacts, *ADDRESS_FACTS))
def host_name_is_loopback(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    best = best_addresses(cluster)
    for node in cluster:
        resolved, wire, own = node[HostNameFacts].leads_to, best[node.name][:1], (node.name,)
        fix = export("GLOO_SOCKET_IFNAME", wire[0].interface.name) if wire else "getent ahosts $(hostname)"
        if resolved.late:
            yield Inconclusive("its own host name was still being looked up when the time was over", own)
        elif resolved.error:
            yield Problem(f"its own host name does not resolve on it: {resolved.error}", fix, nodes=own)
        elif leads_home(resolved):
            yield Problem(f"its own host name is {resolved.addresses[0]} on it", fix, nodes=own)
