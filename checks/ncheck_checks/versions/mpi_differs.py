"""MPI is not the same on every node

## What it finds
Nodes whose mpirun is another implementation (Open MPI, MPICH, Intel MPI) or another release than the rest: the first
two numbers count, 4.1 against 5.0. It is that of the job's environment (--setup), else that of a plain ssh login, else
that of a person's shell. Nodes without any mpirun fail where others have one. Nodes are compared within groups of one
GPU model; on a tie both sides are named, and none is blamed.

## Why it matters
mpirun starts its own helper on every node and speaks a private protocol with it. Helpers of another release do not
answer: "ORTE was unable to reliably start one or more daemons", or a launch that waits for ever.

## What to type
On the named nodes, `which -a mpirun orted prted` shows which installation comes first on PATH. Install the same
release (`apt-get install openmpi-bin`), or name one installation for all with `mpirun --prefix DIR`.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.mpi import MpiFacts


@parity_check(
    "NC203", Severity.ERROR, MpiFacts, everywhere=True, what="MPI differs",
    fix="which -a mpirun orted prted", shown=lambda mpi: f"{mpi.implementation} {mpi.version} at {mpi.path}",
)  # fmt: skip
def mpi_differs(mpi: MpiFacts) -> str:
    release = ".".join(str(number) for number in mpi.release[:2])
    return f"{mpi.implementation} {release or mpi.version}"
