"""The ssh program of this machine cannot log in, and the launch needs it

## What it finds
Nodes that ncheck reached by its own SSH client, but to which the `ssh` program of this machine cannot log in: the
private key has permissions that ssh refuses, `RemoteCommand` is set, the configuration leaves out all algorithms that
the nodes have. A command is run on one node for each ssh configuration that differs, not on every node.

## Why it matters
mpirun, horovodrun and deepspeed start the job by this program. With torchrun or srun, which do not, it is only
information: unused-ssh-fails.

## What to type
On this machine: `ssh -v NODE true` shows why, and `chmod 600 ~/.ssh/id_ed25519` gives a private key the permissions
that ssh accepts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import SshFromHereFacts
from ncheck.network.ssh_faults import from_here, uses_ssh


@cluster_check("NC134", Severity.ERROR, JobFacts, SshFromHereFacts, alone=True, blames_node=False)
def launcher_ssh_fails(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    if not uses_ssh(cluster):
        yield NotApplicable("the planned launcher uses no ssh")
        return
    yield from from_here(cluster)
    itself = [name for name, facts in cluster.facts(SshFromHereFacts).items() if facts.tried is None]
    if itself:
        yield NotApplicable("it is this machine: the launcher opens no ssh to it", tuple(itself))
