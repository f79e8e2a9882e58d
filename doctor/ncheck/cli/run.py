"""check, local, replay, demo: the commands that end in a report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ncheck.cli.examined import say_in_vain
from ncheck.cli.options import (
    CONFIG,
    GOOD,
    JOB,
    JUDGE,
    NETWORK,
    OUTPUT,
    PROBE,
    RECORD,
    SSH,
    TIME,
    WHICH,
    GroupedCommand,
    options,
)
from ncheck.errors import EXIT_CLEAN, EXIT_INTERRUPTED, InventoryError
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings


Work = Callable[["Settings", "Observer"], "Report"]


@click.command(cls=GroupedCommand, short_help="Check the nodes of a file, or of -H.")
@click.argument("nodes", nargs=-1, metavar="[NODES]")
@options(WHICH, SSH, JOB, NETWORK, TIME, PROBE, JUDGE, CONFIG, OUTPUT, GOOD, RECORD)
@click.pass_context
def check(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Check the nodes of a file (- for standard input): one host a line, a hostfile of mpirun, or node[01-16].

    Without a file: the nodes of -H, of the Slurm allocation, or this machine.
    """
    return run_and_show(examine_nodes, {**flags, "nodes_file": one_file(context, nodes)})


@click.command(cls=GroupedCommand)
@options(JOB, TIME, PROBE, JUDGE, CONFIG, OUTPUT, RECORD)
def local(**flags: object) -> int:
    """Check this machine alone, with no SSH."""
    return run_and_show(examine_nodes, {**flags, "local": True})


@click.command(cls=GroupedCommand, short_help="Judge again what --record DIR saved.")
@click.argument("directory", metavar="DIR")
@options(JUDGE, CONFIG, OUTPUT)
def replay(directory: str, **flags: object) -> int:
    """Judge again what --record DIR saved: no node, no GPU, no SSH."""
    from ncheck.pipeline import replay as replayed

    return run_and_show(lambda settings, observer: replayed(directory, settings, observer), {**flags, "local": True})


@click.command(cls=GroupedCommand, short_help="Show it on a throw-away sick cluster.")
@click.argument("cluster", required=False, metavar="[CLUSTER]")
@options(JUDGE, OUTPUT)
def demo(cluster: str | None, **flags: object) -> int:
    """Show what a sick cluster looks like: a throw-away one on this machine, over real SSH.

    \b
    ncheck demo                      what is wrong with the nodes
    ncheck demo slow-node-and-rail   with a bandwidth that was recorded
    ncheck demo healthy-4x8-h100

    Exit code 0 when the demo itself worked; the report in it has its own.
    """  # noqa: D301  click's mark of lines that stay as they are
    from ncheck.demo import (
        CLUSTER,
        run,
    )

    def examined(settings: Settings, observer: Observer) -> Report:
        return run(settings, observer, cluster or CLUSTER)

    code = run_and_show(examined, {**flags, "local": True, "config": "none"})
    if code == EXIT_INTERRUPTED:
        return code
    click.echo("ncheck: the demo worked, so this ends with exit code 0, whatever its report says", err=True)
    return EXIT_CLEAN


def examine_nodes(settings: Settings, observer: Observer) -> Report:
    """Examine the nodes, and settle which of them are good enough."""
    from ncheck.cli.examined import examined

    return examined(settings, observer)


def run_and_show(work: Work, given: Mapping[str, object], change: Callable[[Settings], Settings] | None = None) -> int:
    """Make settings of the flags, do the work while somebody watches, and print its report."""
    flags = {name: value for name, value in given.items() if value not in (None, ())}
    color, dry_run = flags.pop("color", None), flags.pop("dry_run", False)
    settings = change(settings_of(flags)) if change else settings_of(flags)
    if dry_run:
        return _dry_run(settings)
    from ncheck.report import show
    from ncheck.report.progress import observer_for

    report = work(settings, observer_for(sys.stderr, os.environ))
    code = show(report, settings.output, sys.stdout, os.environ, color=color if isinstance(color, bool) else None)
    say_in_vain(settings, report)
    return code


def settings_of(given: Mapping[str, object]) -> Settings:
    """Make the settings of what was typed; what was not is None or empty. A check that is none is refused."""
    flags = {name: value for name, value in given.items() if value not in (None, ())}
    from ncheck.settings import make_settings

    settings = make_settings(flags, os.environ, Path.cwd())
    if settings.ignore:
        from ncheck.registry import load_checks

        registry = load_checks()
        for ignore in settings.ignore:
            registry.one(ignore.check)  # raises for what is no check: a typo must not pass for an --ignore
    return settings


def _dry_run(settings: Settings) -> int:
    from ncheck.cli.dry_run import dry_run

    click.echo(dry_run(settings))
    return 0


def one_file(context: click.Context, words: tuple[str, ...]) -> str | None:
    """Return the one nodes file that is meant. Raises InventoryError, with what is near, where there is none."""
    if not words:
        return None
    first = words[0]
    if first != "-" and not os.path.lexists(first):
        raise InventoryError(_no_such(context, first))
    if len(words) > 1:
        raise click.UsageError(f"one nodes file at a time: what is {_quoted(words[1])}?", context)
    return first


def _no_such(context: click.Context, word: str) -> str:
    parent = context.parent.command if context.parent else None
    names = [*parent.commands, "--help", "--version"] if isinstance(parent, click.Group) else []
    folder = Path(word).parent
    files = [str(folder / path.name) for path in folder.iterdir()] if folder.is_dir() else []
    near = get_close_matches(word, [*names, *files], n=1, cutoff=0.7)
    hint = f"did you mean {printable(near[0])}?" if near else f"a host by name is -H {printable(word)}"
    return f"no such file or command: {_quoted(word)}; {hint}"


def _quoted(word: str) -> str:
    return f"'{printable(word)}'"
