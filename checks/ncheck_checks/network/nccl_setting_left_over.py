"""A setting of NCCL's was left behind that harms a job

## What it finds
NCCL_COMM_ID in the environment or in nccl.conf; one NCCL_HOSTID on several machines; an NCCL_TOPO_FILE or
NCCL_GRAPH_FILE that names no file; NCCL_DEBUG=TRACE; an NCCL_ALGO that leaves out Ring, an NCCL_PROTO that leaves out
Simple. Lists by function ("allreduce:tree") and lists that begin with ^ are left alone.

## Why it matters
A fixed rendezvous makes later jobs meet at an address of an earlier one. Machines that call themselves one host look
for shared memory that they do not have. Pinned algorithms and protocols end collectives that need another one, cost
half of the bandwidth, or, with LL128 on hardware that does not keep its order, give wrong numbers.

## What to type
`env | grep NCCL_` shows what is set, and this where:
`grep -sn NCCL_ ~/.bashrc ~/.profile ~/.nccl.conf /etc/nccl.conf /etc/environment`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.setting_problems import equal_host_ids, harmful, problems
from ncheck.nccl.settings import settings_everywhere


@cluster_check("NC333", Severity.WARNING, EnvironmentFacts, also=(IdentityFacts, LoadedNcclFacts), alone=True)
def nccl_setting_left_over(cluster: Cluster) -> Iterator[Problem]:
    own = settings_everywhere(cluster)
    yield from problems({node.name: harmful(own[node.name], node[EnvironmentFacts]) for node in cluster})
    kernels = {node: found.boot_id for node, found in cluster.facts(IdentityFacts).items()}
    yield from equal_host_ids(own, kernels)
