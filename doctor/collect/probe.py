"""What the node told of its part in each step of the probe."""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Read
from doctor.model.facts import ProbeFacts, Turn

TURN = Answer("turn")


def probed(evidence: Evidence) -> Read[ProbeFacts]:
    """Return the turns of this part of the evidence."""
    turns = evidence.turns(TURN)
    if not turns:
        return trouble(TURN, evidence.reply(TURN)) or ProbeFacts(())
    return ProbeFacts(tuple[Turn, ...]())


READERS = (Reader(ProbeFacts, (TURN,), probed),)
