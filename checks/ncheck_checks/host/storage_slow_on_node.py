"""A node reads the data far slower than its peers

## What it finds
With --storage-probe: nodes that read --data (or the shared folder in which ncheck was started) at less than a third of
the median of the other nodes, both while they were quiet and while all read at once: a large file, small files, or the
names in its folders. A third is more than what turns and other users make of equal nodes. A large file is compared only
where it was read past the page cache. At least three nodes are needed.

## Why it matters
All ranks wait for the slowest one at each step: its data loader holds up the whole job ("the GPUs are idle every few
steps"), and the start, which imports thousands of small files, takes minutes on that node alone.

## What to type
`nfsstat -m` or `findmnt -T PATH` on the named node and on another one show options that differ. Then look at the
node's link to the server: `ethtool DEVICE | grep Speed`, `ip -s link`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from statistics import median

from ncheck import Cluster, Inconclusive, Problem, Severity, Unread, cluster_check
from ncheck.facts.storage_probe import DataRates, StorageProbeFacts, rate, rates_by_path, shown

SLOW = 1 / 3
FEWEST_PEERS = 2  # of two nodes that differ, either may be the odd one


@cluster_check("NC651", Severity.WARNING, StorageProbeFacts)
def storage_slow_on_node(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    for path, nodes in rates_by_path(cluster.facts(StorageProbeFacts)).items():
        for node, one in nodes.items():
            if why := next((rates.reason for rates in (one.alone, one.together) if isinstance(rates, Unread)), ""):
                yield Inconclusive(f"{path}: {why}", (node,))
        for kind in ("large", "small", "entries"):
            alone, together = (_of_kind(nodes, kind, when) for when in ("alone", "together"))
            for node in alone:
                quiet, busy = _against_peers(alone, node), _against_peers(together, node)
                if quiet and busy and all(own < SLOW * usual for own, usual in (quiet, busy)):
                    message = (
                        f"{path}: {shown(kind, quiet[0])} at its turn and {shown(kind, busy[0])} with all nodes; "
                        f"the median of the others is {shown(kind, quiet[1])} and {shown(kind, busy[1])}"
                    )
                    yield Problem(message, f"findmnt -T {quote(path)}", nodes=(node,), look=True)


def _of_kind(nodes: Mapping[str, DataRates], kind: str, when: str) -> dict[str, float]:
    found = {node: rate(one, kind, when) for node, one in nodes.items()}
    return {node: own for node, own in found.items() if own is not None}


def _against_peers(rates: Mapping[str, float], node: str) -> tuple[float, float] | None:
    """Return the rate of a node and the median of the others; None where too few were measured."""
    others = [own for other, own in rates.items() if other != node]
    return (rates[node], median(others)) if node in rates and len(others) >= FEWEST_PEERS else None
