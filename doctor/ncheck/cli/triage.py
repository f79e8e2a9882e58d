"""triage: the cause of a job that hangs, fails or crawls."""

from __future__ import annotations

import os
import sys

import click

from ncheck.cli.options import files
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS


@click.command(short_help="Find the cause of a job that hangs or fails.")
@click.argument("paths", nargs=-1, metavar="PATH...", shell_complete=files)
@click.option("--logs", is_flag=True, help="Each PATH is a log, a folder with logs, or - for standard input.")
@click.option(
    "-o", "output", type=click.Choice(["console", "json"]), default="console", show_default=True, help="Output format."
)
def triage(paths: tuple[str, ...], *, logs: bool, output: str) -> int:
    """Find the cause of a job that hangs or fails in its logs: cause, rank, node, lines, fix.

    \b
    ncheck triage --logs job.log                    one log, all ranks in it
    ncheck triage --logs logs/ slurm-812.out.gz     folders, and logs packed with gzip, bzip2, xz or zstd
    journalctl -k | ncheck triage --logs -

    All logs are read together: of two failures the first one counts, and a rank that failed counts more than ranks
    that only waited for it. docs/causes.md explains each cause.

    Exit codes: 0 nothing wrong found, 1 a diagnosis or a log that could not be read, 2 usage error.
    """  # noqa: D301  click ends a paragraph's folding at \b
    if not logs:
        raise click.UsageError("only logs can be examined: ncheck triage --logs PATH...")
    if not paths:
        raise click.UsageError("name a log, a folder with logs, or - for standard input")
    from ncheck.report.triage import as_json, print_triage
    from ncheck.triage.logs import examine_logs

    report = examine_logs(paths, sys.stdin.buffer)
    if output == "json":
        click.echo(as_json(report), nl=False)
    else:
        print_triage(report, sys.stdout, os.environ)
    return EXIT_FINDINGS if report.diagnoses or report.unread else EXIT_CLEAN
