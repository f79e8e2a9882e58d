"""A GPU is missing from the topology matrix

## What it finds
Nodes on which the driver lists more GPUs than the topology matrix of `nvidia-smi topo -m` (or of the PCI bus and NVML)
shows.

## Why it matters
A GPU that disappears between two questions is about to be lost, or its driver no longer answers: a job that uses it
fails, or hangs.

## What to type
`nvidia-smi -L` and `nvidia-smi topo -m` on the named nodes, then `sudo journalctl -k -g NVRM` for the driver's words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_log import GPU_UNUSABLE
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts


@node_check("NC511", Severity.WARNING, TopologyFacts, GpuFacts, hardware=True)
def gpu_missing_from_topology(node: NodeView) -> Iterator[Problem]:
    topology, gpus = node[TopologyFacts], node[GpuFacts].gpus
    if len(topology.gpus) < len(gpus):
        missing = [f"GPU{gpu.index}" for gpu in gpus if f"GPU{gpu.index}" not in topology.gpus]
        message = f"the topology matrix lacks {', '.join(missing)} ({len(topology.gpus)} of {len(gpus)} GPUs)"
        evidence = (f"read from {topology.source}",)
        yield Problem(
            message,
            "nvidia-smi -L",
            evidence,
            look=True,
            summary="a GPU is missing from the matrix",
            follows=GPU_UNUSABLE,
        )
