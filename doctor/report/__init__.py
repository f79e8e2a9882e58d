"""Readers of one Report: the console and a page for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from doctor.model.report import Report


def show(report: Report, output: str, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> int:
    """Print the report in the format asked for, and return its exit code, even when nobody reads to the end."""
    try:
        if output == "json":
            from doctor.report.json import as_json  # noqa: PLC0415  start-up

            stream.write(as_json(report))
        elif output == "html":
            from doctor.report.html import as_html  # noqa: PLC0415  start-up

            stream.write(as_html(report))
        else:
            from doctor.report.console import print_report  # noqa: PLC0415  start-up

            print_report(report, stream, environ, color=color)
        stream.flush()
    except BrokenPipeError:
        leave_quietly(stream)
    return report.exit_code


def leave_quietly(stream: TextIO) -> None:
    """Point a stream whose reader went away at nothing, so that the interpreter's last flush cannot fail."""
    import os  # noqa: PLC0415  only here

    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
