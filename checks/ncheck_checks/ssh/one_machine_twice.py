"""Two names in the list are one machine

## What it finds
Nodes that turn out to be the same machine: they have the same boot id, which the kernel draws anew at each start, and
the same network namespace, so containers with networks of their own on one host stay apart. Equal host keys or machine
ids alone prove nothing, since images are cloned, and are not looked at.

## Why it matters
Two ranks get one GPU, and NCCL ends with "Duplicate GPU detected"; or the job has half the GPUs that it believes in,
and every number that was measured over "the network" was measured over loopback.

## What to type
`ssh NODE hostname -f` on each shows what they are; `getent hosts NODE` shows where each name leads. Take one of them
out of the list, or mend the name that leads to the wrong machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.hostlist import fold


@cluster_check("NC102", Severity.ERROR, IdentityFacts, blocks_plan=True)
def one_machine_twice(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    machines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, who in cluster.facts(IdentityFacts).items():
        if who.machine:
            machines[who.machine].append(node)
        else:
            what = "network namespace" if who.boot_id else "boot id"
            yield Inconclusive(
                f"its {what} could not be read, so it cannot be told from the other nodes", nodes=(node,)
            )
    for (boot_id, namespace), nodes in machines.items():
        if len(nodes) > 1:
            yield Problem(
                message=f"{fold(nodes)} are one machine under {len(nodes)} names",
                fix=f"getent hosts {' '.join(map(quote, nodes))}",
                evidence=(f"boot id {boot_id} and network namespace {namespace} on each of them",),
                nodes=tuple(nodes),
            )
