"""The acts of the probe: what is measured next is made of what was measured before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doctor.advice import PLAN_FACTS
from doctor.collect.probe import TURN
from doctor.gather import Act, NotAsked
from doctor.model.facts import GpuFacts, IdentityFacts, ListenFacts, LoadedNcclFacts, ToolFacts, TopologyFacts
from doctor.model.plan import LaunchPlan

if TYPE_CHECKING:
    from doctor.company import Company
    from doctor.objections import Objection

PROBE_FACTS = (*PLAN_FACTS, GpuFacts, TopologyFacts, LoadedNcclFacts, IdentityFacts, ListenFacts, ToolFacts)


@dataclass(frozen=True)
class Prospect:
    """What was judged before anything was measured: the plan, whom --drop-bad left out, and what is against it."""

    plan: LaunchPlan
    dropped: Mapping[str, str]
    objections: tuple[Objection, ...]


def spared_probe(company: Company) -> dict[str, str]:
    """Return the nodes on which nothing is to be measured."""
    none = company.settings.probe == "none"
    return dict.fromkeys((node.name for node in company.nodes), "not asked (--probe none)") if none else {}


def rounds(company: Company, prospect: Callable[[], Prospect]) -> Iterator[Act]:
    """Yield the acts of the probe, or the one that says why there is none."""
    found = prospect()
    why = found.objections[0].told if found.objections else "nothing is there to measure by"
    yield refused(company, why)


def refused(company: Company, why: str) -> Act:
    """Return the act that asks nothing and tells each node why."""
    names = [node.name for node in company.reached]
    return Act("measuring", frozenset(names), lambda _: {name: (NotAsked(TURN, why),) for name in names}, seconds=1.0)
