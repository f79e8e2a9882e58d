"""NCCL_IB_HCA does not fit the adapters of a node

## What it finds
Nodes on which NCCL_IB_HCA, in the job's environment or in nccl.conf, selects no Active port although the node has some,
or fewer ports than on most nodes although as many are Active. Often the nodes name their adapters differently: mlx5_0
on one is ibp24s0 or mlx5_1 on another.

## Why it matters
NCCL passes over ports that are not in the list. With none left it prints "NET/IB : No device found." among its INFO
lines and uses TCP; with fewer, the whole job waits for that node's rails. Without "=", an entry is the beginning of a
name: mlx5_1 selects mlx5_10, too.

## What to type
`ls /sys/class/infiniband` shows the names. `unset NCCL_IB_HCA` lets NCCL use all Active ports; the launch plan names
those that are for the job, for each node if the names differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import active, ports_of_job
from ncheck.nccl.settings import settings_of


@cluster_check(
    "NC422", Severity.ERROR, InfinibandFacts, EnvironmentFacts, also=(LoadedNcclFacts,), by_kind=True, alone=True
)
def hca_list_does_not_fit(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    chosen = {node: len(ports) for node, ports in ports_of_job(cluster).items()}
    there = {node.name: active(node[InfinibandFacts].ports) for node in cluster}
    common = next((count for count, nodes in Counter(chosen.values()).items() if 2 * nodes > len(chosen)), 0)
    for node in cluster:
        setting = settings_of(node[EnvironmentFacts], node.maybe(LoadedNcclFacts)).get("NCCL_IB_HCA")
        count, ports = chosen[node.name], there[node.name]
        if not setting or not setting.value or not ports:
            yield NotApplicable("NCCL_IB_HCA is not set" if ports else "no Active port", (node.name,))
        elif not count or count < common <= len(ports):
            names = ", ".join(port.name for port in ports)
            wanted = f" of {common}" if count and common else ""
            message = f"{setting.described} selects {count or 'none'}{wanted} of the Active ports: {names}"
            fix, summary = setting.set_to(""), "NCCL_IB_HCA does not fit"
            yield Problem(message, fix.line, nodes=(node.name,), look=fix.look, summary=summary)
