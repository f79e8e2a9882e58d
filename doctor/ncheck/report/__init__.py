"""Readers of one Report: the console and a page for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ncheck.model.report import Report


def show(report: Report, output: str, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> int:
    """Print the report in the format asked for, and return its exit code, even when nobody reads to the end."""
    try:
        if output == "json":
            from ncheck.report.json import as_json

            stream.write(as_json(report))
        elif output == "html":
            from ncheck.report.html import as_html

            stream.write(as_html(report))
        else:
            from ncheck.report.console import print_report

            print_report(report, stream, environ, color=color)
        stream.flush()
    except BrokenPipeError:
        leave_quietly(stream)
    return report.exit_code


def leave_quietly(stream: TextIO) -> None:
    """Point a stream whose reader went away at nothing, so that the interpreter's last flush cannot fail."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
