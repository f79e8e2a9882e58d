"""Readers of one Report that decide nothing: console, HTML and Markdown for people, the others for programs.

A format of FORMATS (settings/values.py) is a module of this name here, with print_report(report, stream, environ, *,
color); that of the table takes its columns too. A program that reads exit codes of its own has exit_code(report) too.
-v and -q choose other modules for the console: verbose, quiet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

from ncheck.errors import NcheckError
from ncheck.report.language import ENGLISH, speaking, spoken

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.settings import Output

_FOR_PEOPLE = frozenset({"console", "verbose", "quiet", "html", "markdown", "table", "concise"})


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
        try:
            write_whole(
                one.path,
                "-o",
                lambda file, f=one.form: _write(report, f, file, environ, color, columns),  # type: ignore[misc]
            )
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
    try:
        _write(report, form, stream, environ, color, columns)
        stream.flush()
    except BrokenPipeError:
        leave_quietly(stream)
    module = _module(form)
    code: int = module.exit_code(report) if hasattr(module, "exit_code") else report.exit_code
    return code


def _write(  # noqa: PLR0913, PLR0917  as for show_all
    report: Report,
    form: str,
    stream: TextIO,
    environ: Mapping[str, str],
    color: bool | None,  # noqa: FBT001  three-valued
    columns: Sequence[str],
) -> None:
    """Write the report: for people in the language that is spoken, for programs in English."""
    chosen = {"columns": columns} if form == "table" and columns else {}
    with speaking(spoken() if form in _FOR_PEOPLE else ENGLISH):
        _module(form).print_report(report, stream, environ, color=color, **chosen)


def _module(form: str) -> ModuleType:
    return import_module(f"ncheck.report.{form}")


def leave_quietly(stream: TextIO) -> None:
    """Redirect a stream without a reader to /dev/null: the interpreter's last flush would fail otherwise."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
