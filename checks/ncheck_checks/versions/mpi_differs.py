"""MPI differs between nodes

## What it finds
Nodes whose mpirun is another implementation (Open MPI, MPICH, Intel MPI) or another release (the first two numbers,
4.1 against 5.0) than on the other nodes. It is the mpirun of the job's environment (--setup), or else of a
non-interactive ssh login, or else of an interactive shell. Nodes without mpirun are reported if other nodes have one.
All nodes are compared, whatever their GPU model. In a tie, both sides are named and none is blamed.

## Why it matters
mpirun starts a daemon on every node and uses a private protocol with it. Daemons of another release do not answer:
"ORTE was unable to reliably start one or more daemons", or the launch waits forever.

## What to type
On the named nodes, `which -a mpirun orted prted` shows which installation comes first on PATH. Install the same
release (`apt-get install openmpi-bin`), or select one installation for all with `mpirun --prefix DIR`.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.mpi import MpiFacts


@parity_check(
    "NC203", Severity.ERROR, MpiFacts, everywhere=True, what="MPI differs",
    fix="which -a mpirun orted prted", look=True,
    shown=lambda mpi: f"{mpi.implementation} {mpi.version} at {mpi.path}",
)  # fmt: skip
def mpi_differs(mpi: MpiFacts) -> str:
    release = ".".join(str(number) for number in mpi.release[:2])
    return f"{mpi.implementation} {release or mpi.version}"
