"""Horovod differs between nodes

## What it finds
Nodes whose Horovod has another version, or was built with other frameworks, controllers or tensor operations than on
the other nodes, according to `horovodrun --check-build`. Nodes without Horovod are reported if other nodes have it.

## Why it matters
Ranks agree on each operation before they run it. If one build has NCCL or MPI and another does not, the ranks wait for
each other over different channels: the first all-reduce never ends.

## What to type
Install the majority's build, with NCCL if any node has it, on the named nodes, in the job's environment, for example
`HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod==VERSION`, then
`horovodrun --check-build`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.horovod import WITHOUT_NCCL, HorovodFacts


@cluster_check("NC204", Severity.ERROR, HorovodFacts, everywhere=True)
def horovod_differs(cluster: Cluster) -> Iterator[Problem]:
    builds = cluster.facts(HorovodFacts)
    if parted := split({node: _summary(horovod) for node, horovod in builds.items()}):
        wanted = builds[parted.groups[0][1][0]]
        lacking = tuple(node for node, horovod in builds.items() if "NCCL" not in horovod.operations)
        nccl_alone = not split({node: _summary(_with_nccl(horovod)) for node, horovod in builds.items()})
        yield Problem(
            f"Horovod differs: {parted.summary()}",
            wanted.to_install(with_nccl=len(lacking) < len(builds)),
            nodes=lacking if nccl_alone else parted.odd,
            summary="Horovod differs",
            follows=WITHOUT_NCCL if nccl_alone else "",
        )


def _with_nccl(horovod: HorovodFacts) -> HorovodFacts:
    """Return the build as it is once NCCL is added."""
    return replace(horovod, operations=horovod.operations | {"NCCL"})


def _summary(horovod: HorovodFacts) -> str:
    built = (_joined(horovod.frameworks), _joined(horovod.controllers), _joined(horovod.operations))
    return f"{horovod.version} (for {built[0]}, by {built[1]}, with {built[2]})"


def _joined(names: Iterable[str]) -> str:
    return "+".join(sorted(names)) or "none"
