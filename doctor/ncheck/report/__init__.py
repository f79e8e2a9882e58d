"""Readers of one Report that decide nothing: console and HTML for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ncheck.model.report import Report

# -v and -q choose other modules for the console: verbose, quiet.
# A format is a module of this name here, with print_report(report, stream, environ, *, color).
FORMATS = ("console", "json", "html")


def show(report: Report, output: str, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> int:
    """Print the report in this format. Return its exit code, also if the reader closed the pipe."""
    try:
        import_module(f"ncheck.report.{output}").print_report(report, stream, environ, color=color)
        stream.flush()
    except BrokenPipeError:
        leave_quietly(stream)
    return report.exit_code


def leave_quietly(stream: TextIO) -> None:
    """Redirect a stream without a reader to /dev/null: the interpreter's last flush would fail otherwise."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
