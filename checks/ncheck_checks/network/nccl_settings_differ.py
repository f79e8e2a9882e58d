"""NCCL settings differ between nodes

## What it finds
NCCL variables, with RCCL also RCCL_*, that are set on some nodes only, or to different values, in the job's environment
or in nccl.conf (RCCL: rccl.conf).
Variables that may rightly differ (NCCL_SOCKET_IFNAME, NCCL_IB_HCA, NCCL_HOSTID, NCCL_TOPO_FILE and the like) and
NCCL_DEBUG are not compared.

## Why it matters
All ranks must make the same decisions independently. With other algorithms, protocols, buffers or channels on one
node, they wait for messages that never come, or the job runs at the speed of the slowest setting. The cause is often a
forgotten file on a single node.

## What to type
`env | grep CCL_` and `cat /etc/[nr]ccl.conf ~/.[nr]ccl.conf` on the named nodes.
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
