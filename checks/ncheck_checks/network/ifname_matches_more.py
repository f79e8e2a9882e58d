"""NCCL_SOCKET_IFNAME takes an interface more than was meant

## What it finds
Nodes on which NCCL_SOCKET_IFNAME, from the environment or a configuration file, is the very name of an interface, and
takes others with it, for NCCL reads it as the beginning of names: eth1 takes eth10, eno1 takes the VLAN eno1.100. It is
named only where NCCL would meet or send data elsewhere than with the exact name.

## Why it matters
Where eth1 has no link the ranks meet on eth10, without a word. Where both have, NCCL's TCP transport sends data over
each of them, and waits for the slower one.

## What to type
`export NCCL_SOCKET_IFNAME='=eth1'`: the second "=" makes the name exact.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.ifname import also_matched, with_exact_names
from ncheck.nccl.settings import interface_setting, releases_of


@node_check(
    "NC322",
    Severity.WARNING,
    NicFacts,
    EnvironmentFacts,
    also=(LoadedNcclFacts, InfinibandFacts),
    mended_by="NCCL_SOCKET_IFNAME",
)
def ifname_matches_more(node: NodeView) -> Iterator[Problem]:
    nics, environment, release = node[NicFacts], node[EnvironmentFacts], releases_of(node.maybe(LoadedNcclFacts))[-1]
    ports, setting = node.maybe(InfinibandFacts), interface_setting(environment, release)
    along = also_matched(setting, nics) if setting else {}
    if setting and along:
        now, exact = with_exact_names(setting, nics, environment, release)
        rdma = isinstance(ports, InfinibandFacts) and any(port.state == "Active" for port in ports.ports)
        if now.picked != exact.picked or (now.used != exact.used and not rdma):
            taken = "; ".join(f"{entry} takes {', '.join(others)}, too" for entry, others in along.items())
            yield Problem(
                f"{setting.described}: {taken}",
                setting.command_to_set(f"={setting.value}"),
                (f"NCCL would {now.described}",),
            )
