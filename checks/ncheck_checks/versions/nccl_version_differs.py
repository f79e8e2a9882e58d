"""The NCCL version differs between nodes

## What it finds
Nodes whose job interpreter loads another NCCL version than on the other nodes. ncheck calls `ncclGetVersion` of the
library that the interpreter really loads and does not rely on package lists. All nodes are compared, whatever their
GPU model. With a majority, the other nodes are named; in a tie, both sides are named and none is blamed.

## Why it matters
NCCL refuses to start if versions differ, even in the last number ("Mismatched NCCL version detected", since 2.23.4);
older releases hang silently.

## What to type
Install the majority's version on the other nodes, in the environment that the job uses:
`python3 -m pip install nvidia-nccl-cu12==VERSION` (cu13 for CUDA 13) if it comes from a wheel,
`sudo apt-get install 'libnccl2=VERSION*'` if it is a system package; then
`ncheck --select nccl-version-differs nodes.txt`.
"""

from __future__ import annotations

from shlex import quote

from ncheck import Severity, parity_check
from ncheck.facts.nccl import LoadedNcclFacts


def _installed(odd: LoadedNcclFacts, wanted: str) -> str:
    """Return the command that installs a version from the source of the deviating node's copy."""
    if odd.path.startswith(("/usr/lib", "/lib")) and not odd.static:
        return f"sudo apt-get install {quote(f'libnccl2={wanted}*')}"
    return f"python3 -m pip install {quote(f'nvidia-nccl-cu12=={wanted}')}"


@parity_check(
    "NC201", Severity.ERROR, LoadedNcclFacts, everywhere=True, what="NCCL differs", fix=_installed,
    shown=lambda nccl: f"{nccl.version} from {nccl.path}",
)  # fmt: skip
def nccl_version_differs(nccl: LoadedNcclFacts) -> str:
    return nccl.version
