"""A GPU is already in use

## What it finds
GPUs with more than 3 % of their memory and more than 1 GiB in use before the job starts; the driver itself uses less.
Measurements on such a GPU are too low. Above 10 % ncheck measures nothing on GPUs, except with --force. Inside a job,
what its own ranks use does not count.

## Why it matters
A rank that shares its GPU is slow or ends with "CUDA out of memory", and all others wait for it or end with it. Often a
process of an earlier job is still running, or another user shares the node by mistake.

## What to type
`nvidia-smi` on the named nodes shows the processes. End your own with `kill PID`. To measure anyway:
`ncheck probe nodes.txt --force`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.topology.gpus import in_use, share_in_use, used_by_others


@node_check("NC730", Severity.WARNING, GpuFacts, also=(RanksFacts,))
def gpu_in_use(node: NodeView) -> Iterator[Problem]:
    ranks = node.maybe(RanksFacts)
    gpus = used_by_others(node[GpuFacts], ranks.pids) if isinstance(ranks, RanksFacts) else node[GpuFacts]
    shares = {gpu.index: share_in_use(gpu) or 0.0 for gpu in in_use(gpus)}
    if shares:
        used = ", ".join(f"{share:.0%} of GPU {index}" for index, share in shares.items())
        message = f"GPU memory is in use before the job starts: {used}"
        yield Problem(message, gpus.usage_shown_by, look=True, summary="GPUs are in use")
