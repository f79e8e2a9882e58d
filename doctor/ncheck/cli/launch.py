"""launch: check the nodes, then become the program that starts the job on them."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examined import against, all_dropped, examined, say, say_in_vain
from ncheck.cli.options import CONFIG, COUNTS, GOOD, JOB, KEPT, NETWORK, RANKS, SSH, TIME, WHICH, WITH, options
from ncheck.cli.program import ProgramCommand, program_of
from ncheck.cli.run import one_file, settings_of
from ncheck.errors import EXIT_FINDINGS
from ncheck.model.plan import LAUNCHER_TABLE

if TYPE_CHECKING:
    from ncheck.model.plan import LaunchCommand
    from ncheck.model.report import Report
    from ncheck.settings import Settings


# What starts all ranks by one line. The others' lines are typed on every node, each with its own number.
STARTS_ALL = tuple(name for name, launcher in LAUNCHER_TABLE.items() if launcher.one_command)


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
    from ncheck.report.console import print_brief
    from ncheck.report.progress import observer_for

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
    command = None if all_dropped(report) else report.plan.command
    if command is None or (reasons and not settings.force):
        say("nothing was started" + (": --force starts it all the same" if command else ""))
        return EXIT_FINDINGS

    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    return start(command, report, force=settings.force)


_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and so would the program


_SECONDS = 10.0  # for mpirun --version


def start(command: LaunchCommand, report: Report, *, force: bool) -> int:
    """Become the program of the plan's line; return 1 where that cannot be."""
    program, argv, line = command.program, command.argv, next(iter(report.plan.lines.values()))
    first = report.nodes[0].name
    if shutil.which(program) is None:
        say(f"{program} is not on this machine; on the first node: ssh -t {shlex.quote(first)} {shlex.quote(line)}")
        return EXIT_FINDINGS
    if (other := _other_mpi(command)) and not force:
        say(f"{other}; on the first node: ssh -t {shlex.quote(first)} {shlex.quote(line)}")
        return EXIT_FINDINGS
    say(f"starting: {line}")
    sys.stdout.flush()
    sys.stderr.flush()
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  no shell is wanted
    except OSError as error:
        say(f"{argv[0]} cannot be started: {error.strerror}")
    return EXIT_FINDINGS


def _other_mpi(command: LaunchCommand) -> str:
    """Say that this machine's MPI is not the nodes', "" where it is: its daemons there would not understand it."""
    if not command.mpi_implementation:
        return ""
    from ncheck.facts.mpi import MpiFacts
    from ncheck.parse.mpi_version import parse_mpi

    try:
        said = subprocess.run(
            [command.program, "--version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command.program} --version does not work on this machine: {error}"
    ours = parse_mpi(said.stdout + said.stderr)
    here = MpiFacts(ours.implementation or "", ours.version) if ours and ours.version else None
    theirs = MpiFacts(command.mpi_implementation, command.mpi_version)
    if here and (here.implementation, here.release[:2]) == (theirs.implementation, theirs.release[:2]):
        return ""
    shown = f"{here.implementation} {here.version}" if here else "no MPI that ncheck knows"
    return f"{command.program} here is {shown}, and the nodes have {theirs.implementation} {theirs.version}"
