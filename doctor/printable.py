"""Text that somebody else wrote, made fit for a terminal and for one line of a message."""

from __future__ import annotations

LONGEST = 120


def printable(text: str, longest: int = LONGEST) -> str:
    """Return the text with control, escape and invisible characters as `?`, cut to `longest` characters."""
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    return "".join(c if c.isprintable() else "?" for c in cut)
