"""A harmful NCCL setting was left behind

## What it finds
NCCL_COMM_ID in the environment or in nccl.conf; the same NCCL_HOSTID on several machines; an NCCL_TOPO_FILE or
NCCL_GRAPH_FILE whose file does not exist; NCCL_DEBUG=TRACE; an NCCL_ALGO without Ring, an NCCL_PROTO without Simple.
Lists per function ("allreduce:tree") and lists that begin with ^ are not reported.

## Why it matters
A fixed rendezvous makes later jobs meet at an address of an earlier one. Machines that identify as one host look for
shared memory that they do not have. Fixed algorithms and protocols make collectives fail that need another one, cost
half of the bandwidth or, with LL128 on hardware that does not preserve the order of stores, give wrong results.

## What to type
`env | grep NCCL_` shows what is set, and this command shows where:
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
    kernels = {node: identity.boot_id for node, identity in cluster.facts(IdentityFacts).items()}
    yield from equal_host_ids(own, kernels)
