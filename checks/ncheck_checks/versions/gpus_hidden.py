"""CUDA_VISIBLE_DEVICES hides GPUs from the job

## What it finds
Nodes where CUDA_VISIBLE_DEVICES, in the job's environment, shows some of the node's GPUs (a warning) or none (an
error): a line left in a start-up file, or a value that names no GPU and so ends the list. If the node list gives slots,
slots-and-gpus-disagree compares these with the visible GPUs instead. Nodes whose variable names MIG instances are not
judged, nor is the environment of a rank, inside a job: its launcher may show it GPUs of its own.

## Why it matters
Programs see only the remaining GPUs, numbered from 0. Launchers that start a rank per GPU start fewer ranks here than
elsewhere, or use a GPU that is hidden ("invalid device ordinal"). Without any, each rank stops with "no CUDA-capable
device is detected", or computes on the CPU, and the ranks of the other nodes wait for it.

## What to type
Remove the line that sets it; `unset` in a shell changes no login. Where it is set:
`grep -n CUDA_VISIBLE_DEVICES ~/.bashrc ~/.profile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.facts.run import JobFacts
from ncheck.login_variables import to_remove
from ncheck.topology.gpus import VARIABLE, visible_gpus


@node_check("NC211", Severity.ERROR, GpuFacts, ListingFacts, EnvironmentFacts, also=(JobFacts,))
def gpus_hidden(node: NodeView) -> Iterator[Problem | NotApplicable]:
    total, visible = len(node[GpuFacts].gpus), visible_gpus(node[GpuFacts], node[EnvironmentFacts])
    job = node.maybe(JobFacts)
    if isinstance(job, JobFacts) and job.running:
        yield NotApplicable("the job's launcher may show each rank GPUs of its own")
    elif visible is None or node[ListingFacts].slots is not None:
        yield NotApplicable(
            "MIG instances, or AMD's GPUs, are selected"
            if visible is None
            else "the node list gives the number of slots"
        )
    elif visible < total:
        value = node[EnvironmentFacts].variables[VARIABLE]
        fix = to_remove(node[EnvironmentFacts], VARIABLE)
        yield Problem(
            f"{VARIABLE} shows {visible or 'none'} of its {total} GPUs",
            fix.line,
            (f"{VARIABLE}={quote(value)}",),
            look=fix.look,
            summary=f"only {visible} of {total} GPUs are visible" if visible else "all GPUs are hidden",
            severity=Severity.WARNING if visible else None,
        )
