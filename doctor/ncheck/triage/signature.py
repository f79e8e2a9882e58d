"""A signature: a pattern of one log line, and what a line that matches it says about the cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine


@dataclass(frozen=True)
class LineClue:
    """What one line of a log says, and how it bears on other lines.

    `cause` is a name in causes.CAUSES, or "" for a symptom or for a line that is no fault.
    `others` are other causes that print the same line. `tag` groups lines about one kind of trouble ("connect",
    "waits"); a line that `explains` a tag replaces the lines of that tag. A `context` line is no trouble by itself: it
    counts only if it explains a line that is. A `passing` line is also printed by jobs that go on: it counts only if
    the log shows no progress after it. A `lasting` line counts unless the job made steps or ended well after it: that
    NCCL started is no progress for it.
    `kind` says more of a program's failure: "exception", "memory", "import" and so on. A `fallback` counts only if no
    other signature reads the line.
    `rank` and `node` are those that failed, if the line names them: the pattern's groups of these names. They are not
    those that wrote the line.
    `meaning`, `fix` and `look` replace those of the cause. The last two are one command each, and {names} in them are
    groups of the pattern: a `fix` changes something, a `look` only shows. With a `look` of its own and no `fix`, the
    cause's fix is no help here. `do` is a sentence, where what to type is known in part only.
    """

    cause: str
    grade: Grade = Grade.LIKELY
    others: tuple[str, ...] = ()
    tag: str = ""
    explains: frozenset[str] = frozenset()
    context: bool = False
    passing: bool = False
    lasting: bool = False
    kind: str = ""
    fallback: bool = False
    rank: str = ""
    node: str = ""
    meaning: str = ""
    fix: str = ""
    look: str = ""
    do: str = ""


@dataclass(frozen=True)
class Signature:
    """A pattern to search in each line, and its clue, or the function that makes the clue from the match."""

    pattern: re.Pattern[str]
    clue: LineClue | Callable[[re.Match[str]], LineClue | None]

    def read(self, line: str) -> LineClue | None:
        """Return what this line says, or None if the signature does not match."""
        match = self.pattern.search(line)
        if match is None:
            return None
        clue = self.clue if isinstance(self.clue, LineClue) else self.clue(match)
        return clue and _with_names(clue, match)


# What several lines of all logs show together: clues, each with the lines that it is made from.
Detected = Iterator[tuple[LineClue, tuple[LogLine, ...]]]
Detector = Callable[[Sequence[LogLine]], Detected]

# Leads the loader to the folder of a {library}. ldconfig alone reads only folders that a file names already.
REGISTER = (
    "find /usr /opt -name '{library}' -printf '%h\\n' | head -n 1 | sudo tee /etc/ld.so.conf.d/{library}.conf && "
    "sudo ldconfig"
)
NO_LIBRARY = (
    "a program does not find a library that it needs: neither LD_LIBRARY_PATH nor a file of /etc/ld.so.conf.d names "
    "its folder, or it is not installed"
)


def row(pattern: str, cause: str, grade: Grade = Grade.LIKELY, *others: str, **more: object) -> Signature:
    """Return a signature with a fixed clue; `more` are the other fields of LineClue."""
    return Signature(expression(pattern), LineClue(cause, grade, others, **more))  # type: ignore[arg-type]


def _with_names(clue: LineClue, match: re.Match[str]) -> LineClue:
    """Return the clue with the pattern's named groups filled into its fix: those match plain names only."""
    groups = {name: value for name, value in match.groupdict().items() if value}
    if not groups:
        return clue
    fix, look = (text.format_map(groups) if "{" in text else text for text in (clue.fix, clue.look))
    return replace(clue, fix=fix, look=look, rank=groups.get("rank", ""), node=groups.get("node", ""))
