"""NCCL_IB_GID_INDEX overrides what NCCL finds out by itself

## What it finds
Nodes with RoCE ports and NCCL 2.21 or newer on which NCCL_IB_GID_INDEX is set, in the environment that a job gets or in
nccl.conf, unless that index is seen to be the one of RoCE v2 with an IPv4 address on every Active port.

## Why it matters
Older NCCL needs the index. Since 2.21 it looks the right one up for each port, and the variable, copied from an older
recipe, only takes that away: the index moves when addresses are added or a driver is loaded anew, and connections then
time out or go out as RoCE v1, which no router passes on.

## What to type
`unset NCCL_IB_GID_INDEX`, and look where it is set:
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
        told = f"{own.described}: NCCL {version} would find the right GID of each port by itself"
        yield Problem(told, own.command_to_set(""), tuple(map(gid_position, roce)))
