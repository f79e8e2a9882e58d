"""A node cannot ssh to another

## What it finds
Nodes whose own `ssh`, in batch mode, does not get into other nodes that can be logged in to from here. Up to 16 nodes
every node tries every other (or with `--mesh all`); beyond, the first node tries all, and the others those that Open
MPI's tree has them start.

## Why it matters
mpirun is started on one of the nodes and opens ssh from there; with more than 64 nodes the nodes open it to each other.
One login that asks, waits or is refused, and the launch hangs with no word of which.

## What to type
On the node: `ssh-keyscan -p 22 PEER >> ~/.ssh/known_hosts` for a host key that it does not know, and for a login that
is refused `ssh-copy-id -p 22 PEER`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts
from ncheck.hostlist import fold
from ncheck.model.evidence import Cause

NOBODYS_FAULT = frozenset({Cause.OVERLOADED, Cause.DEADLINE, Cause.TRANSPORT})


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
        if cause in NOBODYS_FAULT:
            yield Inconclusive(
                f"ssh to {fold(peer.target for _, peer in edges)} could not be tried ({cause.value})", nodes
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
