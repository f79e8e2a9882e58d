"""probe: measure the bandwidth between the nodes, after a look at what that depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.options import (
    CONFIG,
    COUNTS,
    GOOD,
    JOB,
    KEPT,
    NETWORK,
    OUTPUT,
    PROBE,
    RANKS,
    RECORD,
    SSH,
    TIME,
    WHICH,
    GroupedCommand,
    options,
)
from ncheck.cli.run import examine_nodes, one_file, run_and_show

if TYPE_CHECKING:
    from ncheck.settings import Settings


@click.command(cls=GroupedCommand, short_help="Measure the bandwidth between the nodes.")
@click.argument("nodes", nargs=-1, metavar="[NODES]")
@options(PROBE, WHICH, SSH, JOB, RANKS, NETWORK, KEPT, TIME, COUNTS, CONFIG, OUTPUT, GOOD, RECORD)
@click.pass_context
def probe(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Measure the bandwidth inside the nodes of a file, between pairs of them and between all, under the plan.

    \b
    ncheck probe nodes.txt
    ncheck probe nodes.txt --probe tcp --probe-time 30

    Only what the plan depends on is checked before. Where something is wrong there, nothing is measured and the exit
    code is 1; --force measures all the same. What could not be measured counts as unknown.
    """  # noqa: D301  click ends a paragraph's folding at \b
    if flags.get("probe") == "none":
        raise click.UsageError("--probe none measures nothing: leave it out, or run ncheck check", context)
    return run_and_show(examine_nodes, {**flags, "nodes_file": one_file(context, nodes)}, measuring)


def measuring(settings: Settings) -> Settings:
    """Leave of the checks those of the plan and those of what is measured; a file's --probe none is for check."""
    from ncheck.blockers import for_the_probe
    from ncheck.registry import load_checks

    means = "auto" if settings.probe == "none" else settings.probe
    codes = tuple(check.code for check in load_checks().select(()) if for_the_probe(check, settings))
    return replace(settings, probe=means, probe_wanted=True, select=codes)
