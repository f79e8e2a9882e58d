"""A container refuses the NUMA calls that this NCCL needs

## What it finds
Nodes where get_mempolicy(2) is refused, as Docker's default profile does, and the job loads NCCL 2.24.3 to 2.26.4 with
a driver for CUDA 12.6 or newer, unless NCCL_CUMEM_HOST_ENABLE or NCCL_CUMEM_ENABLE is 0.

## Why it matters
These releases keep shared memory in CUDA's host allocations, which ask for the NUMA policy: communicators fail with a
CUDA error in ncclCommInitRank. Older releases use /dev/shm, and 2.26.5 falls back to it. The source is NCCL's guide,
"Runtime and MPI issues".

## What to type
Start the container with `docker run --cap-add SYS_NICE`, or `export NCCL_CUMEM_HOST_ENABLE=0` for the job.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.settings import lasting, release_of, settings_of

FROM, FALLS_BACK = (2, 24, 3), (2, 26, 5)
DRIVER = (12, 6)
SWITCHES = ("NCCL_CUMEM_HOST_ENABLE", "NCCL_CUMEM_ENABLE")


@node_check("NC626", Severity.WARNING, HostSettingsFacts, LoadedNcclFacts, GpuFacts, EnvironmentFacts)
def numa_calls_refused(node: NodeView) -> Iterator[Problem]:
    nccl, settings = node[LoadedNcclFacts], settings_of(node[EnvironmentFacts], node[LoadedNcclFacts])
    off = any((placed := settings.get(name)) and placed.value == "0" for name in SWITCHES)
    affected = FROM <= release_of(nccl.version) < FALLS_BACK and release_of(node[GpuFacts].cuda) >= DRIVER
    if node[HostSettingsFacts].numa_refused and affected and not off:
        message = f"NUMA calls are refused in this container, and NCCL {nccl.version} needs them"
        fix = lasting(SWITCHES[0], "0", node[EnvironmentFacts], release_of(nccl.version))
        yield Problem(message, fix.line, look=fix.look)
