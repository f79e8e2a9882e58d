"""The plan is tried on NCCL itself: each node's NCCL is asked what it picks under the plan's variables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from doctor.collect.nccl_pick import PLANNED
from doctor.gather import NotAsked, Questions
from doctor.model.facts import NcclPickFacts, NicFacts

if TYPE_CHECKING:
    from doctor.advice.interface import Advice
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
    asked_before = company.each(NcclPickFacts)
    why = "NCCL could not be asked here what it picks"
    return {
        node.name: (
            _question(advice, company, node.name, left) if node.name in asked_before else NotAsked(PLANNED, why),
        )
        for node in company.reached
    }


def _question(advice: Advice, company: Company, node: str, left: float) -> Answer | NotAsked:
    settings = {**advice.env, **advice.per_node.get(node, {})}
    variables = {
        name: setting.value
        for name, setting in settings.items()
        if setting.value is not None and name.startswith("NCCL_")
    }
    if not variables or advice.network is None:
        return NotAsked(PLANNED, "the plan sets nothing that NCCL reads")
    asked: JsonValue = {"variables": {**variables}, "interfaces": list(_meant(advice, company, node))}
    return replace(PLANNED, arguments=asked, timeout=max(1.0, min(_LONGEST, left - 1.0)))


def _meant(advice: Advice, company: Company, node: str) -> tuple[str, ...]:
    """Return the interfaces of this node that lead into the plan's network."""
    from doctor.subnets import seats  # noqa: PLC0415

    nics = company.each(NicFacts).get(node)
    subnet = advice.network.subnet if advice.network else ""
    found = seats(nics) if nics else ()
    return tuple(dict.fromkeys(seat.interface.name for seat in found if subnet in ("", seat.subnet)))
