"""A control group gives the job less than half of its share of the memory

## What it finds
Nodes with GPUs whose control group (of a Slurm job, a container, a systemd slice) limits memory to less than half of
the job's fair share. With all GPUs of the node, the share is all of its memory; with one of eight, an eighth. The half
is a rule of thumb.

## Why it matters
At the limit, the kernel ends the largest process of the group: a rank disappears with "Killed" or exit status 137, the
others wait for it. Loading a checkpoint and the data loaders need the most. Slurm gives a job little memory unless it
asks for more, where DefMemPerCPU is set.

## What to type
In Slurm, ask for all memory of the node: `--mem=0`. For a container, leave `docker run --memory` out, or raise
`resources.limits.memory` in Kubernetes. `cat /proc/self/cgroup` on the node shows the
group.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_load import HostLoadFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.pci import AMD, NVIDIA, PciFacts

GIB = 2**30
OF_SHARE = 0.5


@node_check("NC617", Severity.WARNING, HostSettingsFacts, HostLoadFacts, GpuFacts, also=(PciFacts,))
def memory_limit_low(node: NodeView) -> Iterator[Problem | NotApplicable]:
    group, total = node[HostSettingsFacts].memory, node[HostLoadFacts].memory
    if group is None or total is None:
        yield NotApplicable("no control group limits the memory" if total else "the node does not show its memory")
        return
    gpus, pci = len(node[GpuFacts].gpus), node.maybe(PciFacts)
    vendor = AMD if node[GpuFacts].vendor == "AMD" else NVIDIA
    there = max(gpus, len(pci.gpus(vendor)) if isinstance(pci, PciFacts) else 0)
    share = total * gpus // there
    if group.limit < OF_SHARE * share:
        yield Problem(
            f"memory is limited to {group.limit / GIB:.1f} GiB; the share of {gpus} of {there} GPUs is "
            f"{share / GIB:.1f} GiB",
            "cat /proc/self/cgroup",
            (group.folder,),
            look=True,
            summary="a control group limits memory",
        )
