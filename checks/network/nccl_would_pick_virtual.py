"""NCCL would pick an interface that leads nowhere

## What it finds
Nodes on which NCCL ends at lo, a container engine's bridge, a tunnel, the management controller's USB card, an
interface without a link or an address that is only link-local, or at none at all. The NCCL that the job loads is asked
itself: ncclGetUniqueId names the address, and needs no GPU. Where there is none to ask, its rules tell, from names,
addresses, NCCL_* variables, nccl.conf and its release; where that is not known, a node is named only if old and new
rules agree.
`NCCL_SOCKET_IFNAME=^docker0` is a frequent cause: it takes lo off NCCL's list of names to avoid.

## Why it matters
The address of that interface is handed to all other ranks, and none can reach it: the job hangs before its first
step.

## What to type
`export NCCL_SOCKET_IFNAME==eth0`, the second "=" for an exact name, or that line in ~/.nccl.conf without "export".
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from doctor import Doubt, Moot, NodeView, Problem, Severity, Unread, node_check
from doctor.advice.nccl_choice import choices
from doctor.model.facts import EnvironmentFacts, ListingFacts, LoadedNcclFacts, NcclPickFacts, NicFacts
from doctor.subnets import seats


@node_check("NC304", Severity.ERROR, NicFacts, EnvironmentFacts, ListingFacts, also=(LoadedNcclFacts, NcclPickFacts))
def nccl_would_pick_virtual(node: NodeView) -> Iterator[Problem | Moot | Doubt]:
    nics, nccl, answer = node[NicFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts)
    found = choices(nics, node[EnvironmentFacts], nccl, answer)
    good = {(seat.interface.name, seat.ip): seat.interface.name for seat in seats(nics)}
    if node[ListingFacts].places == ("local",):
        yield Moot("one machine alone needs no network")
    elif found[0].stray:
        yield Doubt(f"NCCL picks {found[0].stray}, and no interface here was seen to have that address")
    elif not any(choice.where in good for choice in found):
        fixes = [f"export {quote(f'NCCL_SOCKET_IFNAME=={name}')}" for name in good.values()]
        yield Problem(f"NCCL would {found[-1].told}", (fixes or ["ip -br address"])[0], found[-1].answer)
    elif isinstance(nccl, Unread) and not all(choice.where in good for choice in found):
        yield Doubt(f"NCCL before 2.28.3 would pick {found[0].name}, and its release is not known: {nccl.reason}")
    elif isinstance(answer, Unread):
        yield Doubt(f"by its rules NCCL would pick {found[-1].name}, and it did not say so itself: {answer.reason}")
