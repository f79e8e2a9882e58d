"""Where copies of libnccl (AMD: librccl) lie: where the loader, the job's interpreter and usual packages put them."""

import os
import re

from ncheck.agent.files import matching
from ncheck.agent.loader import cached, library_path, preloaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Tuple

    from ncheck.agent.job import JobSetup

NAMES = ("libnccl.so", "librccl.so")
_COPY = re.compile(r"lib[nr]ccl\.so(\.\d+)*$")  # libnccl.so.2.21.5, librccl.so.1, and not libnccl-net.so

SYSTEM = (
    "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/usr/local/lib", "/usr/local/lib64",
    "/usr/local/cuda*/lib64", "/usr/local/cuda*/lib", "/usr/local/nccl*/lib", "/opt/nccl*/lib", "/opt/nccl*/build/lib",
    "/opt/nvidia/nccl*/lib", "/opt/nvidia/hpc_sdk/Linux_*/*/comm_libs/nccl/lib",
    "/opt/nvidia/hpc_sdk/Linux_*/*/comm_libs/*/nccl/lib", "/usr/local/lib/python3*/dist-packages/nvidia/nccl/lib",
    "/opt/rocm*/lib",
)  # fmt: skip
CONDA = ("/opt/conda/lib", "/opt/miniconda3/lib", "~/miniconda3/lib", "~/anaconda3/lib")


def found(job: "JobSetup") -> "List[Dict[str, Any]]":
    """Return [{"path", "origin", "seen_as"}]: each real path once, under the first origin that shows it."""
    copies: "Dict[str, Dict[str, Any]]" = {}
    for origin, folder_or_file in _candidates(job):
        for path in _copies_in(folder_or_file):
            real = os.path.realpath(path)
            copy = copies.setdefault(real, {"path": real, "origin": origin, "seen_as": []})
            if path not in copy["seen_as"]:
                copy["seen_as"].append(path)
    return list(copies.values())


def _candidates(job: "JobSetup") -> "Iterator[Tuple[str, str]]":
    """Yield (origin, file or folder), what weighs more first."""
    python = layout(job)
    prefixes = [prefix for prefix in (python["prefix"], job.environment.get("CONDA_PREFIX")) if prefix]
    conda = [prefix for prefix in prefixes if os.path.isdir(os.path.join(prefix, "conda-meta"))]
    rows = (
        ("environment", preloaded(job.environment, *NAMES) + library_path(job.environment)),
        ("loader", cached(*NAMES)),
        ("wheel", [os.path.join(folder, "nvidia", "nccl", "lib") for folder in python["path"]]),
        ("torch", [os.path.join(python["torch"], "lib")] if python["torch"] else []),
        ("conda", [os.path.join(prefix, "lib") for prefix in conda] + [os.path.expanduser(f) for f in CONDA]),
        ("system", [os.path.join(prefix, "lib") for prefix in prefixes if prefix not in conda]),
        ("system", [folder for pattern in SYSTEM for folder in matching(pattern)]),
    )
    for origin, places in rows:
        for place in places:
            yield origin, place


def _copies_in(folder_or_file: str) -> "List[str]":
    if os.path.isfile(folder_or_file):
        return [folder_or_file] if _COPY.search(folder_or_file) else []
    try:
        names = [name for name in sorted(os.listdir(folder_or_file)) if name.startswith(NAMES)]
    except OSError:
        return []
    paths = [os.path.join(folder_or_file, name) for name in names if _COPY.match(name)]
    return [path for path in paths if os.path.isfile(path)]


def layout(job: "JobSetup") -> "Dict[str, Any]":
    """Return what the job's interpreter says of its path, its prefix and torch's folder; torch is not imported."""
    return job.printed("ncheck-layout:", 10.0) or {"path": [], "prefix": None, "torch": None}
