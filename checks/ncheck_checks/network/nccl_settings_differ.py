"""NCCL is not set alike on all nodes

## What it finds
Variables of NCCL's that are in force on some nodes and not on others, or with other values, from the environment that a
job gets or from nccl.conf. Left out are those that are each node's own by right (NCCL_SOCKET_IFNAME, NCCL_IB_HCA,
NCCL_HOSTID, NCCL_TOPO_FILE and the like) and NCCL_DEBUG.

## Why it matters
Ranks must come to the same decisions on their own. With other algorithms, protocols, buffers or channels on one node
they wait for messages that never come, or the whole job runs as the slowest setting does. It is found on one node of
many, in a file that nobody remembers.

## What to type
`env | grep NCCL_` and `cat /etc/nccl.conf ~/.nccl.conf` on the named nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.setting_problems import differing
from ncheck.nccl.settings import settings_everywhere


@cluster_check("NC335", Severity.WARNING, EnvironmentFacts, also=(LoadedNcclFacts,))
def nccl_settings_differ(cluster: Cluster) -> Iterator[Problem]:
    yield from differing(settings_everywhere(cluster))
