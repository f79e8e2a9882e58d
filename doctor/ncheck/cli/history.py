"""history: what the runs that were kept say of each node."""

from __future__ import annotations

import sys

import click

from ncheck.cli.options import GroupedCommand, files
from ncheck.errors import EXIT_CLEAN, SettingsError
from ncheck.hostlist import quoted


@click.command(cls=GroupedCommand, short_help="Show what earlier runs found (--history FILE).")
@click.argument("node", required=False, metavar="[NODE]")
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
    help="Print the N nodes that were not examined for longest, one per line.",
)  # fmt: skip
def history(node: str | None, path: str | None, output: str, oldest: int | None) -> int:
    """Show how often each node failed and for what, which parts were replaced, and which counters grew.

    \b
    ncheck nodes.txt --history cluster.db     check the nodes, and keep what was found
    ncheck history --history cluster.db       all nodes, the worst first
    ncheck history gpu03 --history cluster.db one node
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.history.past import past_of
    from ncheck.history.show import FORMATS
    from ncheck.history.store import History

    if path is None:
        raise click.UsageError("name the file: ncheck history --history FILE, or NCHECK_HISTORY=FILE")
    kept = History(path)
    past = past_of(kept.runs(), kept.spans())
    if node is not None and past.of(node) is None:
        raise SettingsError(f"no run in {path} examined {quoted(node)}; all nodes: ncheck history --history {path}")
    if oldest is not None:
        waiting = sorted(past.nodes, key=lambda one: (one.examined or 0.0, one.node))
        sys.stdout.writelines(f"{one.node}\n" for one in waiting[:oldest])
        return EXIT_CLEAN
    sys.stdout.write(FORMATS[output](past, node))
    return EXIT_CLEAN
