"""What a row of triage is: a pattern of one line of a log, and what that line says of the cause."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum


class Grade(IntEnum):
    """How much a line says. What is certain outweighs what is likely, whichever came first."""

    ECHO = 0  # what the failure of another rank does to this one: a cause only where nobody says more
    POSSIBLE = 1  # several causes print the same line
    LIKELY = 2  # one cause by far the most often
    CERTAIN = 3  # the line names the cause itself


@dataclass(frozen=True)
class Reading:
    """What one line says. `cause` is a name of causes.CAUSES; "" tells of a symptom, or of what is no fault at all.

    `others` are the causes that print the same. `tag` names the kind of trouble ("connect", "waits"), so that a line
    that `explains` it may take its place. `context` is no trouble by itself: it counts where it explains one that is
    there. `passing` lines are printed by jobs that go on, too: they count where the log shows no progress after them.
    `fix` is one line to type, where the cause's own does not fit; {names} in it are the pattern's groups.
    """

    cause: str
    grade: Grade = Grade.LIKELY
    others: tuple[str, ...] = ()
    tag: str = ""
    explains: frozenset[str] = frozenset()
    context: bool = False
    passing: bool = False
    meaning: str = ""
    fix: str = ""


Reader = Callable[["re.Match[str]"], "Reading | None"]


@dataclass(frozen=True)
class Signature:
    """One row: a pattern, searched in each line, and its reading; where the words decide, what reads them."""

    pattern: re.Pattern[str]
    reading: Reading | Reader

    def read(self, line: str) -> Reading | None:
        """Return what this line says; None where it is none of this row's."""
        found = self.pattern.search(line)
        if found is None:
            return None
        reading = self.reading if isinstance(self.reading, Reading) else self.reading(found)
        return reading and _filled(reading, found)


def row(pattern: str, cause: str, grade: Grade = Grade.LIKELY, *others: str, **more: object) -> Signature:
    """Return a row of one fixed reading; `more` are the other members of a Reading."""
    return Signature(re.compile(pattern), Reading(cause, grade, others, **more))  # type: ignore[arg-type]


def _filled(reading: Reading, found: re.Match[str]) -> Reading:
    """Return the reading with the pattern's named groups in its line to type: those match plain names only."""
    groups = {name: value for name, value in found.groupdict().items() if value}
    if not groups or "{" not in reading.fix:
        return reading
    return replace(reading, fix=reading.fix.format_map(groups))
