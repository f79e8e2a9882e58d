"""A job cannot open the InfiniBand or RoCE devices

## What it finds
Nodes on which this user, in the job's environment, cannot open the device of an HCA with an Active port
(/dev/infiniband/uverbs0 and so on): of none of them, or of fewer than on other nodes. ncheck opens each device and
closes it again. RoCE devices count where a job on another node can use them: many clusters have them and use TCP.

## Why it matters
NCCL warns "NET/IB : Unable to open device mlx5_0", in some releases only among its INFO lines, and uses TCP: the job is
many times slower, or hangs because the other nodes use InfiniBand. In a container, /sys shows every HCA of the machine,
and /dev shows only what the container was given.

## What to type
`ls -l /dev/infiniband`. Containers need `docker run --device=/dev/infiniband ...` (and `--ulimit memlock=-1`). On a
machine itself, rdma-core's udev rules give every user access: `sudo apt-get install rdma-core`. If there is no such
device at all: `sudo modprobe ib_uverbs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncheck import Absent, Cluster, NotApplicable, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.nccl.hca_ports import hcas_in_use


@cluster_check("NC411", Severity.ERROR, LibraryFacts, InfinibandFacts, alone=True, next_step="fix-first")
def uverbs_not_accessible(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    devices = {node: facts.uverbs for node, facts in cluster.facts(LibraryFacts).items()}
    asked = {node: own for node, own in devices.items() if not isinstance(own, Absent)}
    opens = {node: {hca for hca, trouble in own.items() if not trouble} for node, own in asked.items()}
    in_use = hcas_in_use(cluster.facts(InfinibandFacts), cluster.facts(LibraryFacts))
    usual = Counter(len(opens[node] & in_use[node]) for node in opens)
    most = max((count for count, nodes in usual.items() if 2 * nodes >= len(opens)), default=0)
    for node in devices:
        opened = opens.get(node, set()) & in_use[node]
        if node not in asked or not in_use[node]:
            yield NotApplicable("no Active port of a job's InfiniBand or RoCE network", (node,))
        elif not opened or len(opened) < min(most, len(in_use[node])):
            troubles = {hca: asked[node].get(hca, "") for hca in sorted(in_use[node] - opened)}
            words = "; ".join(f"{', '.join(hcas)}: {why}" for why, hcas in nodes_by_value(troubles).items())
            yield Problem(
                f"NCCL cannot open {len(troubles)} of {len(in_use[node])} HCAs: {words}",
                "ls -l /dev/infiniband", nodes=(node,), look=True, summary="HCAs cannot be opened",
            )  # fmt: skip
