"""verdict: what the last report of this machine says of it, for a Slurm prolog and the like."""

from __future__ import annotations

import re

import click

from ncheck.cli.examine import say
from ncheck.cli.options import files
from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "": 1}


def _age(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    # 90   |   90s   |   30m   |   2h   |   1d
    found = re.fullmatch(r"(\d{1,9})([smhd]?)", value.strip(), re.ASCII)
    if not found or not int(found[1]):
        raise click.BadParameter("expected a time above 0, such as 90s, 30m, 2h or 1d")
    return float(int(found[1]) * _SECONDS[found[2]])


@click.command(short_help="Print why this machine should get no job, from its last report.")
@click.argument("file", shell_complete=files)
@click.option("--max-age", metavar="TIME", default="30m", callback=_age, help="Ignore an older report.  [30m]")
def verdict(file: str, max_age: float) -> int:
    """Read the report that `ncheck local -o json=FILE` wrote, and print why this machine should get no job.

    \b
    ncheck local --probe none -o json=/run/ncheck/local.json     from time to time
    ncheck verdict /run/ncheck/local.json --max-age 30m          before each job

    If the report names a fault of this machine's hardware, one line is printed on standard output, as a reason for
    scontrol, and the exit code is 1. In all other cases nothing is printed there and the exit code is 0: an error of
    another kind, which a user may have made, no report, one that is too old or was made before the last start of this
    machine, a check that could not run. Standard error has one line for a log. Nothing is checked or connected. A
    file system that hangs is given up after 2 seconds.
    """  # noqa: D301  click ends a paragraph's folding at \b
    from ncheck.saved_report import now, saved_verdict

    found = saved_verdict(file, max_age, now())
    say(found.message)
    if not found.drain:
        return EXIT_CLEAN
    click.echo(found.drain)
    return EXIT_FINDINGS
