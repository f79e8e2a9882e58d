"""The clock of a node, compared with that of the local host."""

from __future__ import annotations

from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class ClockFacts:
    """The node's clock beside that of the machine that runs ncheck. `offset`: seconds that the node's is ahead.
    `uncertainty`: seconds, half the round-trip time of the measurement.
    """

    offset: float
    uncertainty: float


CLOCK = Answer("clock")


def clock(evidence: Evidence) -> Read[ClockFacts]:
    """Read the offset of the ping with the shortest round trip."""
    if evidence.clock_offset is not None:
        return ClockFacts(evidence.clock_offset, evidence.clock_uncertainty or 0.0)
    why = trouble(CLOCK, evidence.reply(CLOCK))
    # No ping was answered: unknown, never absent.
    return Unread(why.reason) if isinstance(why, Absent) else why or Unread("clock not measured: no ping was answered")


FACTS = (Fact(ClockFacts, (CLOCK,), clock, of_its_node=True),)
