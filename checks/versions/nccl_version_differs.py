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

from doctor import Severity, parity_check
from doctor.model.facts import LoadedNcclFacts


@parity_check(
    "NC201", Severity.ERROR, LoadedNcclFacts, everywhere=True, what="NCCL differs",
    fix="python3 -m pip install nvidia-nccl-cu12=={wanted}", shown=lambda nccl: f"{nccl.version} from {nccl.path}",
)  # fmt: skip
def nccl_version_differs(nccl: LoadedNcclFacts) -> str:
    return nccl.version
