"""CUDA_VISIBLE_DEVICES hides all GPUs of a node from the job

## What it finds
Nodes with GPUs where CUDA_VISIBLE_DEVICES, in the job's environment, is empty or names no GPU of the node, so that a
program sees none. Nodes whose slots the list gives are judged by slots-and-gpus-disagree. The environment of a rank,
inside a job, is not judged: its launcher may show it GPUs of its own.

## Why it matters
Every rank on the node stops with "no CUDA-capable device is detected" or "CUDA unknown error", or computes on the CPU,
and the ranks on the other nodes wait for it.

## What to type
`unset CUDA_VISIBLE_DEVICES`, and find where it is set: `grep -n CUDA_VISIBLE_DEVICES ~/.bashrc ~/.profile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.facts.run import JobFacts
from ncheck.topology.gpus import VARIABLE, visible_gpus


@node_check("NC226", Severity.ERROR, GpuFacts, ListingFacts, EnvironmentFacts, also=(JobFacts,))
def all_gpus_hidden(node: NodeView) -> Iterator[Problem | NotApplicable]:
    total, visible = len(node[GpuFacts].gpus), visible_gpus(node[GpuFacts], node[EnvironmentFacts])
    job = node.maybe(JobFacts)
    if isinstance(job, JobFacts) and job.running:
        yield NotApplicable("the job's launcher may show each rank GPUs of its own")
    elif visible is None or node[ListingFacts].slots:
        yield NotApplicable(
            "MIG instances, or AMD's GPUs, are selected"
            if visible is None
            else "the node list gives the number of slots"
        )
    elif total and not visible:
        value = node[EnvironmentFacts].variables[VARIABLE]
        yield Problem(
            f"{VARIABLE} hides all of its {total} GPUs",
            f"unset {VARIABLE}",
            (f"{VARIABLE}={quote(value)}",),
            summary="all GPUs are hidden",
        )
