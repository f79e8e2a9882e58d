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
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts
from ncheck.network.logins import Cause

NOT_THE_NODES = frozenset({Cause.OVERLOADED, Cause.DEADLINE, Cause.TRANSPORT})


MOST_SHOWN = 8


_FIXES = {
    Cause.HOST_KEY_UNKNOWN: "ssh {node} 'ssh-keyscan {peer} >> ~/.ssh/known_hosts'",
    Cause.HOST_KEY_CHANGED: "ssh {node} ssh-keygen -R {peer}",
    Cause.AUTH_REFUSED: "ssh -t {node} ssh-copy-id {peer}",
    Cause.NAME_UNKNOWN: "ssh {node} getent hosts {peer}",
}


@cluster_check("NC131", Severity.ERROR, PeerSshFacts, alone=True)
def node_to_node_ssh_fails(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    failed: dict[Cause, list[tuple[str, PeerSsh]]] = defaultdict(list)
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
            yield _problem(cause, edges, nodes)


def _problem(cause: Cause, edges: list[tuple[str, PeerSsh]], nodes: tuple[str, ...]) -> Problem:
    node, first = edges[0]
    shown = tuple(f"{node} to {peer.target}: {peer.detail}" for node, peer in edges[:MOST_SHOWN])
    more = (f"and {len(edges) - MOST_SHOWN} more",) if len(edges) > MOST_SHOWN else ()
    fix = _FIXES.get(cause, "ssh {node} ssh -v -o BatchMode=yes {peer} true")
    return Problem(
        message=f"ssh from {fold(nodes)} to {fold(peer.target for _, peer in edges)} fails: {cause.value}",
        fix=fix.format(node=quote(node), peer=quote(first.target)),
        evidence=shown + more,
        nodes=nodes,
    )
