"""mpirun cannot find the MPI daemon on a node

## What it finds
Nodes where a non-interactive ssh login cannot find the daemon that mpirun starts (orted of Open MPI 4, prted of 5, the
proxies of MPICH and Intel MPI), or where it cannot load its libraries. The message gives the cause: a ~/.bashrc that
returns before its exports in non-interactive shells, a module that only a login shell loads, a folder that is not on
PATH, or no such program at all. In a Slurm job mpirun does not use ssh, and the check is skipped.

## Why it matters
mpirun logs in to every node and starts its daemon in a shell that is neither interactive nor a login shell. If the
daemon is not found there, mpirun stops with "orted: command not found" and "ORTE was unable to reliably start one or
more daemons", although `which orted` finds it at your own prompt.

## What to type
`mpirun --prefix DIR`, with DIR the folder above its bin, if every node has it at the same place: the launch plan then
contains it. Or put the export into ~/.bashrc above the line that returns, as the fix of the finding does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import ListingFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.os_release import OsFacts
from ncheck.mpi import missing_daemons, prefix_for, starter_of


@cluster_check("NC209", Severity.ERROR, MpiDaemonFacts, ListingFacts, also=(OsFacts,), mended_by="--prefix")
def mpi_daemon_missing(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    found, places = cluster.facts(MpiDaemonFacts), cluster.facts(ListingFacts)
    start, prefix = starter_of(found), prefix_for(found)
    if start is None:
        yield NotApplicable("no node has an mpirun with a known daemon")
    elif all(place.startswith("SLURM") for listing in places.values() for place in listing.places):
        yield NotApplicable("in a Slurm job, mpirun starts its daemons with srun, not with ssh")
    else:
        helps = (f"mpirun --prefix {prefix} starts it; the launch plan does this",) if prefix else ()
        for lack in missing_daemons(found, start, cluster.facts(OsFacts)):
            message = f"mpirun of {start.node} ({start.described}) cannot start {start.daemon} over ssh: {lack.cause}"
            yield Problem(
                message, lack.fix, helps, (lack.node,), where=lack.where, look=lack.look,
                summary=f"mpirun cannot start {start.daemon}",
            )  # fmt: skip
