"""Each node has its own copy of the data

## What it finds
--data is on a disk of the node itself, on all nodes that have it. ncheck does not compare what is in it.

## Why it matters
That is fast and often intended. But a copy that is old or incomplete on one node makes its rank stop with "No such file
or directory", or train on other data without any message.

## What to type
`find PATH -type f | wc -l` and `du -s --apparent-size PATH` on all nodes show copies that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.storage import DATA, StorageFacts, shared_folders


@cluster_check("NC645", Severity.INFO, StorageFacts)
def data_on_local_disks(cluster: Cluster) -> Iterator[Problem]:
    for (path, named_by), folders in shared_folders(cluster.facts(StorageFacts)).items():
        on = {node: one.on for node, one in folders.items() if one.seen and one.exists and one.on}
        if named_by == DATA and len(on) > 1 and not any(mount.network for mount in on.values()):
            message = f"each node has its own {path}, on a local disk; its content is not compared"
            yield Problem(message, f"du -s --apparent-size {quote(path)}", nodes=tuple(on), look=True)
