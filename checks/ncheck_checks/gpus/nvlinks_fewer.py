"""A GPU has fewer NVLinks than the other GPUs of its node

## What it finds
GPUs with fewer active NVLinks than the other GPUs of the same model in their node. Boards whose GPUs have different
numbers by design (a part of the cube of V100 or P100) and GPUs in MIG mode are not judged. `ncheck read topo` says the
same of a saved matrix.

## Why it matters
A link that did not train, or a bridge that is not pushed in, takes its share of the bandwidth: a ring is as fast as the
GPU with the fewest links, and all other nodes wait for it. On boards with NVSwitch, NCCL may give up NVLS.

## What to type
`nvidia-smi nvlink -s` shows the links that are inactive, `nvidia-smi nvlink -e` their errors. Reset the GPUs or reboot;
check the bridges, if the GPUs have any.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.topology.judgement import LINK_DOWN, UNEVEN, nvlink_remarks


@node_check("NC509", Severity.WARNING, TopologyFacts, GpuFacts, explains=UNEVEN, hardware=True, next_step="ticket")
def nvlinks_fewer(node: NodeView) -> Iterator[Problem | NotApplicable]:
    topology = node[TopologyFacts]
    if len(topology.gpus) == 1 or len(node[GpuFacts].models) > 1:
        yield NotApplicable("one GPU" if len(topology.gpus) == 1 else "GPUs of different models")
        return
    for remark in nvlink_remarks(topology):
        if remark.level == "warning":
            evidence = (f"read from {topology.source}",)
            yield Problem(
                remark.text, "nvidia-smi nvlink -s", evidence, look=True, summary="fewer NVLinks", follows=LINK_DOWN
            )
