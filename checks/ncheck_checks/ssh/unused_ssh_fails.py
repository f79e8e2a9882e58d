"""An ssh login that the launch does not use fails

## What it finds
Logins from node to node, or from this machine by its `ssh` program, that fail although the planned launcher does not
need them: torchrun and srun use no ssh, and mpirun on this machine needs none between up to 64 nodes.

## Why it matters
It does no harm to this launch. It does if mpirun is started on another machine than this one, or if you expect to get
from node to node by hand.

## What to type
On the node that cannot log in: `ssh -v -o BatchMode=yes PEER true` shows why. `ncheck nodes.txt --mesh none` leaves out
all tests between nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ncheck import Absent, Cluster, NotApplicable, Problem, Severity, Unread, cluster_check
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSshFacts, SshFromHereFacts
from ncheck.network.ssh_faults import from_here, problem, ssh_faults, uses_ssh


@cluster_check("NC132", Severity.INFO, JobFacts, also=(PeerSshFacts, SshFromHereFacts), alone=True)
def unused_ssh_fails(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    found = [problem(fault) for fault in ssh_faults(cluster) if not fault.used]
    if not uses_ssh(cluster):
        found += [one for one in from_here(cluster) if isinstance(one, Problem)]
    for one in found:
        yield replace(one, message=f"{one.message}; the planned launch does not use it")
    for view in cluster:
        facts = view.maybe(PeerSshFacts)
        if isinstance(facts, (Absent, Unread)):
            yield NotApplicable(facts.reason, (view.name,))
