"""NCCL is not the same on every node

## What it finds
Nodes whose job interpreter loads another NCCL than the rest: asked of the library itself by `ncclGetVersion`, for the
copy that the interpreter really loads, not for the one that a package list names. Nodes are compared within groups of
one GPU model. With a majority the odd nodes are named; on a tie both sides are, and none is blamed.

## Why it matters
NCCL refuses to start across versions that differ even in the last number ("Mismatched NCCL version detected", since
2.23.4); older ones hang without a word.

## What to type
Install the majority's version on the odd nodes, in the environment that the job uses:
`python3 -m pip install nvidia-nccl-cu12==VERSION`, then `ncheck --select nccl-version-differs nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Problem, Severity, cluster_check, split
from doctor.model.facts import LoadedNcclFacts


@cluster_check("NC201", Severity.ERROR, LoadedNcclFacts, everywhere=True, by_kind=True)
def nccl_version_differs(cluster: ClusterView) -> Iterator[Problem]:
    loaded = cluster.each(LoadedNcclFacts)
    parted = split({node: nccl.version for node, nccl in loaded.items()})
    if parted:
        yield Problem(
            message="NCCL differs: " + parted.told(),
            fix=f"python3 -m pip install nvidia-nccl-cu12=={parted.wanted}",
            evidence=tuple(f"{node}: {nccl.version} from {nccl.path}" for node, nccl in loaded.items()),
            nodes=parted.odd,
        )
