"""The all-reduce gave wrong sums

## What it finds
Nodes on which elements of the result were not the sum that they should be, with the sizes at which it happened. What
nobody verified (sockets alone sum up nothing) is told as skipped.

## Why it matters
Nothing fails and nothing is slow: the model is trained with wrong gradients. A broken GPU, HCA or cable, memory
without ECC, or a bug of a library does this; a run of many hours is lost before anybody looks.

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER` on the nodes that are named, and the probe again without the suspects:
`ncheck probe nodes.txt --good-nodes good.txt` writes down the others, and `ncheck probe good.txt` measures these.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Moot, Problem, Severity, cluster_check
from doctor.model.facts import ProbeFacts
from doctor.probe.verdicts.gaps import unverified, verified
from doctor.probe.verdicts.wrong import wrong_sums


@cluster_check("NC702", Severity.ERROR, ProbeFacts, alone=True)
def all_reduce_wrong(cluster: ClusterView) -> Iterator[Problem | Moot]:
    probed = cluster.each(ProbeFacts)
    for found in wrong_sums(probed):
        yield Problem(found.told, found.fix, found.evidence, found.nodes)
    unseen = tuple(node for node, facts in probed.items() if unverified(facts) or not verified(facts))
    if unseen:
        yield Moot("not every result was verified there, or none", unseen)
