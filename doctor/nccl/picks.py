"""Where NCCL's picks lie on several nodes, those of them that are real interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from doctor.model.check import NodeView
from doctor.model.facts import EnvironmentFacts, LoadedNcclFacts, NcclPickFacts, NicFacts
from doctor.nccl.choice import Choice, choices
from doctor.reasoning.subnets import Seat, Seats, common_names, seats, speed

MADE_OF = (LoadedNcclFacts, NcclPickFacts)  # beside the interfaces and the environment, which must be known


def picked_seats(nodes: Iterable[NodeView]) -> dict[str, Seat]:
    """Return where NCCL picks its address on each node, of the nodes where that is a real interface."""
    found = {}
    for node in nodes:
        nics, library, answer = node[NicFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts)
        if seat := real_pick(choices(nics, node[EnvironmentFacts], library, answer), nics):
            found[node.name] = seat
    return found


def real_pick(found: tuple[Choice, ...], nics: NicFacts) -> Seat | None:
    """Return the seat that NCCL picks; None where that leads nowhere or its release, not known, would decide."""
    picked = {choice.picked for choice in found}
    if len(picked) != 1 or found[0].picked is None or found[0].stray:
        return None
    nic, address = found[0].picked
    return next((seat for seat in seats(nics) if (seat.interface, seat.ip) == (nic, address.ip)), None)


def common_name(everywhere: Mapping[str, Seats], wanted: str | None) -> str:
    """Return an interface name that leads on all nodes into the wanted subnet, or else into the fastest; or ""."""
    named = {subnet: common_names(members) for subnet, members in everywhere.items()}
    led = [subnet for subnet, names in named.items() if names]
    if not led:
        return ""
    return named[wanted if wanted in led else max(led, key=lambda subnet: speed(everywhere[subnet]))][0]
