"""launch: check the nodes, then become the program that starts the job on them."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ncheck.cli.examine import (
    all_dropped,
    blocking_reasons,
    examined,
    nodes_file,
    say,
    say_unused_ignores,
    settings_of,
)
from ncheck.cli.options import (
    CONFIG,
    COUNTS,
    GOOD,
    JOB,
    KEPT,
    NETWORK,
    RANKS,
    SSH,
    TIME,
    WHICH,
    WITH,
    ProgramCommand,
    options,
    program_of,
)
from ncheck.errors import EXIT_FINDINGS

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.settings import Settings


# These start all ranks from one command line. The lines of the others are typed on every node.
STARTS_ALL = ("mpirun", "horovodrun", "srun", "deepspeed")


@click.command(cls=ProgramCommand, short_help="Check the nodes, then start the job on them.")
@click.argument("nodes", nargs=-1, metavar="[NODES]")
@options(WITH, RANKS, NETWORK, KEPT, GOOD, WHICH, SSH, JOB, TIME, COUNTS, CONFIG)
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
    if settings.launcher not in STARTS_ALL:
        how = f"ncheck plan --for {settings.launcher} -- {shlex.join(settings.program or ('python', 'train.py'))}"
        raise click.UsageError(
            f"{settings.launcher} must be started on every node; to print its command lines: {how}", context
        )
    if not settings.program:
        raise click.UsageError("missing program, as in: ncheck launch nodes.txt -- python train.py", context)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)  # raised for the connections; the job gets the original limit
    from ncheck.report.console import print_brief
    from ncheck.report.progress import observer_for

    report = examined(settings, observer_for(sys.stderr, os.environ))
    say_unused_ignores(settings, report)
    print_brief(report, sys.stderr, os.environ)
    if report.interrupted:
        say("interrupted: nothing was started")
        return report.exit_code
    return _start_if_allowed(report, settings, files)


def _start_if_allowed(report: Report, settings: Settings, files: tuple[int, int]) -> int:
    """Start the job, unless errors affect the launch plan."""
    reasons = blocking_reasons(report, settings)
    for reason in (*reasons, *report.plan.notes):
        say(reason)
    possible = bool(report.plan.lines) and not all_dropped(report)
    if not possible or (reasons and not settings.force):
        say("nothing was started" + ("; --force starts it anyway" if possible else ""))
        return EXIT_FINDINGS
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    return start(next(iter(report.plan.lines.values())), report, force=settings.force)


_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and the program would inherit that


_SECONDS = 10.0  # for mpirun --version


def start(line: str, report: Report, *, force: bool) -> int:
    """Replace this process by the program of this line; return 1 if that is impossible."""
    program = program_in(line)
    on_first = shlex.join(["ssh", "-t", report.nodes[0].name, line])
    if shutil.which(program) is None:
        say(f"{program} is not installed on this machine; on the first node: {on_first}")
        return EXIT_FINDINGS
    if (other := _other_mpi(program, report)) and not force:
        say(f"{other}; on the first node: {on_first}")
        return EXIT_FINDINGS
    say(f"starting: {line}")
    sys.stdout.flush()
    sys.stderr.flush()
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    argv = argv_of(line)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  no shell is wanted
    except OSError as error:
        say(f"cannot start {argv[0]}: {error.strerror}")
    return EXIT_FINDINGS


def argv_of(line: str) -> list[str]:
    """Return the argv of a line. A line of several commands (`printf ... > hosts && deepspeed ...`) needs a shell,
    which then replaces itself by the last one.
    """
    bare = list(_unquoted(line))
    if not any(char in "&>|;" for _, char in bare):
        return shlex.split(line)
    at = max(place for place, char in bare if char == "&") + 1
    return ["/bin/sh", "-c", f"{line[:at]} exec{line[at:]}"]


def program_in(line: str) -> str:
    """Return the last program that a line starts, after env and its variables."""
    last = shlex.split(line[max((place for place, char in _unquoted(line) if char == "&"), default=-1) + 1 :])
    words = (word for word in last if word != "env" and "=" not in word)
    return next(words, "")


def _unquoted(line: str) -> Iterator[tuple[int, str]]:
    """Yield the positions and characters outside of quotes."""
    quote = ""
    for position, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            yield position, char


def _other_mpi(program: str, report: Report) -> str:
    """Return how the MPI here differs from that of the nodes, whose daemons would not understand it; "" if equal."""
    theirs = report.nodes[0].facts.get("MPI", "")
    if program not in ("mpirun", "mpiexec") or not theirs:
        return ""
    from ncheck.parse.mpi_version import parse_mpi

    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} --version does not work on this machine: {error}"
    ours = parse_mpi(done.stdout + done.stderr)
    here = f"{ours.implementation} {ours.version}" if ours and ours.version else "an unknown MPI"
    return (
        ""
        if _release(here) == _release(theirs)
        else f"{program} on this machine is {here}, but the nodes have {theirs}"
    )


def _release(mpi: str) -> str:
    """Return the part that must be equal: "Open MPI 4.1" of "Open MPI 4.1.4"."""
    return ".".join(mpi.split(".")[:2])
