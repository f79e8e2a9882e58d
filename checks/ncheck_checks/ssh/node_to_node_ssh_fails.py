"""A node cannot ssh to another node, and the launch needs it

## What it finds
Logins from node to node that the planned launcher uses and that fail. mpirun, horovodrun and deepspeed log in from the
machine on which the launch line is typed; ncheck takes that for the machine on which it runs, or for the first node if
it cannot tell (`--rsh`, `--enter`). Beyond 64 nodes, the nodes that mpirun has started log in to the rest. torchrun,
srun and the like use no ssh. Logins that the launch does not use are only information: unused-ssh-fails.

Each login is tried with the node's own `ssh`, in batch mode, and works if a command runs on the other side. If the
configuration there accepts new host keys (`StrictHostKeyChecking no` or `accept-new`), so does the test; it never
writes to known_hosts. If all logins to one node fail, the finding is about that node: it was re-imaged, for example,
and the known_hosts files of the others have its old host key.

## Why it matters
If one login asks a question, hangs or is refused, the launch hangs without naming it.

## What to type
On the node that cannot log in: `ssh-keyscan -p 22 PEER >> ~/.ssh/known_hosts` for an unknown host key, and `ssh-copy-id
-p 22 PEER` for a refused login.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Cluster, Inconclusive, NotApplicable, Problem, Severity, Unread, cluster_check, fold
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSshFacts, SshFromHereFacts
from ncheck.network.ssh_faults import UNTESTED, problem, ssh_faults, used_edges


@cluster_check("NC131", Severity.ERROR, JobFacts, also=(PeerSshFacts, SshFromHereFacts), alone=True)
def node_to_node_ssh_fails(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from (problem(fault) for fault in ssh_faults(cluster) if fault.used)
    targets_of: dict[str, set[str]] = {}
    for source, target in used_edges(cluster):
        targets_of.setdefault(source, set()).add(target)
    reached = {view.name for view in cluster if not isinstance(view.maybe(PeerSshFacts), Unread)}
    for view in cluster:
        targets = targets_of.get(view.name, set())
        facts = view.maybe(PeerSshFacts)
        if not targets or isinstance(facts, Absent):
            why = (
                facts.reason
                if isinstance(facts, Absent)
                else "the planned launch opens no ssh from here to other nodes"
            )
            yield NotApplicable(why, (view.name,))
        elif isinstance(facts, Unread):
            yield Inconclusive(facts.reason, (view.name,))
        else:
            causes = {peer.target: peer.cause.value for peer in facts.peers if peer.cause and peer.cause in UNTESTED}
            causes |= dict.fromkeys(targets & reached - {peer.target for peer in facts.peers}, "no answer")
            if untested := [target for target in cluster.names if target in targets and target in causes]:
                why = ", ".join(dict.fromkeys(causes[target] for target in untested))
                yield Inconclusive(f"ssh to {fold(untested)} could not be tested ({why})", (view.name,))
