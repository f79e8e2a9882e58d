"""To which addresses each node is asked for a route: where NCCL picks, elsewhere, what lies in no subnet of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from doctor.collect.routes import ROUTES
from doctor.model.act import NotAsked, Questions
from doctor.model.check import NodeView
from doctor.model.evidence import JsonValue
from doctor.model.fact import Absent
from doctor.model.facts import EnvironmentFacts, NicFacts
from doctor.nccl.picks import MADE_OF, picked_seats
from doctor.reasoning.subnets import seats

if TYPE_CHECKING:
    from doctor.company import Company

MADE_FROM = (NicFacts, EnvironmentFacts, *MADE_OF)
MOST = 4096  # addresses that one node is asked about
_WHY_NOT = "wherever NCCL picks on the other nodes lies in a subnet of its own"


def ask_routes(company: Company, left: float) -> Questions:
    """Ask each node whose interfaces are known."""
    nics = company.each(NicFacts)
    views = (NodeView(name, {fact: company.known[name].get(fact, Absent("")) for fact in MADE_FROM}) for name in nics)
    picks = picked_seats(views)
    questions: Questions = {}
    for name, held in nics.items():
        own = {seat.subnet for seat in seats(held)}
        far = (seat.ip for other, seat in picks.items() if other != name and seat.subnet not in own)
        addresses: list[JsonValue] = [*islice(dict.fromkeys(far), MOST)]
        asked = replace(ROUTES, arguments={"addresses": addresses}, timeout=max(1.0, min(10.0, left - 1.0)))
        questions[name] = (asked if addresses else NotAsked(ROUTES, _WHY_NOT),)
    return questions
