"""launch: check the nodes, then become the program that starts the job on them."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import (
    all_dropped,
    blocking_reasons,
    examined,
    language_for,
    nodes_file,
    say,
    say_unused_ignores,
    settings_of,
)
from ncheck.cli.options import (
    CONFIG,
    COUNTS,
    FORCE,
    GOOD,
    HISTORY,
    JOB,
    KEPT,
    LANGUAGE,
    NETWORK,
    NODES,
    RANKS,
    SSH,
    STARTS_ALL,
    STORAGE,
    TIME,
    WHICH,
    WITH,
    ProgramCommand,
    options,
    program_of,
)
from ncheck.errors import EXIT_FINDINGS
from ncheck.launchers import LAUNCHER_TABLE
from ncheck.steps.rerun_line import with_nodes_of_run

if TYPE_CHECKING:
    from ncheck.model.plan import LaunchCommand
    from ncheck.model.report import Report


@click.command(cls=ProgramCommand, short_help="Check the nodes, then start the job on them.")
@NODES
@options(WITH, RANKS, FORCE, NETWORK, KEPT, GOOD, HISTORY, WHICH, SSH, JOB, STORAGE, TIME, COUNTS, CONFIG, LANGUAGE)
@click.pass_context
def launch(context: click.Context, /, nodes: tuple[str, ...], **flags: object) -> int:
    """Check the nodes, then start the job on them from this machine, with the line that ncheck plan prints.

    \b
    ncheck launch nodes.txt --with mpirun -- python train.py

    Run it where you would run mpirun: on one of the nodes, or on a machine in their network.

    The report goes to standard error. If an error affects the launch plan, nothing is started and the exit code is 1;
    --force starts the job anyway. ncheck then replaces itself by the program: input, output, signals and exit code are
    those of the program.
    """  # noqa: D301  click ends a paragraph's folding at \b
    given = {**flags, "nodes_file": nodes_file(context, nodes), "program": program_of(context)}
    settings = replace(settings_of(given), select=(), probe="none")  # all checks run, and no bandwidth test
    settings = replace(settings, launcher=settings.launcher or "mpirun")
    if settings.launcher not in STARTS_ALL:
        program = shlex.join(settings.program or ("python", "train.py"))
        line = with_nodes_of_run(f"ncheck plan nodes.txt --for {settings.launcher} -- {program}", settings)
        why = "must be started on every node" if settings.launcher in LAUNCHER_TABLE else "starts nothing"
        raise click.UsageError(f"{settings.launcher} {why}; to print what to type: {line}", context)
    if not settings.program:
        raise click.UsageError("missing program, as in: ncheck launch nodes.txt -- python train.py", context)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)  # raised for the connections; the job gets the original limit
    from ncheck.cli.examine import observer_for
    from ncheck.report.console import print_brief
    from ncheck.report.language import speaking

    report = examined(settings, observer_for(sys.stderr, os.environ, settings.longest))
    say_unused_ignores(settings.ignore, report)
    with speaking(language_for(settings.lang, sys.stderr)):
        print_brief(report, sys.stderr, os.environ)
    if report.interrupted:
        say("interrupted: nothing was started")
        return report.exit_code
    return _start_if_allowed(report, files, force=settings.force)


def _start_if_allowed(report: Report, files: tuple[int, int], *, force: bool) -> int:
    """Start the job, unless errors affect the launch plan."""
    reasons = blocking_reasons(report)
    for reason in (*reasons, *report.plan.notes):
        say(reason)
    command = None if all_dropped(report) else report.plan.command
    if command is None or (reasons and not force):
        say("nothing was started" + ("; --force starts it anyway" if command else ""))
        return EXIT_FINDINGS
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    return start(command, report, force=force)


_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and the program would inherit that
_SECONDS = 10.0  # for mpirun --version


def start(command: LaunchCommand, report: Report, *, force: bool) -> int:
    """Replace this process by the program of the plan's line; return 1 if that is impossible."""
    program, argv, line = command.program, command.argv, next(iter(report.plan.lines.values()))
    on_first = shlex.join(["ssh", "-t", report.nodes[0].name, line])
    if shutil.which(program) is None:
        say(f"{program} is not installed on this machine; on the first node: {on_first}")
        return EXIT_FINDINGS
    if (other := _other_mpi(command)) and not force:
        say(f"{other}; on the first node: {on_first}")
        return EXIT_FINDINGS
    say(f"starting: {line}")
    sys.stdout.flush()
    sys.stderr.flush()
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  no shell is wanted
    except OSError as error:
        say(f"cannot start {argv[0]}: {error.strerror}")
    return EXIT_FINDINGS


def _other_mpi(command: LaunchCommand) -> str:
    """Return how the MPI here differs from that of the nodes, whose daemons would not understand it; "" if equal."""
    if not command.mpi_implementation:
        return ""
    from ncheck.facts.mpi import MpiFacts
    from ncheck.parse.mpi_version import parse_mpi
    from ncheck.this_machine.process import run

    try:
        done = run([command.program, "--version"], _SECONDS)
    except OSError as error:
        return f"{command.program} --version does not work on this machine: {error}"
    if done.late:
        return f"{command.program} --version does not end on this machine within {_SECONDS:.0f} s"
    ours = parse_mpi(done.stdout + done.stderr)
    here = MpiFacts(ours.implementation or "", ours.version) if ours and ours.version else None
    theirs = MpiFacts(command.mpi_implementation, command.mpi_version)
    if here and (here.implementation, here.release[:2]) == (theirs.implementation, theirs.release[:2]):
        return ""
    shown = f"{here.implementation} {here.version}" if here else "no MPI that ncheck knows"
    return f"{command.program} here is {shown}, and the nodes have {theirs.implementation} {theirs.version}"
