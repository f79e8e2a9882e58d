"""A node is listed with more slots than GPUs

## What it finds
Nodes with GPUs whose number of slots in the list is larger than the number of GPUs that a job sees there: the machine
has fewer GPUs, or CUDA_VISIBLE_DEVICES in the job's environment shows only some. Nodes without GPUs, without slots in
the list, or with MIG instances are not judged.

## Why it matters
Launchers start one rank per slot. Two ranks then share a GPU, which NCCL refuses ("Duplicate GPU detected", "Multiple
Ranks are using the same GPU"), or a rank uses a device that does not exist ("invalid device ordinal"); all others wait
for it.

## What to type
`nvidia-smi -L` on the named nodes shows the GPUs. Then correct the number in the list (`node01 slots=4`), or remove the
line that sets the variable: `grep -n CUDA_VISIBLE_DEVICES ~/.bashrc ~/.profile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.login_variables import to_remove
from ncheck.topology.gpus import VARIABLE, visible_gpus


@node_check("NC208", Severity.ERROR, GpuFacts, ListingFacts, EnvironmentFacts)
def slots_and_gpus_disagree(node: NodeView) -> Iterator[Problem | NotApplicable]:
    slots, total = node[ListingFacts].slots, len(node[GpuFacts].gpus)
    visible = visible_gpus(node[GpuFacts], node[EnvironmentFacts])
    if slots is None or visible is None or total == 0:
        yield NotApplicable("the list gives no slots" if slots is None else "no whole GPUs")
    elif slots > total:
        yield Problem(
            f"listed with {slots} slots but has {total} GPUs: two ranks would share one", node[GpuFacts].listed_by,
            look=True, summary="slots and GPUs disagree",
        )  # fmt: skip
    elif slots > visible:
        value = node[EnvironmentFacts].variables[VARIABLE]
        message = f"listed with {slots} slots, but {VARIABLE} shows {visible} of its {total} GPUs"
        fix, evidence = to_remove(node[EnvironmentFacts], VARIABLE), (f"{VARIABLE}={quote(value)}",)
        yield Problem(message, fix.line, evidence, look=fix.look, summary="slots and GPUs disagree")
