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
from shlex import quote

from doctor import Doubt, Moot, NodeView, Problem, Severity, node_check
from doctor.model.facts import HostNameFacts, ListingFacts, NicFacts
from doctor.reasoning.names import leads_home
from doctor.reasoning.subnets import seats


@node_check("NC360", Severity.WARNING, HostNameFacts, ListingFacts, also=(NicFacts,))
def host_name_is_loopback(node: NodeView) -> Iterator[Problem | Moot | Doubt]:
    resolved, nics = node[HostNameFacts].leads_to, node.maybe(NicFacts)
    wire = next((seat.interface.name for seat in seats(nics)), "") if isinstance(nics, NicFacts) else ""
    fix = f"export GLOO_SOCKET_IFNAME={quote(wire)}" if wire else "getent ahosts $(hostname)"
    if node[ListingFacts].places == ("local",):
        yield Moot("one machine alone needs no network")
    elif resolved.late:
        yield Doubt("its own host name was still being looked up when the time was over")
    elif resolved.error:
        yield Problem(f"its own host name does not resolve on it: {resolved.error}", fix)
    elif leads_home(resolved):
        yield Problem(f"its own host name is {resolved.addresses[0]} on it", fix)
