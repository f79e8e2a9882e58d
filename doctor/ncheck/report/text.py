"""Text from nodes made fit for a terminal, whole and unquoted; counts and node sets in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ncheck.hostlist import fold

# "\x1b[31mred", "\x9b1m", "\x1b]0;title\x07", "\x1b(B": what a terminal would obey
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f]).{0,256}?(?:\x07|\x1b\\|\x9c|$)"  # OSC and the like, to the end
    r"|\x1b[ -/]*[0-~]?"  # all others
)


LONGEST_SET = 48  # characters of a node set before it is cut


def line(text: str) -> str:
    """Return the text on one line, without escape sequences; control, invisible and direction-changing characters
    are shown as `?`.
    """
    return _visible(" ".join(_ESCAPE.sub("", text).split()))


def lines(text: str) -> tuple[str, ...]:
    """Return the text's own lines, each clean, spaces inside a line as they are."""
    return tuple(_visible(_ESCAPE.sub("", one).expandtabs()) for one in text.splitlines())


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def count(number: int, noun: str) -> str:
    """Return "1 check" or "3 checks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def node_set(names: Collection[str], longest: int = LONGEST_SET) -> str:
    """Return the folded names; a set too long to read is cut, and says how many it holds."""
    folded = line(fold(names))
    if len(folded) <= longest:
        return folded
    cut = folded[:longest].rsplit(",", 1)[0]
    bracket = "]" if cut.rfind("[") > cut.rfind("]") else ""
    return f"{cut},...{bracket} ({len(names)} nodes)"


def joined(words: Iterable[str], most: int) -> str:
    """Return the first words, and how many more there are."""
    all_of_them = list(words)
    shown = ", ".join(all_of_them[:most])
    return shown if len(all_of_them) <= most else f"{shown} and {len(all_of_them) - most} more"
