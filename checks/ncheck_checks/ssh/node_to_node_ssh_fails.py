"""A node cannot ssh to another node

## What it finds
Nodes whose own `ssh`, in batch mode, cannot log in to other nodes that this machine can log in to. With up to 16 nodes
(or `--mesh all`) every node tries every other node. With more, the first node tries all, and the others try those that
Open MPI's launch tree makes them start.

## Why it matters
mpirun runs on one of the nodes and uses ssh from there; with more than 64 nodes, the nodes also use ssh among each
other. If one login asks a question, hangs or is refused, the launch hangs without naming it.

## What to type
On the node: `ssh-keyscan -p 22 PEER >> ~/.ssh/known_hosts` for an unknown host key, and `ssh-copy-id -p 22 PEER` for a
refused login.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, fold
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts
from ncheck.network.logins import Cause

NOT_THE_NODES = frozenset({Cause.OVERLOADED, Cause.DEADLINE, Cause.TRANSPORT})


MOST_SHOWN = 8


_FIXES = {
    Cause.HOST_KEY_UNKNOWN: "ssh-keyscan {port}{peer} >> ~/.ssh/known_hosts",
    Cause.HOST_KEY_CHANGED: "ssh-keygen -R {known_as}",
    Cause.AUTH_REFUSED: "ssh-copy-id {port}{login}",
    Cause.NAME_UNKNOWN: "getent hosts {peer}",
}


@cluster_check("NC131", Severity.ERROR, PeerSshFacts, also=(JobFacts,), alone=True)
def node_to_node_ssh_fails(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    failed: dict[Cause, list[tuple[str, PeerSsh]]] = defaultdict(list)
    job = next(iter(cluster.facts(JobFacts).values()), JobFacts())
    for node, facts in cluster.facts(PeerSshFacts).items():
        for peer in facts.peers:
            if peer.cause:
                failed[peer.cause].append((node, peer))
    for cause, edges in failed.items():
        nodes = tuple(dict.fromkeys(node for node, _ in edges))
        if cause in NOT_THE_NODES:
            yield Inconclusive(
                f"ssh to {fold(peer.target for _, peer in edges)} could not be tested ({cause.value})", nodes
            )
        else:
            yield _problem(cause, edges, nodes, job)


def _names(peer: str, job: JobFacts) -> dict[str, str]:
    """Return how a node names its peer, quoted for a shell: with the port and the user of this run."""
    return {
        "peer": quote(peer),
        "port": f"-p {job.port} " if job.port else "",
        "login": quote(f"{job.user}@{peer}" if job.user else peer),
        "known_as": quote(f"[{peer}]:{job.port}" if job.port not in (None, 22) else peer),
    }


def _problem(cause: Cause, edges: list[tuple[str, PeerSsh]], nodes: tuple[str, ...], job: JobFacts) -> Problem:
    node, first = edges[0]
    shown = tuple(f"{node} to {peer.target}: {peer.detail}" for node, peer in edges[:MOST_SHOWN])
    more = (f"and {len(edges) - MOST_SHOWN} more",) if len(edges) > MOST_SHOWN else ()
    shows = "ssh -v -o BatchMode=yes {port}{login} true"
    return Problem(
        message=f"ssh from {fold(nodes)} to {fold(peer.target for _, peer in edges)} fails: {cause.value}",
        fix=_FIXES.get(cause, shows).format_map(_names(first.target, job)),
        evidence=shown + more,
        nodes=nodes,
        where=node,
        look=cause not in _FIXES or cause is Cause.NAME_UNKNOWN,
        summary=f"ssh to other nodes fails ({cause.value})",
    )
