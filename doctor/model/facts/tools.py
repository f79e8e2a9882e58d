"""Programs that measure, as the job's environment has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """One program. `mpi` tells whether it was built with MPI; None: that cannot be seen (a wrapper)."""

    path: str
    mpi: bool | None = None


@dataclass(frozen=True)
class ToolFacts:
    """What is there of all_reduce_perf, all_reduce_perf_mpi, ib_write_bw and ibv_rc_pingpong, by name."""

    tools: Mapping[str, Tool]
