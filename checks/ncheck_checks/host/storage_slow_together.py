"""The data is read far slower when all nodes read at once

## What it finds
With --storage-probe: --data (or the shared folder in which ncheck was started) of which a node reads a large file at
less than half its speed when all nodes read at once. The figures are medians over the nodes.

## Why it matters
This is what the server and its network can give, and no fault of a node: a job on all nodes can expect this rate. If
its data loaders need more, the GPUs wait for data.

## What to type
Fewer, larger files, a copy on the nodes' own disks, or a faster file system help; `ncheck probe` shows whether the
network between the nodes is slow as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from statistics import median

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.storage_probe import StorageProbeFacts, rate, rates_by_path, shown

SLOW = 1 / 2


@cluster_check("NC652", Severity.INFO, StorageProbeFacts)
def storage_slow_together(cluster: Cluster) -> Iterator[Problem]:
    for path, nodes in rates_by_path(cluster.facts(StorageProbeFacts)).items():
        rates = {node: (rate(one, "large", "alone"), rate(one, "large", "together")) for node, one in nodes.items()}
        both = {node: (alone, together) for node, (alone, together) in rates.items() if alone and together}
        if len(both) > 1:
            alone, together = (median(rates) for rates in zip(*both.values(), strict=True))
            if together < SLOW * alone:
                message = (
                    f"{path}: {len(both)} nodes at once read {shown('large', together)} each, "
                    f"and {shown('large', alone)} while the others are quiet"
                )
                yield Problem(message, f"findmnt -T {quote(path)}", nodes=tuple(both), look=True)
