"""Which programs that measure lie on the PATH of the job's environment, and whether nccl-tests was built with MPI."""

import os
import shutil

from ncheck.agent.commands import SYSTEM_FOLDERS
from ncheck.agent.elf import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Sources

# all_reduce_perf_mpi: so NVIDIA's containers call the build with MPI that they have beside the one without.
NCCL_TESTS = ("all_reduce_perf", "all_reduce_perf_mpi")
RDMA = ("ib_write_bw", "ibv_rc_pingpong")

READS = ("{} on the PATH, and which libraries the first two ask for".format(", ".join(NCCL_TESTS + RDMA)),)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"tools": {name: {"path", "mpi": bool|null}}}."""
    environment = sources.job.environment
    found = {name: path_of(name, environment) for name in NCCL_TESTS + RDMA}
    return {"tools": {name: {"path": path, "mpi": with_mpi(path)} for name, path in found.items() if path}}


def path_of(name: str, environment: "Environment") -> "Optional[str]":
    """Return where a program lies, None where it is not on the PATH."""
    path = ":".join(part for part in (environment.get("PATH", ""), SYSTEM_FOLDERS) if part)
    found = shutil.which(name, path=path)
    return os.path.abspath(found) if found else None


def with_mpi(path: str) -> "Optional[bool]":
    """Tell whether a program asks for an MPI library; None for what is no ELF program, such as a wrapper."""
    try:
        library = Library(path)
        needed = library.needed()
        library.close()
    except (OSError, ValueError):
        return None
    return any(name.startswith("libmpi") for name in needed)
