"""NCCL would pick an interface that leads nowhere

## What it finds
Nodes on which NCCL picks lo, a container bridge, a tunnel, the management controller's USB interface, an interface
without a link, an address that is link-local or that other nodes have too, or no interface at all.

ncheck asks the NCCL library that the job loads: ncclGetUniqueId returns the address and needs no GPU. Without a library
to ask, ncheck applies NCCL's rules to the names, addresses, NCCL_* variables, nccl.conf and the NCCL version. If the
version is unknown, a node is reported only if old and new rules agree.

`NCCL_SOCKET_IFNAME=^docker0` is a frequent cause: it removes lo from the names that NCCL excludes.

## Why it matters
All other ranks get the address of that interface, and none can reach it: the job hangs before its first step.
With NCCL_DEBUG=INFO its log shows the interface: "Bootstrap : Using br-5b1d7c3e9f20:172.18.0.1<0>".

## What to type
`ncheck plan nodes.txt` prints the command that starts the job with the right variable. By hand, with the second "=" for
an exact name: `mpirun -x NCCL_SOCKET_IFNAME==eth0` (an exported variable alone does not reach the ranks of mpirun), or
the line `NCCL_SOCKET_IFNAME==eth0` in ~/.nccl.conf. `ip -br address` shows which interface is in which network.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ncheck import HERE, PLAN, Cluster, Inconclusive, NodeView, Problem, Severity, Unread, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.nccl.choice import choices
from ncheck.network.link_faults import ADDRESS_FACTS, best_addresses
from ncheck.network.subnets import subnet_addresses


@cluster_check(
    "NC304",
    Severity.ERROR,
    NicFacts,
    EnvironmentFacts,
    also=(LoadedNcclFacts, NcclPickFacts, *ADDRESS_FACTS),
    mended_by="NCCL_SOCKET_IFNAME",
)
def nccl_would_pick_virtual(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    best = best_addresses(cluster)
    for node in cluster:
        yield from _judged(node, best[node.name])


def _judged(node: NodeView, best: tuple[SubnetAddress, ...]) -> Iterator[Problem | Inconclusive]:
    nics, nccl, answer, name = node[NicFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts), (node.name,)
    own = tuple(subnet_addresses(nics))
    found = choices(nics, node[EnvironmentFacts], nccl, answer)
    good = {(address.interface.name, address.ip) for address in best or own}
    if found[0].stray:
        yield Inconclusive(f"NCCL picks {found[0].stray}, but no interface of this node has that address", name)
    elif not any(choice.where in good for choice in found):
        fix = partial(Problem, fix=PLAN, where=HERE) if best else partial(Problem, fix="ip -br address", look=True)
        ip = found[-1].where[1]
        shared = f"; other nodes have this address too: {ip}" if ip in {address.ip for address in own} else ""
        yield fix(
            f"NCCL would {found[-1].described}{shared}", evidence=found[-1].answer, nodes=name,
            summary=f"NCCL would pick {found[-1].name or 'no interface'}",
        )  # fmt: skip
    elif isinstance(nccl, Unread) and not all(choice.where in good for choice in found):
        reason = f"NCCL before 2.28.3 would pick {found[0].name}, and the NCCL version is unknown: {nccl.reason}"
        yield Inconclusive(reason, name)
    elif isinstance(answer, Unread):
        reason = f"by its rules NCCL would pick {found[-1].name}, but NCCL did not confirm it: {answer.reason}"
        yield Inconclusive(reason, name)
