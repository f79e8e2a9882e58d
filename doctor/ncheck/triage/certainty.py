"""How sure triage is: the one scale, from a line or a stack to the confidence of a diagnosis."""

from __future__ import annotations

from enum import IntEnum

SURE = 0.8  # from here on, nine answers in ten are right
NAMED = 0.5  # from here on, a diagnosis names what is wrong; below, it says what may be looked at


class Grade(IntEnum):
    """How strongly a clue points to its cause. A higher grade outweighs a lower one, whichever was seen first."""

    ECHO = 0  # a consequence of another rank's failure: a cause only if nothing else names one
    POSSIBLE = 1  # several causes look the same
    LIKELY = 2  # one cause in most cases
    CERTAIN = 3  # what was seen is the cause itself

    @property
    def confidence(self) -> float:
        """The confidence of a diagnosis that one source alone shows; sources that agree add up (judge.py)."""
        return (0.3, 0.5, 0.85, 0.95)[self]

    @property
    def word(self) -> str:
        """The confidence in a word, for `ncheck read`: "low" where other causes look the same."""
        return ("low", "low", "medium", "high")[self]
