"""A setting disables InfiniBand or RoCE ports that are up

## What it finds
NCCL_IB_DISABLE=1, NCCL_NET=Socket, or an NCCL_IB_HCA that matches none of a node's Active ports, in the job's
environment or in nccl.conf, on clusters where every node has an Active port.

## Why it matters
Such lines are added to find out whether the fabric is at fault, and then forgotten. All data then goes through TCP on
the management network: the job runs at a tenth of its speed or less, and no message says so unless NCCL_DEBUG=INFO is
set.

## What to type
Remove the line that sets it; `unset` in a shell changes no login. Where it is set:
`grep -sn NCCL_ ~/.bashrc ~/.profile ~/.nccl.conf /etc/nccl.conf /etc/environment`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import active
from ncheck.nccl.setting_problems import problems, rdma_off
from ncheck.nccl.settings import settings_everywhere


@cluster_check("NC331", Severity.WARNING, EnvironmentFacts, also=(InfinibandFacts, LoadedNcclFacts))
def ib_disabled_by_setting(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    ports = {node: active(found.ports) for node, found in cluster.facts(InfinibandFacts).items()}
    if dark := [node.name for node in cluster if not ports.get(node.name)]:
        yield NotApplicable(f"no Active InfiniBand or RoCE port on {fold(dark)}")
        return
    own = settings_everywhere(cluster)
    yield from problems({node: rdma_off(settings, ports[node]) for node, settings in own.items()})
