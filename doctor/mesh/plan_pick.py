"""The plan is tried on NCCL itself: each node's NCCL is asked what it picks under the plan's variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from doctor.collect.nccl_pick import PLANNED
from doctor.model.act import NotAsked, Questions
from doctor.model.facts import NcclPickFacts, NicFacts
from doctor.nccl.choice import IFNAME

if TYPE_CHECKING:
    from doctor.advice.advice import Advice
    from doctor.advice.networks import Network
    from doctor.company import Company
    from doctor.model.evidence import Answer, JsonValue

_LONGEST = 10.0  # seconds for NCCL to be opened and asked once more


def spared_pick(company: Company) -> dict[str, str]:
    """Return the nodes on which no plan is to be tried: one node alone needs none."""
    alone = len(company.nodes) == 1
    return {node.name: "one node alone needs no network between nodes" for node in company.nodes if alone}


def ask_pick(company: Company, left: float) -> Questions:
    """Make the plan of what is known by now, and ask every node on which NCCL could be asked before."""
    from doctor.advice.interface import advise  # noqa: PLC0415  the makers of a plan are dear
    from doctor.advice.sight import sight_of  # noqa: PLC0415

    advice = advise(sight_of(company.nodes, company.known))
    asked_before, nics = company.each(NcclPickFacts), company.each(NicFacts)
    why = NotAsked(PLANNED, "NCCL could not be asked here what it picks")
    return {
        node.name: (_question(advice, node.name, nics.get(node.name), left) if node.name in asked_before else why,)
        for node in company.reached
    }


def _question(advice: Advice, node: str, nics: NicFacts | None, left: float) -> Answer | NotAsked:
    settings = {**advice.env, **advice.per_node.get(node, {})}
    set_to = {name: setting.value for name, setting in settings.items() if name.startswith("NCCL_")}
    variables: dict[str, JsonValue] = {name: value for name, value in set_to.items() if value is not None}
    if not variables or advice.network is None:
        return NotAsked(PLANNED, "the plan sets nothing that NCCL reads")
    meant: list[JsonValue] = [*_meant(advice.network, nics, node, set_to.get(IFNAME) or "")]
    asked: JsonValue = {"variables": variables, "interfaces": meant}
    return replace(PLANNED, arguments=asked, timeout=max(1.0, min(_LONGEST, left - 1.0)))


def _meant(network: Network, nics: NicFacts | None, node: str, value: str) -> Iterator[str]:
    """Yield the interfaces of this node that lead into the plan's network, those of them that its value names.

    The network knows one of the nodes that are one machine.
    """
    from doctor.reasoning.subnets import seats  # noqa: PLC0415

    named = value.removeprefix("=").split(",") if value.startswith("=") else None
    found = network.members.get(node) or (seats(nics) if nics else ())
    names = (seat.interface.name for seat in found if network.subnet in ("", seat.subnet))
    yield from (name for name in dict.fromkeys(names) if named is None or name in named)
