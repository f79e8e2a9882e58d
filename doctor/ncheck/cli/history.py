"""history: what the runs that were kept say of each node."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ncheck.cli.options import SPOKEN, GroupedCommand, files, options
from ncheck.errors import EXIT_CLEAN, SettingsError
from ncheck.hostlist import fold, unfold
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.history.past import Past


@click.command(cls=GroupedCommand, short_help="Show what earlier runs found (--history FILE).")
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=files)
@click.option(
    "--history", "path", metavar="FILE", envvar="NCHECK_HISTORY", shell_complete=files,
    help="The file that runs with --history FILE were added to.  [NCHECK_HISTORY]",
)  # fmt: skip
@click.option(
    "-o", "output", type=click.Choice(["console", "json", "markdown", "html"]), default="console",
    help="Output format.  [console]",
)  # fmt: skip
@click.option(
    "--oldest", type=click.IntRange(1, 100_000), metavar="N",
    help="Print the N nodes that no run tried for longest. With a nodes file, or - for standard input: its lines for N "
    "of its nodes; those that no run ever tried come first.",
)  # fmt: skip
@options(SPOKEN)
def history(nodes: tuple[str, ...], path: str | None, output: str, oldest: int | None, lang: str) -> int:
    """Show how often each node failed and for what, which parts were replaced, and which counters grew.

    \b
    ncheck nodes.txt --history cluster.db     check the nodes, and keep what was found
    ncheck history --history cluster.db       all nodes, the worst first
    ncheck history gpu03 --history cluster.db one node; or several: gpu[03-07]
    ncheck history --oldest 8 nodes.txt --history cluster.db | ncheck - --history cluster.db
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.cli.examine import language_for
    from ncheck.history.past import past_of
    from ncheck.history.show import FORMATS
    from ncheck.history.store import History
    from ncheck.report.language import speaking

    if path is None:
        raise click.UsageError("name the file: ncheck history --history FILE, or NCHECK_HISTORY=FILE")
    if oldest is not None and len(nodes) > 1:
        raise click.UsageError("--oldest takes one nodes file, or - for standard input")
    file = Path(path)
    if oldest is not None and nodes and file.parent.is_dir() and not os.path.lexists(file):
        past = past_of((), ())  # the first run makes it
    else:
        kept = History(path)
        past = past_of(kept.runs(), kept.spans())
    if oldest is not None:
        sys.stdout.write(_oldest(past, nodes, oldest))
        return EXIT_CLEAN
    with speaking(language_for(lang, sys.stdout)):
        sys.stdout.write(FORMATS[output](past, _known(past, nodes, path)))
    return EXIT_CLEAN


def _oldest(past: Past, listed: tuple[str, ...], most: int) -> str:
    """Return the nodes of the list, or of the history, that were tried longest ago: lines for a nodes file.

    A node that could not be reached was tried: else it would be chosen each time, and the others never.
    """
    tried = {one.node: one.tried for one in past.nodes}
    if not listed:
        return "".join(f"{name}\n" for name in sorted(tried, key=lambda name: (tried[name], name))[:most])
    from ncheck.inventory.good_nodes import listing_of
    from ncheck.inventory.read import read_inventory
    from ncheck.settings import Settings

    nodes = read_inventory(Settings(nodes_file=listed[0]), stdin=sys.stdin.buffer, environ={})
    waiting = sorted(nodes, key=lambda node: tried.get(node.name, -1.0))
    return listing_of(nodes, {node.name for node in waiting[:most]})


def _known(past: Past, words: tuple[str, ...], path: str) -> frozenset[str]:
    """Return the nodes that are named, as gpu03 or gpu[03-07]. Raises SettingsError."""
    try:
        names = {name for word in words for name in unfold(word)}
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if strangers := names - {one.node for one in past.nodes}:
        raise SettingsError(
            f"no run in {printable(path)} examined {printable(fold(strangers), 200)}; "
            f"all nodes: ncheck history --history {printable(path)}"
        )
    return frozenset(names)
