"""Readers of one Report that decide nothing: console, HTML and Markdown for people, the others for programs.

A format of FORMATS (settings/values.py) is a module of this name here, with print_report(report, stream, environ, *,
color); that of the table takes its columns too. A program that reads exit codes of its own has exit_code(report) too.
-v and -q choose other modules for the console: verbose, quiet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

from ncheck.errors import NcheckError

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.settings import Output


def show_all(  # noqa: PLR0913  where, and how
    report: Report,
    outputs: Sequence[Output],
    stream: TextIO,
    environ: Mapping[str, str],
    *,
    color: bool | None = None,
    columns: Sequence[str] = (),
) -> int:
    """Write all files, then print what goes to the stream; return the exit code.

    Raises NcheckError for files that could not be written, after all else is.
    """
    from ncheck.files import write_whole

    code, failed = report.exit_code, []
    for one in sorted(outputs, key=lambda one: one.path is None):
        if one.path is None:
            code = show(report, one.form, stream, environ, color=color, columns=columns)
            continue
        printed = partial(_module(one.form).print_report, color=color, **_chosen(one.form, columns))
        try:
            write_whole(one.path, "-o", lambda file, printed=printed: printed(report, file, environ))  # type: ignore[misc]
        except NcheckError as error:
            failed.append(str(error))
    if failed:
        raise NcheckError("; ".join(failed))
    return code


def show(  # noqa: PLR0913  as for show_all
    report: Report,
    form: str,
    stream: TextIO,
    environ: Mapping[str, str],
    *,
    color: bool | None = None,
    columns: Sequence[str] = (),
) -> int:
    """Print the report in this format. Return its exit code, also if the reader closed the pipe."""
    module = _module(form)
    try:
        module.print_report(report, stream, environ, color=color, **_chosen(form, columns))
        stream.flush()
    except BrokenPipeError:
        leave_quietly(stream)
    code: int = module.exit_code(report) if hasattr(module, "exit_code") else report.exit_code
    return code


def _chosen(form: str, columns: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the argument that a table alone takes."""
    return {"columns": columns} if form == "table" and columns else {}


def _module(form: str) -> ModuleType:
    return import_module(f"ncheck.report.{form}")


def leave_quietly(stream: TextIO) -> None:
    """Redirect a stream without a reader to /dev/null: the interpreter's last flush would fail otherwise."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
