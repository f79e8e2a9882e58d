"""launch: check the nodes, then become the program that starts the job on them."""

from __future__ import annotations

import os
import resource
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from doctor.commands.examined import against, all_dropped, examined, say, say_in_vain
from doctor.commands.options import CONFIG, COUNTS, GOOD, JOB, KEPT, NETWORK, RANKS, SSH, TIME, WHICH, WITH, options
from doctor.commands.program import ProgramCommand, program_of
from doctor.commands.run import one_file, settings_of
from doctor.errors import EXIT_FINDINGS

if TYPE_CHECKING:
    from doctor.model.report import Report
    from doctor.settings import Settings

# What starts all ranks by one line. The others' lines are typed on every node, each with its own number.
STARTS_ALL = ("mpirun", "horovodrun", "srun", "deepspeed")


@click.command(cls=ProgramCommand, short_help="Check the nodes, then start the job on them.")
@click.argument("nodes", nargs=-1, metavar="[NODES]")
@options(WITH, RANKS, NETWORK, KEPT, GOOD, WHICH, SSH, JOB, TIME, COUNTS, CONFIG)
@click.pass_context
def launch(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Check the nodes, then start the job on them by the line that ncheck plan prints, from this machine.

    \b
    ncheck launch nodes.txt --with mpirun -- python train.py

    Type it where you would type mpirun: on one of the nodes, or on a machine in their network.

    The report goes to standard error. Where something is wrong that touches the plan, nothing is started and the exit
    code is 1; --force starts it all the same. Once started, ncheck is that program: its input and output, its signals
    and its exit code are the program's own.
    """  # noqa: D301  click ends a paragraph's folding at \b
    given = {**flags, "nodes_file": one_file(context, nodes), "program": program_of(context)}
    settings = replace(settings_of(given), select=(), probe="none")  # every check has its say, and nothing is measured
    if settings.launcher not in STARTS_ALL:
        how = f"ncheck plan --for {settings.launcher} -- {shlex.join(settings.program or ('python', 'train.py'))}"
        raise click.UsageError(f"the line of {settings.launcher} is typed on every node; to see it: {how}", context)
    if not settings.program:
        raise click.UsageError("the program is missing: ncheck launch nodes.txt -- python train.py", context)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)  # raised for the fan-out; the job gets what it would have had
    from doctor.report.brief import print_brief  # noqa: PLC0415  start-up
    from doctor.report.live import observer_for  # noqa: PLC0415  start-up

    report = examined(settings, observer_for(sys.stderr, os.environ))
    say_in_vain(settings, report)
    print_brief(report, sys.stderr, os.environ)
    if report.interrupted:
        say("interrupted: nothing was started")
        return report.exit_code
    return _started(report, settings, files)


def _started(report: Report, settings: Settings, files: tuple[int, int]) -> int:
    """Start the job, unless something is against it."""
    reasons = against(report, settings)
    for reason in (*reasons, *report.plan.notes):
        say(reason)
    possible = bool(report.plan.lines) and not all_dropped(report)
    if not possible or (reasons and not settings.force):
        say("nothing was started" + (": --force starts it all the same" if possible else ""))
        return EXIT_FINDINGS
    from doctor.commands.start import start  # noqa: PLC0415  only where all is well

    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    return start(next(iter(report.plan.lines.values())), report, force=settings.force)
