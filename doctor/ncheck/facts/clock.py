"""Getting there: the listing, the login, who answered, its clock, and its own ssh to the other nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ncheck.facts.definition import Fact, trouble
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class ClockFacts:
    """Seconds that the node's clock is ahead of ours, and half the round trip that it was measured by."""

    offset: float
    uncertainty: float


CLOCK = Answer("clock")


def clock(evidence: Evidence) -> Read[ClockFacts]:
    """Read the offset that the best ping gave."""
    if evidence.clock_offset is not None:
        return ClockFacts(evidence.clock_offset, evidence.clock_uncertainty or 0.0)
    why = trouble(CLOCK, evidence.reply(CLOCK))
    # No ping was answered: nothing that is absent, whatever the words.
    return Unread(why.reason) if isinstance(why, Absent) else why or Unread("the node's clock: no ping was answered")


FACTS = (Fact(ClockFacts, (CLOCK,), clock),)
