"""What broken links mean for a job: which of them it cannot do without, and the words and lines for each.

A job needs one subnet in which all nodes reach each other. What is broken beside such a one costs nothing, unless NCCL
would pick it as things are; where there is none, all that is broken in a subnet that all share stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from doctor.links.faults import Fault, Trouble, carries, doubt, faults, subnets_tried
from doctor.links.fixes import cure, mtus_told
from doctor.links.matrix import Known, joined, shown
from doctor.model.check import ClusterView, Doubt, FactType, Problem
from doctor.model.facts import (
    EnvironmentFacts,
    LinkFacts,
    LoginFacts,
    NicFacts,
)
from doctor.nccl.picks import MADE_OF, line_into, picked_seats
from doctor.reasoning.subnets import Seat, Seats, best_first, shared

READS: tuple[FactType, ...] = (LinkFacts, NicFacts)
ALSO: tuple[FactType, ...] = (LoginFacts, EnvironmentFacts, *MADE_OF)


class Weight(Enum):
    """What a fault means for a job."""

    NEEDED = "no other subnet is known to carry all nodes"
    PICKED = "NCCL would pick this subnet, and another one carries all nodes"
    SPARE = "no job needs it"


@dataclass(frozen=True)
class Weighed:
    """A fault with its weight; `instead` is the subnet that carries all nodes, "" where there is none."""

    fault: Fault
    weight: Weight
    instead: str = ""

    @property
    def meaning(self) -> str:
        """Say what it means for the job."""
        if self.weight is Weight.PICKED:
            return f"NCCL picks this subnet as things are, and would hang; {self.instead} carries all nodes"
        if self.weight is Weight.SPARE:
            return f"{self.instead} carries all nodes: keep the job there" if self.instead else "no job needs it"
        when = "at its first large message" if self.fault.trouble is Trouble.LARGE_LOST else "at its start"
        return f"no other subnet is known to carry all nodes, so a job over them hangs {when}"


def problems(cluster: ClusterView, weight: Weight, trouble: Trouble | None = None) -> Iterator[Problem | Doubt]:
    """Yield what is broken of this weight (and this trouble), one problem a sentence, and what is not known."""
    scales = _Scales(cluster)
    for one in scales.weighed():
        if one.weight is weight and trouble in (None, one.fault.trouble):
            yield _problem(cluster, one, scales.everywhere)
    for subnet in subnets_tried(scales.known):
        if left_out := doubt(scales.known, subnet, scales.known):
            yield left_out


@dataclass(frozen=True)
class _Scales:
    cluster: ClusterView

    @cached_property
    def known(self) -> Known:
        return self.cluster.each(LinkFacts)

    @cached_property
    def everywhere(self) -> dict[str, Seats]:
        return best_first(shared(self.cluster.each(NicFacts)))

    def weighed(self) -> Iterator[Weighed]:
        found = [fault for subnet in subnets_tried(self.known) for fault in faults(self.known, subnet, self.known)]
        whole = [subnet for subnet in self.everywhere if found and carries(self.known, subnet, self.known).whole]
        for fault in found:
            yield Weighed(fault, self._weight(fault, carried=bool(whole)), whole[0] if whole else "")

    def _weight(self, fault: Fault, *, carried: bool) -> Weight:
        if carried:
            return Weight.PICKED if self._picked(fault) else Weight.SPARE
        if self.everywhere:
            return Weight.NEEDED if fault.subnet in self.everywhere else Weight.SPARE
        return Weight.NEEDED if fault.pairs & self._lost else Weight.SPARE

    @cached_property
    def _lost(self) -> frozenset[frozenset[str]]:
        return frozenset(pair for pair, good in joined(self.known).items() if not good)

    def _picked(self, fault: Fault) -> bool:
        """Tell whether both ends of some broken pair are where NCCL would meet."""
        there = {node for node, seat in self._picks.items() if seat.subnet == fault.subnet}
        return any(pair <= there for pair in fault.pairs)

    @cached_property
    def _picks(self) -> Mapping[str, Seat]:
        return picked_seats(self.cluster)


def _problem(cluster: ClusterView, one: Weighed, everywhere: Mapping[str, Seats]) -> Problem:
    fault = one.fault
    nics = cluster.each(NicFacts)
    picked = one.weight is Weight.PICKED
    fix = line_into(everywhere, one.instead) if picked else cure(fault, nics, cluster.known(LoginFacts))
    return Problem(
        message=f"{fault.told}{mtus_told(fault, nics)}; {one.meaning}",
        fix=fix,
        evidence=shown(fault.links),
        nodes=fault.nodes,
    )
