"""Two names in the list are the same machine

## What it finds
Nodes that are the same machine: they have the same boot id, which the kernel creates at each start, and the same
network namespace. Containers with separate networks on one host count as different. Equal host keys or machine ids
prove nothing, because images are cloned, and are not compared.

## Why it matters
Two ranks use one GPU, and NCCL stops with "Duplicate GPU detected"; or the job has half the GPUs that it seems to have,
and every measurement of "the network" measured loopback.

## What to type
`ssh NODE hostname -f` on each shows the real names; `getent hosts NODE` shows the address of each name. Remove one from
the list, or correct the name that resolves to the wrong machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Inconclusive, Problem, Severity, cluster_check, fold
from ncheck.facts.login import ONE_CONNECTION, IdentityFacts


@cluster_check("NC102", Severity.ERROR, IdentityFacts, blocks_plan=True)
def one_machine_twice(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    machines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, identity in cluster.facts(IdentityFacts).items():
        if identity.machine:
            machines[identity.machine].append(node)
        else:
            what = "network namespace" if identity.boot_id else "boot id"
            yield Inconclusive(
                f"its {what} could not be read, so it cannot be distinguished from the other nodes", nodes=(node,)
            )
    for (boot_id, namespace), nodes in machines.items():
        if len(nodes) > 1:
            yield Problem(
                message=f"{fold(nodes)} are the same machine under {len(nodes)} names",
                fix=f"getent hosts {' '.join(map(quote, nodes))}",
                evidence=(f"boot id {boot_id} and network namespace {namespace} on each",),
                nodes=tuple(nodes),
                where=HERE,
                look=True,
                summary="the same machine",
                follows=ONE_CONNECTION,
            )
