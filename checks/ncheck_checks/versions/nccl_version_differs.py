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
`python3 -m pip install nvidia-nccl-cu12==VERSION` (cu13 for CUDA 13) where it comes from a wheel,
`sudo apt-get install 'libnccl2=VERSION*'` where it is the system's; then
`ncheck --select nccl-version-differs nodes.txt`.
"""

from __future__ import annotations

from shlex import quote

from ncheck import Severity, parity_check
from ncheck.facts.nccl import LoadedNcclFacts


def _installed(odd: LoadedNcclFacts, wanted: str) -> str:
    """Return the line that installs a version where the odd node's copy comes from."""
    if odd.path.startswith(("/usr/lib", "/lib")) and not odd.static:
        return f"sudo apt-get install {quote(f'libnccl2={wanted}*')}"
    return f"python3 -m pip install {quote(f'nvidia-nccl-cu12=={wanted}')}"


@parity_check(
    "NC201", Severity.ERROR, LoadedNcclFacts, everywhere=True, what="NCCL differs", fix=_installed,
    shown=lambda nccl: f"{nccl.version} from {nccl.path}",
)  # fmt: skip
def nccl_version_differs(nccl: LoadedNcclFacts) -> str:
    return nccl.version
