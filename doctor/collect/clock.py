"""The node's clock against ours, from the pings of the session itself."""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import ClockFacts

CLOCK = Answer("clock")


def clock(evidence: Evidence) -> Read[ClockFacts]:
    """Read the offset that the best ping gave."""
    if evidence.clock_offset is not None:
        return ClockFacts(evidence.clock_offset, evidence.clock_uncertainty or 0.0)
    why = trouble(CLOCK, evidence.reply(CLOCK))
    # No ping was answered: nothing that is absent, whatever the words.
    return Unread(why.reason) if isinstance(why, Absent) else why or Unread("the node's clock: no ping was answered")


READERS = (Reader(ClockFacts, (CLOCK,), clock),)
