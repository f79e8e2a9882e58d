"""NCCL_IB_GID_INDEX overrides NCCL's own choice

## What it finds
Nodes with RoCE ports and NCCL 2.21 or newer on which NCCL_IB_GID_INDEX is set, in the job's environment or in
nccl.conf. It is not reported if that index is RoCE v2 with an IPv4 address on every Active port.

## Why it matters
Older NCCL needs the index. Since 2.21, NCCL finds the right one for each port, and the variable, often copied from an
old recipe, prevents this. The index changes when addresses are added or the driver is reloaded; connections then time
out, or use RoCE v1, which routers do not forward.

## What to type
Remove the line that sets it; `unset` in a shell changes no login. Where it is set:
`grep -sn NCCL_ ~/.bashrc ~/.profile ~/.nccl.conf /etc/nccl.conf /etc/environment`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import AUTOMATIC_GID, active, gid_position, ipv4_index
from ncheck.nccl.settings import release_of, settings_of


@node_check("NC336", Severity.WARNING, InfinibandFacts, EnvironmentFacts, LoadedNcclFacts)
def gid_index_set(node: NodeView) -> Iterator[Problem | NotApplicable]:
    roce = [port for port in active(node[InfinibandFacts].ports) if port.link_layer == "Ethernet"]
    version = node[LoadedNcclFacts].version
    own = settings_of(node[EnvironmentFacts], node[LoadedNcclFacts]).get("NCCL_IB_GID_INDEX")
    if not roce or release_of(version) < AUTOMATIC_GID:
        yield NotApplicable("no Active RoCE port" if not roce else f"NCCL {version} needs the index")
    elif own and own.value != "-1" and {str(ipv4_index(port)) for port in roce} != {own.value}:
        message = f"{own.described}: without it, NCCL {version} finds the right GID of each port itself"
        fix = own.set_to("")
        yield Problem(message, fix.line, tuple(map(gid_position, roce)), look=fix.look)
