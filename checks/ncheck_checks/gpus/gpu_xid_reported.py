"""The driver reported a GPU as broken

## What it finds
Xid lines in the kernel log since boot that call for a reset of the GPU, a restart of the machine or a look at its
links and memory: 48, 74, 79, 95, 119 and their kin. Only root can read the kernel log on most machines: run with
`--sudo`.

## Why it matters
A GPU that was reported so may still answer nvidia-smi. The job dies on it or hangs in its first collective.

## What to type
On the node: `sudo nvidia-smi --gpu-reset -i ADDRESS` with no job on that GPU; after Xid 79, the GPU is off the bus:
`sudo systemctl reboot`. If it comes back, the card or its slot is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.kernel_log import KernelLogFacts, problems
from ncheck.facts.login import ListingFacts


@node_check("NC506", Severity.ERROR, KernelLogFacts, ListingFacts)
def gpu_xid_reported(node: NodeView) -> Iterator[Problem]:
    here = node[ListingFacts].places == ("local",)
    return problems(node[KernelLogFacts], fatal=True, way_in="" if here else f"ssh -t {quote(node.name)} ")
