"""launch: check the nodes, then become the program that starts the job on them."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import nodes_file, say, settings_of
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
    RETRY,
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
from ncheck.cli.startable import checked, startable
from ncheck.errors import EXIT_FINDINGS
from ncheck.launchers import LAUNCHER_TABLE
from ncheck.steps.rerun_line import with_nodes_of_run

if TYPE_CHECKING:
    from ncheck.model.node import Node
    from ncheck.model.plan import LaunchCommand


@click.command(cls=ProgramCommand, short_help="Check the nodes, then start the job on them.")
@NODES
@options(
    WITH, RETRY, RANKS, FORCE, NETWORK, KEPT, GOOD, HISTORY, WHICH, SSH, JOB, STORAGE, TIME, COUNTS, CONFIG, LANGUAGE
)
@click.pass_context
def launch(
    context: click.Context, /, nodes: tuple[str, ...], retry: int | None, spare: tuple[str, ...], *, shrink: bool,
    **flags: object,
) -> int:  # fmt: skip
    """Check the nodes, then start the job on them from this machine, with the line that ncheck plan prints.

    \b
    ncheck launch nodes.txt --with mpirun -- python train.py

    Run it where you would run mpirun: on one of the nodes, or on a machine in their network.

    The report goes to standard error. If an error affects the launch plan, nothing is started and the exit code is 1;
    --force starts the job anyway. ncheck then replaces itself by the program: input, output, signals and exit code are
    those of the program. With --history ncheck waits for its end, to note it and the errors that links counted.

    With --retry 3 ncheck waits for the end of the program, and starts it up to three times more where its log says that
    this helps. A node loses its place to a spare only if a measurement with two other nodes proves its fault.
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
    if retry is not None:
        from ncheck.cli.retry import with_retries
        from ncheck.retry.plan import Limits

        return with_retries(settings, Limits(retry, shrink), spare, files)
    if spare or shrink:
        raise click.UsageError(f"{'--spare' if spare else '--shrink'} is for --retry N", context)
    listed: tuple[Node, ...] = ()  # the report reads them itself, unless they are asked again after the job
    if settings.history is not None:
        from ncheck.inventory.read import read_inventory

        listed = read_inventory(settings, stdin=sys.stdin.buffer, environ=os.environ)
    report = checked(settings, listed)
    if report.interrupted:
        say("interrupted: nothing was started")
        return report.exit_code
    command = startable(report, force=settings.force)
    if command is None:
        return EXIT_FINDINGS
    if listed:
        from ncheck.cli.retry import with_note

        return with_note(command, tuple(node for node in listed if node.name not in report.dropped), settings, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    return _start(command)


_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and the program would inherit that


def _start(command: LaunchCommand) -> int:
    """Replace this process by the program of the plan's line; return 1 if that is impossible."""
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command.argv[0], command.argv)  # noqa: S606  no shell is wanted
    except OSError as error:
        say(f"cannot start {command.argv[0]}: {error.strerror}")
    return EXIT_FINDINGS
