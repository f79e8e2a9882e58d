"""A network file system is not mounted on a node

## What it finds
Nodes that lack a network file system (NFS, Lustre, GPFS, BeeGFS, Ceph and others) which more than half of the nodes
have mounted at the same place. What an automounter mounts on demand is not reported, nor is the node that serves the
file system to the others: its name or one of its addresses is that of the server.

## Why it matters
The job finds no program, no data and no checkpoint on that node, or writes into an empty folder on its local disk: one
rank stops with "No such file or directory", and all others wait for it.

## What to type
`sudo mount -a` on the named node mounts what /etc/fstab lists; `findmnt PATH` on a healthy node shows where it comes
from. If the node needs it not: `ncheck --ignore shared-mount-missing nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.mounts import MountFacts
from ncheck.facts.nics import NicFacts


@cluster_check("NC613", Severity.WARNING, MountFacts, also=(NicFacts,))
def shared_mount_missing(cluster: Cluster) -> Iterator[Problem]:
    facts = cluster.facts(MountFacts)
    names = {node: {node, *_addresses(cluster.facts(NicFacts).get(node))} for node in facts}
    for path in dict.fromkeys(path for own in facts.values() for path in own.shared):
        having = [own.shared[path] for own in facts.values() if path in own.shared]
        servers = {mount.server for mount in having}
        lacking = tuple(
            node
            for node, own in facts.items()
            if path not in own.shared and not own.may_come(path) and not names[node] & servers
        )
        if lacking and 2 * len(having) > len(facts):
            message = f"{path} ({having[0].kind}) is not mounted; {len(having)} of {len(facts)} nodes have it"
            yield Problem(message, "sudo mount -a", nodes=lacking)


def _addresses(nics: NicFacts | None) -> Iterator[str]:
    for interface in nics.interfaces if nics else ():
        yield from (address.ip for address in interface.addresses if address.scope == "global")  # not 127.0.0.1 (EFS)
