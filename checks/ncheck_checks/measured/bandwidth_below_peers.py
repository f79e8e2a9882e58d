"""The GPUs of one node are slower than those of its peers

## What it finds
Nodes in which an operation (all-reduce, or what --op names) reaches less than 0.85 of what nodes of the same GPU model
usually reach inside the node. It compares only nodes without an expected bandwidth, because part of the chain is
unknown: a new GPU model, or PCIe links that cannot be read. Messages so small that their start-up takes most of the
time are not compared.

## Why it matters
Equal nodes differ by a few percent. A node below that has a throttled GPU or broken links.

## What to type
On the node: `nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE` shows what throttles its GPUs, `nvidia-smi topo -m` how
they are connected.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.probe.expected import expectation
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.gpu_test import SLOW_GPUS
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in, kinds_of
from ncheck.probe.node_result import Stage
from ncheck.probe.results import collectives
from ncheck.probe.shortfalls import observations
from ncheck.probe.standing import beside_peers
from ncheck.text import rates


@cluster_check("NC722", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, by_kind=True, hardware=True)
def bandwidth_below_peers(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    probed, hardware = cluster.facts(ProbeFacts), hardware_in(cluster)
    kinds = kinds_of({node: own.gpus for node, own in hardware.items()})
    peers = beside_peers(collectives(probed), expectation(hardware), kinds)
    among = {step.group[0] for step in peers}
    if apart := tuple(node for node in cluster.names if node not in among):
        yield NotApplicable(
            "no other node of its kind was measured without an expected bandwidth, by large messages", apart
        )
    low: dict[str, list[str]] = {}  # what is slow inside a node, in any operation
    for step, own in peers.items():
        if own.low:
            figures = f"{rates([own.busbw])}, its peers {rates([own.usual])} ({own.share:.2f})"
            low.setdefault(step.group[0], []).append(f"{step.op.value} inside {step.group[0]}: {figures}")
    for node, messages in low.items():
        results = [result for result in probed[node].results if result.step.stage is Stage.INSIDE]
        evidence = tuple(one.text for one in observations(node, hardware[node], results))
        fix = "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE"
        yield Problem(
            "; ".join(messages), fix, evidence, (node,), look=True, summary="slow GPUs", follows=SLOW_GPUS
        )  # fmt: skip
