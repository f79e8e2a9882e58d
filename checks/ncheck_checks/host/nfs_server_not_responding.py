"""An NFS server does not respond, by the kernel log

## What it finds
NFS servers of which the kernel logged "not responding, still trying", with no "OK" since. The mounts are the better
witness: if one of that server answers now, or none is there any more, nothing is reported. Only root can read the
kernel log on a default machine (--sudo).

## Why it matters
Processes that use the mount wait in the kernel (state D) until the server is back, however long that takes. A rank that
waits there holds up all others.

## What to type
`ping SERVER` and `showmount -e SERVER` on the node; compare with a node that reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.storage import MountState, StorageFacts, dead
from ncheck.facts.storage_log import StorageLogFacts


@node_check("NC649", Severity.WARNING, StorageLogFacts, also=(StorageFacts,))
def nfs_server_not_responding(node: NodeView) -> Iterator[Problem]:
    storage = node.maybe(StorageFacts)
    silent = node[StorageLogFacts].silent
    if isinstance(storage, StorageFacts):
        hanging = _servers(storage.mounts) - _servers(mount for mount in storage.mounts if not dead(mount))
        silent = tuple(server for server in silent if server.of in hanging)
    for server in silent:
        message = f"NFS server {server.of} does not respond, and the kernel has not said OK since"
        yield Problem(message, f"ping -c 3 {quote(server.of)}", (server.last,), look=True)


def _servers(mounts: Iterable[MountState]) -> set[str]:
    return {mount.on.source.partition(":/")[0] for mount in mounts}
