"""The InfiniBand library cannot be loaded

## What it finds
Nodes with an Active InfiniBand port where libibverbs.so.1 cannot be loaded in the job's environment (--setup, --enter,
--python). Active RoCE ports count where other nodes can load the library: many clusters have them and use TCP.

## Why it matters
NCCL opens libibverbs by name. Without it, it prints nothing but one INFO line ("Failed to open libibverbs.so") and uses
TCP on that node: the job is many times slower, or hangs because the other nodes use InfiniBand. Slim container images
often lack the library.

## What to type
`sudo apt-get install libibverbs1 ibverbs-providers` (Debian, Ubuntu) or `sudo dnf install libibverbs` on the named
nodes; for a container, in its image.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts

FIX = "sudo apt-get install libibverbs1 ibverbs-providers"


@cluster_check("NC408", Severity.ERROR, LibraryFacts, InfinibandFacts, alone=True)
def verbs_library_missing(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    troubles = {node: facts.verbs for node, facts in cluster.facts(LibraryFacts).items()}
    ports = cluster.facts(InfinibandFacts)
    layers = {node: {port.link_layer for port in ports[node].ports if port.state == "Active"} for node in troubles}
    roce_in_use = any(layers[node] and trouble == "" for node, trouble in troubles.items())
    for node, trouble in troubles.items():
        needed = roce_in_use if layers[node] == {"Ethernet"} else bool(layers[node])
        if isinstance(trouble, Absent) or not needed:
            yield NotApplicable("no Active port of a job's InfiniBand or RoCE network", (node,))
        elif trouble:
            yield Problem(f"NCCL cannot use InfiniBand: {trouble}", FIX, nodes=(node,))
