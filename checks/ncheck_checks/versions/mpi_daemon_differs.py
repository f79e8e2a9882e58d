"""MPI's daemon on a node is of another release than mpirun

## What it finds
Nodes where the daemon that mpirun's ssh starts (orted, prted, Hydra's proxies) belongs to another release, or another
MPI, than the mpirun of the first node: the first two numbers count. That happens where two installations stand on one
machine, and the PATH of a plain ssh login names them in another order than your own.

## Why it matters
mpirun and its daemons speak a private protocol that changes with each release. A daemon of another one ends at once
("ORTE was unable to reliably start one or more daemons") or never answers, and mpirun waits for ever.

## What to type
`ssh NODE 'which -a orted prted mpirun'` shows what comes first there. `mpirun --prefix DIR`, with the folder above
mpirun's own bin, has its own daemon started on every node that has it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.mpi import other_releases, prefix_for, starter_of, unknown_releases


@cluster_check("NC210", Severity.ERROR, MpiDaemonFacts, mended_by="--prefix")
def mpi_daemon_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    found = cluster.facts(MpiDaemonFacts)
    start, prefix = starter_of(found), prefix_for(found)
    if start is None:
        yield NotApplicable("no node has an mpirun whose daemon is known")
        return
    if silent := unknown_releases(found, start):
        yield Inconclusive(f"nothing beside {start.daemon} says of which release it is", silent)
    if missing := tuple(node for node, facts in found.items() if start.started(facts) is None):
        yield NotApplicable(f"there is no {start.daemon}: see NC209", missing)
    helps = (f"mpirun --prefix {prefix} starts mpirun's own, and the plan's line says so",) if prefix else ()
    for node, daemon in other_releases(found, start).items():
        release = f"{daemon.implementation} {daemon.version}"
        what = f"mpirun of {start.node} is {start.described}, and {daemon.path} is {release}"
        yield Problem(what, f"ssh {quote(node)} which -a {start.daemon} mpirun", helps, (node,))
