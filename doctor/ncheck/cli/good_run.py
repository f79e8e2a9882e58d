"""init and diff: keep what a good run found, and see what has changed since."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from ncheck.cli.examine import examined, nodes_file, say, settings_of
from ncheck.cli.options import CONFIG, COUNTS, FORCE, JOB, NODES, SSH, TIME, WHICH, GroupedCommand, files, options
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS


@click.command(cls=GroupedCommand, short_help="Print an [expect] table from a good run.")
@NODES
@options(FORCE, WHICH, SSH, JOB, TIME, COUNTS, CONFIG)
@click.pass_context
def init(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Check the nodes, and print what they have in common as an [expect] table for ncheck.toml, for review.

    \b
    ncheck init nodes.txt > expect.toml

    Later runs hold every node to it: a majority cannot see what is missing everywhere. If the run is not good, nothing
    is printed and the exit code is 1; --force prints it anyway.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.observer import Silent
    from ncheck.report.expected import expectations

    settings = settings_of({**flags, "nodes_file": nodes_file(context, nodes), "probe": "none"})
    report = examined(settings, Silent())
    if report.exit_code and not settings.force:
        bad = ", ".join(dict.fromkeys(finding.code for finding in report.findings))
        say(f"this run is not good ({bad or 'a node or a check is unknown'}): see ncheck check, or use --force")
        return EXIT_FINDINGS
    click.echo(expectations(report), nl=False)
    return EXIT_CLEAN


@click.command(short_help="Show what changed between two recordings.")
@click.argument("old", metavar="OLD", shell_complete=files)
@click.argument("new", metavar="NEW", shell_complete=files)
@click.option("-o", "output", type=click.Choice(["console", "json"]), default="console", help="Output format.")
def diff(old: str, new: str, output: str) -> int:
    """Show what changed between two recordings of --record: what got worse, then what can explain it best.

    \b
    ncheck nodes.txt --record monday/
    ncheck diff monday/ friday/

    Exit codes: 0 nothing got worse, 1 something did, 2 usage error.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.pipeline import known_again
    from ncheck.report.changes import WORSE, changes, changes_json, changes_text
    from ncheck.settings.file import read_settings_file

    settings = settings_of({"local": True, "config": "none"})
    own = read_settings_file(None, os.environ, Path()).checks  # what they recorded is judged by their tables
    settings = replace(settings, run=replace(settings.run, own_checks=own))
    (before, were), (after, are) = (known_again(one, settings) for one in (old, new))
    found = changes(before, after, were.known, are.known)
    sys.stdout.write(changes_json(found) if output == "json" else changes_text(found))
    return EXIT_FINDINGS if any(one.how == WORSE for one in found) else EXIT_CLEAN
