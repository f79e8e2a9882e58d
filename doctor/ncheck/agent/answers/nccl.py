"""Every libnccl (AMD: librccl) on this node with the version that it says itself, and the one that the job loads."""

import time

from ncheck.agent.answers import nccl_places
from ncheck.agent.answers.nccl_loaded import AskingLibraries, loaded
from ncheck.agent.answers.nccl_places import found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Sources

READS = (
    "libnccl.so* and librccl.so* in LD_PRELOAD, LD_LIBRARY_PATH, the job's site-packages (nvidia/nccl/lib, torch/lib) "
    "and prefix, " + ", ".join(nccl_places.SYSTEM + nccl_places.CONDA),
    "ldconfig -p",
    "each copy, opened by a python3 of its own that calls ncclGetVersion",
    "the job's python3, run with -B -c: its path, its prefix and where torch lies; and in a fork of it: ncclGetVersion",
    "the tables of torch's libtorch_cuda.so or libtorch_hip.so, which is not run",
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"copies": [...], "loaded": {...}|None}."""
    asking = AskingLibraries(sources.job, time.monotonic() + timeout)
    copies = [asking.copy(place) for place in found(sources.job)]
    return {"copies": copies, "loaded": loaded(sources.job, copies, asking)}
