"""NCCL would also send data over an interface that leads nowhere

## What it finds
Nodes on which NCCL sends data over TCP and would also use an interface that no other node is behind: the end of a veth
pair with only a link-local address, a container bridge, a tunnel, the management controller's USB interface, or a
network in which nodes do not reach each other. A second network that connects the nodes is not reported, nor are
interfaces that NCCL does not use: docker0, lo, since 2.28.3 those without a link, or all that NCCL_SOCKET_IFNAME
excludes, in the environment or in nccl.conf.

If every node has an InfiniBand or RoCE port that NCCL can use, it sends no data over TCP, and this is for information:
such an interface does harm only if NCCL falls back to TCP, because of a setting, a container without /dev/infiniband or
a missing library. The first interface is what nccl-would-pick-virtual is about.

## Why it matters
NCCL's TCP transport does not use one interface but each one that it selects, and it tests none. The ranks connect at
the first, and the job looks well. Then some connections go to addresses that nobody can reach, and it hangs at its
first collective operation.

## What to type
`echo NCCL_SOCKET_IFNAME==eth0 >> ~/.nccl.conf` on every node, with the second "=" for an exact name: all jobs follow
it. For one job, `ncheck launch` and the command of `ncheck plan nodes.txt` set it. An exported variable reaches the
ranks of mpirun only with `-x NCCL_SOCKET_IFNAME`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import (
    HERE,
    PLAN,
    Absent,
    Cluster,
    Inconclusive,
    NotApplicable,
    Problem,
    Severity,
    Unread,
    cluster_check,
)
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.dead_ends import (
    DEAD_END_FACTS,
    TCP_FACTS,
    DeadEnd,
    described,
    in_each,
    over_tcp,
    selections,
    used_by_nccl,
)


@cluster_check(
    "NC337",
    Severity.ERROR,
    NicFacts,
    EnvironmentFacts,
    also=(*TCP_FACTS, *DEAD_END_FACTS, GpuFacts),
    mended_by="NCCL_SOCKET_IFNAME",
)
def nccl_also_uses_virtual(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    tcp = over_tcp(cluster)
    found: dict[str, tuple[DeadEnd, ...]] = {}
    used = used_by_nccl(cluster)
    for name, alternatives in used.items():
        library, dead = cluster[name].maybe(LoadedNcclFacts), in_each(alternatives)
        if isinstance(library, Absent) and isinstance(cluster[name].maybe(GpuFacts), Absent):
            yield NotApplicable("no GPU, and no NCCL", (name,))
        elif dead and tcp is not None:
            found[name] = dead
        elif dead:
            yield Inconclusive(
                f"NCCL would also use {described({name: dead})} over TCP, and {_unread(cluster)}", (name,)
            )
        elif tcp is not False and isinstance(library, Unread) and alternatives[0].dead:
            also = described({name: alternatives[0].dead})
            reason = f"NCCL before 2.28.3 would also use {also}, and the NCCL version is unknown: {library.reason}"
            yield Inconclusive(reason, (name,))
    evidence = selections({name: used[name][-1] for name in found})
    if found and tcp:
        names = {end.name: None for ends in found.values() for end in ends}
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Problem(
            f"NCCL would also send data over {described(found)}, and may hang",
            PLAN, evidence, tuple(found), where=HERE, summary=f"NCCL would also use {next(iter(names))}{more}",
        )  # fmt: skip
    elif found:
        yield Problem(
            f"if NCCL fell back to TCP, it would also use {described(found)}",
            "ip -br address", evidence, tuple(found), look=True, severity=Severity.INFO,
        )  # fmt: skip


def _unread(cluster: Cluster) -> str:
    """Return why it is not known whether all nodes have RDMA."""
    unread = {node.name: node.maybe(InfinibandFacts) for node in cluster}
    return next(
        f"the InfiniBand ports of {name} are unknown: {why.reason}"
        for name, why in unread.items()
        if isinstance(why, Unread)
    )
