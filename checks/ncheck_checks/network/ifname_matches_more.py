"""NCCL_SOCKET_IFNAME matches more interfaces than intended

## What it finds
Nodes on which NCCL_SOCKET_IFNAME, from the environment or a configuration file, is the name of an interface and also
matches others, because NCCL treats it as a prefix: eth1 matches eth10, eno1 matches the VLAN eno1.100. It is reported
only if NCCL would use other interfaces or another address than with the exact name.

## Why it matters
If eth1 has no link, the ranks silently use eth10. If both have a link, NCCL's TCP transport sends data over both and
waits for the slower one.

## What to type
`export NCCL_SOCKET_IFNAME='=eth1'`: the leading "=" requires the exact name.
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
    others_matched = also_matched(setting, nics) if setting else {}
    if setting and others_matched:
        now, exact = with_exact_names(setting, nics, environment, release)
        rdma = isinstance(ports, InfinibandFacts) and any(port.state == "Active" for port in ports.ports)
        if now.picked != exact.picked or (now.used != exact.used and not rdma):
            also = "; ".join(f"{entry} also matches {', '.join(names)}" for entry, names in others_matched.items())
            fix = setting.set_to(f"={setting.value}")
            evidence = (f"NCCL would {now.described}",)
            yield Problem(f"{setting.described}: {also}", fix.line, evidence, look=fix.look)
