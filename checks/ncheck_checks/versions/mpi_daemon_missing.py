"""mpirun's ssh does not find MPI's daemon on a node

## What it finds
Nodes where the daemon that mpirun starts (orted of Open MPI 4, prted of 5, the proxies of MPICH and Intel MPI) is not
found by a plain ssh login, or does not run for want of its libraries; and why: a ~/.bashrc that returns before its
exports where no person is at the terminal, a module that only a login shell loads, a folder that no PATH names, or no
such program at all. In a Slurm job mpirun uses no ssh, and nothing is said.

## Why it matters
mpirun logs in to every node and starts its daemon in a shell that is neither interactive nor a login shell. Where it
is not found there, mpirun ends with "orted: command not found" and "ORTE was unable to reliably start one or more
daemons", though `which orted` at your own prompt shows it.

## What to type
`mpirun --prefix DIR`, DIR being the folder above its bin, where every node has it at one place: the plan's line has
it then. Or put the export into ~/.bashrc above the line that returns, as the finding's line does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import ListingFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.mpi import missing_daemons, prefix_for, starter_of


@cluster_check("NC209", Severity.ERROR, MpiDaemonFacts, ListingFacts, mended_by="--prefix")
def mpi_daemon_missing(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    found, places = cluster.facts(MpiDaemonFacts), cluster.facts(ListingFacts)
    start, prefix = starter_of(found), prefix_for(found)
    if start is None:
        yield NotApplicable("no node has an mpirun whose daemon is known")
    elif all(place.startswith("SLURM") for listing in places.values() for place in listing.places):
        yield NotApplicable("in a Slurm job mpirun starts its daemons by srun, without ssh")
    else:
        helps = (f"mpirun --prefix {prefix} starts it as it is, and the plan's line says so",) if prefix else ()
        for lack in missing_daemons(found, start):
            what = f"mpirun of {start.node} ({start.described}) does not get its {start.daemon} by ssh: {lack.cause}"
            yield Problem(what, lack.fix, helps, (lack.node,))
