"""explain, list, read, schema: the commands that need no node."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from ncheck.errors import NcheckError


@click.command(short_help="Explain a check and how to fix what it finds.")
@click.argument("check")
def explain(check: str) -> None:
    """Print the page of a check, given by code or name: what it finds, why it matters, what to type."""
    from ncheck.registry import load_checks
    from ncheck.report.listing import page_of, show_page

    show_page(page_of(load_checks(), check), sys.stdout, os.environ)


@click.command("list", short_help="List all checks.")
@click.option("-o", "output", type=click.Choice(["console", "json"]), default="console", help="Output format.")
def list_checks(output: str) -> None:
    """List all checks by topic: code, name, severity and title."""
    from ncheck.registry import load_checks
    from ncheck.report.listing import as_json, print_list

    if output == "json":
        click.echo(as_json(load_checks()), nl=False)
    else:
        print_list(load_checks(), sys.stdout, os.environ)


@click.command(short_help="Diagnose a job log; parse the output of a tool.")
@click.argument("kind")
@click.argument("file")
@click.option("-o", "output", type=click.Choice(["json"]), default="json", help="Output format (only json).")
def read(kind: str, file: str, output: str) -> None:  # noqa: ARG001  accepted because other commands have it
    """Parse the output of a tool, or a job log, and print the result as JSON. FILE may be - for standard input.

    \b
    ncheck read log job.log          why the job failed: the cause, its log lines, what to type
    ncheck read ibstat ibstat.txt    the output of a tool

    KIND names the tool; an unknown KIND lists all kinds. If the tool failed or its output cannot be parsed, the result
    has an `error`.
    """  # noqa: D301  click ends a paragraph's folding at \b
    import json

    text = _text(kind, file)
    from ncheck.parse.read import read_text
    from ncheck.report.json import without_delete

    click.echo(without_delete(json.dumps(read_text(kind, text), indent=2)))


@click.command(short_help="Print the JSON Schema of the report.")
def schema() -> None:
    """Print the JSON Schema of the report that -o json writes."""
    from ncheck.report.schema import schema_text

    click.echo(schema_text(), nl=False)


_PACKED = {b"\x1f\x8b": "zcat", b"BZh": "bzcat", b"\xfd7zXZ": "xzcat", b"\x28\xb5\x2f\xfd": "zstdcat"}


def _text(kind: str, file: str) -> str:
    """Return the text of a file; undecodable bytes are replaced. Raises NcheckError if it cannot be read."""
    from ncheck.parse.capture import decoded

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise NcheckError(f"{file}: {error.strerror}") from error
    for start, program in _PACKED.items():
        if data.startswith(start):
            raise NcheckError(f"{file} is compressed; use: {program} {shlex.quote(file)} | ncheck read {kind} -")
    return decoded(data)
