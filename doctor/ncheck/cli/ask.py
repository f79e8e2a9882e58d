"""explain, list, read, schema: the commands that ask ncheck itself and touch no node."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from ncheck.errors import NcheckError


@click.command(short_help="Tell what a check finds and what to type.")
@click.argument("check")
def explain(check: str) -> None:
    """Print the page of a check, by its code or name: what it finds, why it matters, what to type."""
    from ncheck.registry import load_checks
    from ncheck.report.listing import (
        page_of,
        show_page,
    )

    show_page(page_of(load_checks(), check), sys.stdout, os.environ)


@click.command("list", short_help="List every check.")
@click.option("-o", "output", type=click.Choice(["console", "json"]), default="console", help="The format.")
def list_checks(output: str) -> None:
    """List every check: code, name, severity and title, by topic."""
    from ncheck.registry import load_checks
    from ncheck.report.listing import (
        as_json,
        print_list,
    )

    if output == "json":
        click.echo(as_json(load_checks()), nl=False)
    else:
        print_list(load_checks(), sys.stdout, os.environ)


@click.command(short_help="Tell what a job's log speaks for; parse what a tool printed.")
@click.argument("kind")
@click.argument("file")
@click.option("-o", "output", type=click.Choice(["json"]), default="json", help="The format: there is one.")
def read(kind: str, file: str, output: str) -> None:  # noqa: ARG001  accepted, since other commands have it
    """Parse what a tool printed (FILE, - for standard input) as ncheck would, and print it as JSON.

    \b
    ncheck read log job.log          why the job failed: the cause, its lines, what to type
    ncheck read ibstat ibstat.txt    what a tool said

    KIND is a family of tools; a wrong one is answered with all that there are. A text that says that its tool failed,
    or cannot be read, has an `error` in the answer.
    """  # noqa: D301  click's mark of lines that stay as they are
    import json

    text = _text(kind, file)
    from ncheck.parse.read import read_text

    click.echo(json.dumps(read_text(kind, text), indent=2))


@click.command(short_help="Print the JSON Schema of -o json.")
def schema() -> None:
    """Print the JSON Schema of the report that -o json writes."""
    from ncheck.report.schema import schema_text

    click.echo(schema_text(), nl=False)


_PACKED = {b"\x1f\x8b": "zcat", b"BZh": "bzcat", b"\xfd7zXZ": "xzcat", b"\x28\xb5\x2f\xfd": "zstdcat"}


def _text(kind: str, file: str) -> str:
    """Return a file's text; what cannot be decoded is replaced. Raises NcheckError where it cannot be read."""
    from ncheck.parse.capture import decoded

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise NcheckError(f"{file}: {error.strerror}") from error
    for start, program in _PACKED.items():
        if data.startswith(start):
            raise NcheckError(f"{file}: it is compressed; {program} {shlex.quote(file)} | ncheck read {kind} -")
    return decoded(data)
