"""Open MPI's daemon is there and its library is not

## What it finds
Nodes where a non-interactive login finds orted or prted, but libmpi.so lies neither in that installation nor where the
loader looks in the job's environment.

## Why it matters
The daemon itself does not need libmpi, so mpirun starts it without trouble. Each rank on that node then ends with
"error while loading shared libraries: libmpi.so.40", and mpirun stops the job.

## What to type
`ldconfig -p | grep libmpi` on the named node and on a healthy one. `sudo apt-get install libopenmpi3` (Debian, Ubuntu)
or `sudo dnf install openmpi` installs it; a copied installation must be complete, with its lib folder.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts


@node_check("NC214", Severity.ERROR, LibraryFacts, also=(MpiDaemonFacts,))
def libmpi_missing(node: NodeView) -> Iterator[Problem | NotApplicable]:
    trouble = node[LibraryFacts].mpi
    if isinstance(trouble, Absent):
        yield NotApplicable(trouble.reason)
    elif trouble:
        yield Problem(f"Open MPI's daemon is there, and its library is not: {trouble}", "ldconfig -p | grep libmpi",
                      look=True)  # fmt: skip
