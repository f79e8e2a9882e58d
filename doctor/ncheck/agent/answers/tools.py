"""Which programs that measure lie on the PATH of the job's environment, and whether nccl-tests was built with MPI."""

import os
import shutil

from ncheck.agent.commands import SYSTEM_FOLDERS
from ncheck.agent.elf import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Optional

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Sources

# The programs of nccl-tests, by what they measure.
PROGRAMS = {
    "all-reduce": "all_reduce_perf", "all-gather": "all_gather_perf", "reduce-scatter": "reduce_scatter_perf",
    "all-to-all": "alltoall_perf", "broadcast": "broadcast_perf", "send-recv": "sendrecv_perf",
}  # fmt: skip
# all_reduce_perf_mpi: so NVIDIA's containers call the build with MPI that they have beside the one without.
WITH_MPI = "_mpi"
RDMA = ("ib_write_bw", "ibv_rc_pingpong")
LATENCY = "ib_write_lat"  # installed with ib_write_bw
_FIRST = PROGRAMS["all-reduce"]

READS = (
    "{} on the PATH, and which libraries the first two ask for; the other programs of nccl-tests beside these".format(
        ", ".join((_FIRST, _FIRST + WITH_MPI, *RDMA))
    ),
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"tools": {name: {"path", "mpi": bool|null}}}."""
    environment = sources.job.environment
    found = {name: path_of(name, environment) for name in RDMA}
    tools = {name: {"path": path, "mpi": with_mpi(path)} for name, path in found.items() if path}
    for paths in nccl_tests(environment):
        mpi = with_mpi(next(iter(paths.values())))  # they are built together
        tools.update({name: {"path": path, "mpi": mpi} for name, path in paths.items()})
    return {"tools": tools}


def nccl_tests(environment: "Environment") -> "Iterator[Dict[str, str]]":
    """Yield the programs of each build of nccl-tests, name to path: all_reduce_perf on the PATH, and what is beside."""
    for ending in ("", WITH_MPI):
        first = path_of(_FIRST + ending, environment)
        if first:
            paths = {_FIRST + ending: first}
            for folder in (os.path.dirname(first), os.path.dirname(os.path.realpath(first))):
                for name in [program + ending for program in PROGRAMS.values()]:
                    path = os.path.join(folder, name)
                    if name not in paths and os.access(path, os.X_OK):
                        paths[name] = path
            yield paths


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
