"""The MPI daemon on a node is of another release than mpirun

## What it finds
Nodes where the daemon that mpirun starts over ssh (orted, prted, Hydra's proxies) belongs to another release (the first
two numbers) or another MPI than the mpirun of the first node. This happens if a machine has two installations and the
PATH of a non-interactive login lists them in another order than yours.

## Why it matters
mpirun and its daemons use a private protocol that changes with each release. A daemon of another release exits at once
("ORTE was unable to reliably start one or more daemons") or never answers, and mpirun waits forever.

## What to type
`ssh NODE 'which -a orted prted mpirun'` shows which comes first there. `mpirun --prefix DIR`, with the folder above
mpirun's bin, starts mpirun's own daemon on every node that has it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.mpi import other_releases, prefix_for, starter_of, unknown_releases


@cluster_check("NC210", Severity.ERROR, MpiDaemonFacts, mended_by="--prefix")
def mpi_daemon_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    found = cluster.facts(MpiDaemonFacts)
    start, prefix = starter_of(found), prefix_for(found)
    if start is None:
        yield NotApplicable("no node has an mpirun with a known daemon")
        return
    if silent := unknown_releases(found, start):
        yield Inconclusive(f"the release of {start.daemon} is unknown: no file beside it names it", silent)
    if missing := tuple(node for node, facts in found.items() if start.started(facts) is None):
        yield NotApplicable(f"{start.daemon} is missing: see NC209", missing)
    helps = (f"mpirun --prefix {prefix} starts mpirun's own daemon; the launch plan does this",) if prefix else ()
    for node, daemon in other_releases(found, start).items():
        theirs = f"{daemon.path} is {daemon.implementation} {daemon.version}"
        message = f"mpirun of {start.node} is {start.described}, but {theirs}"
        yield Problem(
            message, f"which -a {start.daemon} mpirun", helps, (node,), look=True, summary=f"another {start.daemon}"
        )
