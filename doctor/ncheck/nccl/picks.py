"""Where NCCL's picks lie on several nodes, those of them that are real interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import NodeView
from ncheck.nccl.choice import Choice, choices
from ncheck.network.subnets import SubnetAddress, SubnetMembers, best_first, common_names, subnet_addresses
from ncheck.text import export_line

MADE_OF = (LoadedNcclFacts, NcclPickFacts)  # beside the interfaces and the environment


def picked_addresses(nodes: Iterable[NodeView]) -> dict[str, SubnetAddress]:
    """Return where NCCL picks its address on each node, of those where that is known and a real interface."""
    found = {}
    for node in nodes:
        environment = node.maybe(EnvironmentFacts)
        if isinstance(environment, EnvironmentFacts):
            nics, library, answer = node[NicFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts)
            if seat := _real_pick(choices(nics, environment, library, answer), nics):
                found[node.name] = seat
    return found


def _real_pick(found: tuple[Choice, ...], nics: NicFacts) -> SubnetAddress | None:
    """Return the address that NCCL picks; None where that leads nowhere or its release, not known, would decide."""
    picked = {choice.picked for choice in found}
    if len(picked) != 1 or found[0].picked is None or found[0].stray:
        return None
    nic, address = found[0].picked
    return next((seat for seat in subnet_addresses(nics) if (seat.interface, seat.ip) == (nic, address.ip)), None)


def line_into(everywhere: Mapping[str, SubnetMembers], wanted: str) -> str:
    """Return a line that leads NCCL into the wanted subnet on all nodes, or else into the fastest that one name does.

    `everywhere` are the subnets that all nodes share.
    """
    named = {subnet: names[0] for subnet, held in best_first(everywhere).items() if (names := common_names(held))}
    if not named:
        return "ncheck plan nodes.txt --for nccl.conf"
    if any(_behind_ipv4(seat) for held in everywhere.get(wanted, {}).values() for seat in held):
        return "ncheck plan nodes.txt --for env"
    return export_line(IFNAME, f"={named.get(wanted) or next(iter(named.values()))}")


def _behind_ipv4(seat: SubnetAddress) -> bool:
    """Tell whether NCCL takes another address of that interface: the name alone does not lead it there."""
    return ":" in seat.ip and any(":" not in address.ip for address in seat.interface.addresses)
