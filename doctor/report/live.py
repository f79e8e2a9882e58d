"""What is shown while a run goes on: a live part on a terminal, a few plain lines elsewhere; all on standard error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from doctor.report.plain_lines import PlainLines

if TYPE_CHECKING:
    from doctor.observer import Observer


def observer_for(stream: TextIO, environ: Mapping[str, str]) -> Observer:
    """Return a live table for a terminal, plain lines for everything else (a log, a pipe, TERM=dumb)."""
    if not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        return PlainLines(stream)
    from doctor.report.live_table import LiveTable  # noqa: PLC0415  rich is dear and a log has no use for it

    return LiveTable(stream, environ)
