"""What comes before a job is started: its nodes are examined, and its command may be used here or not."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from ncheck.cli.examine import all_dropped, blocking_reasons, examined, language_for, say, say_unused_ignores

if TYPE_CHECKING:
    from ncheck.model.node import Node
    from ncheck.model.plan import LaunchCommand
    from ncheck.model.report import Report
    from ncheck.settings import Settings

_SECONDS = 10.0  # for mpirun --version


def checked(settings: Settings, listed: tuple[Node, ...] = ()) -> Report:
    """Examine the nodes, and print the report in short."""
    from ncheck.cli.examine import observer_for
    from ncheck.report.console import print_brief
    from ncheck.report.language import speaking

    report = examined(settings, observer_for(sys.stderr, os.environ, settings.longest), listed)
    say_unused_ignores(settings.ignore, report)
    with speaking(language_for(settings.lang, sys.stderr)):
        print_brief(report, sys.stderr, os.environ)
    say_news(report)
    return report


def say_news(report: Report) -> None:
    """Print what the history says of the run; it may be that the run is not in it."""
    for sentence in report.news:
        say(f"history: {sentence}")


def startable(report: Report, *, force: bool) -> LaunchCommand | None:
    """Return the command that starts the job, and print its line; None, with the reason printed, if it must not."""
    reasons = blocking_reasons(report)
    for reason in (*reasons, *report.plan.notes):
        say(reason)
    command = None if all_dropped(report) else report.plan.command
    if command is None or (reasons and not force):
        say("nothing was started" + ("; --force starts it anyway" if command else ""))
        return None
    program, line = command.program, next(iter(report.plan.lines.values()))
    on_first = shlex.join(["ssh", "-t", report.nodes[0].name, line])
    if shutil.which(program) is None:
        say(f"{program} is not installed on this machine; on the first node: {on_first}")
        return None
    if (other := other_mpi(command)) and not force:
        say(f"{other}; on the first node: {on_first}")
        return None
    say(f"starting: {line}")
    sys.stdout.flush()
    sys.stderr.flush()
    return command


def other_mpi(command: LaunchCommand) -> str:
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
