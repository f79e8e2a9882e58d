"""The InfiniBand library cannot be loaded

## What it finds
Nodes with an Active InfiniBand port where libibverbs.so.1 cannot be loaded in the job's environment (--setup, --enter,
--python), or loads and lists no HCA although the devices open: then the library for the card itself is missing, such as
libmlx5, or a second libibverbs (conda's) looks for it in another folder. Active RoCE ports count where jobs on other
nodes can use them: many clusters have them and use TCP.

## Why it matters
NCCL opens libibverbs by name. Without it, it prints nothing but one INFO line ("Failed to open libibverbs.so", or
"NET/IB : No device found.") and uses TCP on that node: the job is many times slower, or hangs because the other nodes
use InfiniBand. Slim container images often lack the library.

## What to type
`sudo apt-get install libibverbs1 ibverbs-providers` (Debian, Ubuntu) or `sudo dnf install libibverbs` on the named
nodes; for a container, in its image.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.nccl.hca_ports import hcas_in_use

FIX = "sudo apt-get install libibverbs1 ibverbs-providers"


@cluster_check("NC408", Severity.ERROR, LibraryFacts, InfinibandFacts, alone=True)
def verbs_library_missing(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    troubles = {node: _trouble(facts) for node, facts in cluster.facts(LibraryFacts).items()}
    in_use = hcas_in_use(cluster.facts(InfinibandFacts), cluster.facts(LibraryFacts))
    for node, trouble in troubles.items():
        if isinstance(trouble, Absent) or not in_use[node]:
            yield NotApplicable("no Active port of a job's InfiniBand or RoCE network", (node,))
        elif trouble:
            yield Problem(f"NCCL cannot use InfiniBand: {trouble}", FIX, nodes=(node,))


def _trouble(facts: LibraryFacts) -> str | Absent:
    """Return why libibverbs is of no use: it does not load, or has no driver of its own for devices that do open."""
    opens = not isinstance(facts.uverbs, Absent) and "" in facts.uverbs.values()
    if facts.verbs == "" and facts.listed == () and opens:
        return "libibverbs loads, and lists no HCA: the library for this card (such as libmlx5) is missing"
    return facts.verbs
