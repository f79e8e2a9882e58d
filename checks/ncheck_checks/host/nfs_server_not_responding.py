"""An NFS server does not respond, by the kernel log

## What it finds
NFS servers of which the kernel logged "not responding, still trying", with no "OK" since. Mounts of that server that
answer now are the better witness: then nothing is reported. Only root can read the kernel log on a default machine
(--sudo).

## Why it matters
Processes that use the mount wait in the kernel (state D) until the server is back, however long that takes. A rank that
waits there holds up all others.

## What to type
`ping SERVER` and `showmount -e SERVER` on the node; compare with a node that reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.storage import StorageFacts, dead
from ncheck.facts.storage_log import StorageLogFacts


@node_check("NC649", Severity.WARNING, StorageLogFacts, also=(StorageFacts,))
def nfs_server_not_responding(node: NodeView) -> Iterator[Problem]:
    storage = node.maybe(StorageFacts)
    mounts = storage.mounts if isinstance(storage, StorageFacts) else ()
    answering = {mount.on.source.partition(":/")[0] for mount in mounts if not dead(mount)}
    for server in node[StorageLogFacts].silent:
        if server.of not in answering:
            message = f"NFS server {server.of} does not respond, and the kernel has not said OK since"
            yield Problem(message, f"ping -c 3 {quote(server.of)}", (server.last,), look=True)
