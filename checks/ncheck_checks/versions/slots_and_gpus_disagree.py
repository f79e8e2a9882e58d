"""A node is listed with more slots than it has GPUs

## What it finds
Nodes with GPUs whose slots in the list are more than the GPUs that a job sees there: fewer are in the machine, or
CUDA_VISIBLE_DEVICES in the job's environment shows only some of them. Where MIG parts are named, and on nodes without
a GPU or without slots in the list, nothing is said.

## Why it matters
Launchers start one rank a slot. Two ranks then share a GPU, which NCCL refuses ("Duplicate GPU detected", "Multiple
Ranks are using the same GPU"), or a rank asks for a device that is not there ("invalid device ordinal"); all others
wait for it.

## What to type
`nvidia-smi -L` on the named nodes shows the GPUs. Then correct the number in the list (`node01 slots=4`), or take the
variable away where it is set: `unset CUDA_VISIBLE_DEVICES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.topology.gpus import VARIABLE, visible_gpus


@node_check("NC208", Severity.ERROR, GpuFacts, ListingFacts, EnvironmentFacts)
def slots_and_gpus_disagree(node: NodeView) -> Iterator[Problem | NotApplicable]:
    slots, there = node[ListingFacts].slots, len(node[GpuFacts].gpus)
    seen = visible_gpus(node[GpuFacts], node[EnvironmentFacts])
    if slots is None or seen is None or there == 0:
        yield NotApplicable("the list says no slots" if slots is None else "no whole GPUs are there or named")
    elif slots > there:
        yield Problem(f"listed with {slots} slots, and it has {there} GPUs: two ranks would share one", "nvidia-smi -L")
    elif slots > seen:
        value = node[EnvironmentFacts].variables[VARIABLE]
        shown = (f"{VARIABLE}={quote(value)}",)
        yield Problem(
            f"listed with {slots} slots, and {VARIABLE} shows {seen} of its {there} GPUs", f"unset {VARIABLE}", shown
        )
