"""mcp: answer what an assistant asks, by the Model Context Protocol."""

from __future__ import annotations

import io
import os
from pathlib import Path

import click

from ncheck.cli.examine import nodes_file, say, settings_of
from ncheck.cli.options import (
    ASSISTANT,
    CONFIG,
    EXPECTED,
    JOB,
    JUDGE,
    NETWORK,
    NODES,
    SSH,
    TIME,
    WHICH,
    GroupedCommand,
    options,
)
from ncheck.errors import EXIT_CLEAN, NcheckError, SettingsError
from ncheck.hostlist import fold
from ncheck.text import printable


@click.command(cls=GroupedCommand, short_help="Answer an assistant (Model Context Protocol).")
@NODES
@options(ASSISTANT, WHICH, SSH, JOB, NETWORK, TIME, EXPECTED, JUDGE, CONFIG)
@click.pass_context
def mcp(context: click.Context, /, nodes: tuple[str, ...], *, files: tuple[str, ...], **flags: object) -> int:
    """Answer, on standard input and output, what an assistant asks by the Model Context Protocol: examine these nodes,
    replay a recording, explain a check or an error, find the cause in logs, show the history.

    \b
    ncheck mcp nodes.txt --files /scratch/logs --history cluster.db

    It only reads. The assistant chooses among what is named here: other nodes and files are refused, no bandwidth is
    measured, no fix is run, nothing is written. It needs: pip install 'cluster-ncheck[mcp]'
    """  # noqa: D301  click ends a paragraph's folding at \b
    try:
        from ncheck.mcp.server import serve
    except ImportError:
        raise NcheckError(
            "ncheck mcp needs the SDK of the Model Context Protocol: pip install 'cluster-ncheck[mcp]'"
        ) from None
    from ncheck.inventory.read import read_inventory
    from ncheck.mcp.tools import Given, read_only

    settings = settings_of({**flags, "nodes_file": nodes_file(context, nodes)})
    if settings.nodes_file == "-":
        raise click.UsageError("standard input is what the assistant writes to: name a nodes file, or -H", context)
    listed = read_inventory(settings, stdin=io.BytesIO(), environ=os.environ)
    folders = tuple(_folder(name) for name in files or (".",))
    given = Given(read_only(settings), listed, folders, settings.history)
    say(f"answering an assistant about {fold(node.name for node in listed)} and files below {', '.join(folders)}")
    serve(given)
    return EXIT_CLEAN


def _folder(name: str) -> str:
    """Return the real path of a folder. Raises SettingsError."""
    try:
        place = Path(name).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingsError(f"--files: {printable(name)}: {getattr(error, 'strerror', None) or error}") from None
    if not place.is_dir():
        raise SettingsError(f"--files: {printable(name)} is not a folder")
    return str(place)
