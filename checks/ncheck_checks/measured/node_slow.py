"""A node is slow with every partner

## What it finds
Nodes whose pairs are all slow, or all fail, with at least two partners, of which at least one is fast with others. Each
node has one rank, so that one NIC carries the data. Slow means below 0.8 of what is usual: of what the links of the
pair should give if that is known, otherwise of what healthy pairs reach here. If NCCL uses sockets without an expected
bandwidth it means below 0.5, because a busy processor slows them down as well. The evidence says whether the node is
also slow by itself, and which of its rails carried nothing. Each operation of --op is judged by itself: a node that
several show is one finding, and one that only all-to-all shows is named as such. If at least as many nodes are slow as
fast, they are reported as one group. Where all nodes together are slow and the pairs are well, groups of them are
measured with all ranks: that shows a node of which another NIC is slow.

## Why it matters
All ranks wait for the slowest in every step: one node at half speed halves the speed of the job.

## What to type
The command of the finding, on the node that it names: `nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE` shows a
throttled GPU, `sudo mlxlink -d HCA -p PORT -m -c` a cable with bit errors. Then measure again:
`ncheck probe nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.probe.facts import GroupFacts, ProbeFacts
from ncheck.probe.gpu_test import SLOW_MEMBER
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in
from ncheck.probe.slow_nodes import search_slow, slow_nodes


@cluster_check(
    "NC710", Severity.ERROR, ProbeFacts, also=(*HARDWARE_FACTS, GroupFacts), explains=(SLOW_NETWORK, SLOW_MEMBER),
    hardware=True,
)  # fmt: skip
def node_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    named = cluster.facts(GroupFacts).values()
    yield from slow_nodes(search_slow(cluster.facts(ProbeFacts), hardware_in(cluster), named), on_cpus=False)
