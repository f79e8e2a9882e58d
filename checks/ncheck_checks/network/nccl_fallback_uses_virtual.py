"""NCCL would use an interface that leads nowhere if it fell back to TCP

## What it finds
The interfaces of nccl-also-uses-virtual on clusters where every node has an InfiniBand or RoCE port that NCCL can use.

## Why it matters
It does no harm as long as NCCL uses these ports: TCP then carries only the first connections, over the first interface.
If NCCL falls back to TCP, because of a setting, a container without /dev/infiniband or a missing library, it sends data
over each of these interfaces, and hangs instead of being slow.

## What to type
`ip -br address` shows the interfaces. `export NCCL_SOCKET_IFNAME==eth0`, with the second "=" for an exact name, keeps
NCCL off them whatever it uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.dead_ends import DEAD_END_FACTS, TCP_FACTS, described, in_each, over_tcp, selections, used_by_nccl


@cluster_check("NC338", Severity.INFO, NicFacts, EnvironmentFacts, also=(*TCP_FACTS, *DEAD_END_FACTS))
def nccl_fallback_uses_virtual(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    if over_tcp(cluster) is not False:
        yield NotApplicable("not every node is known to have an InfiniBand or RoCE port that NCCL can use")
        return
    used = used_by_nccl(cluster)
    dead = {name: in_each(alternatives) for name, alternatives in used.items()}
    if found := {name: ends for name, ends in dead.items() if ends}:
        yield Problem(
            f"if NCCL fell back to TCP, it would also use {described(found)}",
            "ip -br address",
            selections({name: used[name][-1] for name in found}),
            tuple(found),
            look=True,
        )
