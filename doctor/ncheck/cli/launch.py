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

from ncheck.cli.examined import against, all_dropped, examined, say, say_in_vain
from ncheck.cli.options import CONFIG, COUNTS, GOOD, JOB, KEPT, NETWORK, RANKS, SSH, TIME, WHICH, WITH, options
from ncheck.cli.program import ProgramCommand, program_of
from ncheck.cli.run import one_file, settings_of
from ncheck.errors import EXIT_FINDINGS

if TYPE_CHECKING:
    from ncheck.model.report import Report
    from ncheck.settings import Settings


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
    possible = bool(report.plan.lines) and not all_dropped(report)
    if not possible or (reasons and not settings.force):
        say("nothing was started" + (": --force starts it all the same" if possible else ""))
        return EXIT_FINDINGS

    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    return start(next(iter(report.plan.lines.values())), report, force=settings.force)


_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and so would the program


_SECONDS = 10.0  # for mpirun --version


def start(line: str, report: Report, *, force: bool) -> int:
    """Become the program of this line; return 1 where that cannot be."""
    program = program_in(line)
    first = report.nodes[0].name
    if shutil.which(program) is None:
        say(f"{program} is not on this machine; on the first node: ssh -t {shlex.quote(first)} {shlex.quote(line)}")
        return EXIT_FINDINGS
    if (other := _other_mpi(program, report)) and not force:
        say(f"{other}; on the first node: ssh -t {shlex.quote(first)} {shlex.quote(line)}")
        return EXIT_FINDINGS
    say(f"starting: {line}")
    sys.stdout.flush()
    sys.stderr.flush()
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    argv = words_of(line)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  no shell is wanted
    except OSError as error:
        say(f"{argv[0]} cannot be started: {error.strerror}")
    return EXIT_FINDINGS


def words_of(line: str) -> list[str]:
    """Return the words to become. A line that does something first (`printf ... > hosts && deepspeed ...`) needs a
    shell, which then becomes its last program.
    """
    bare = list(_bare(line))
    if not any(char in "&>|;" for _, char in bare):
        return shlex.split(line)
    at = max(place for place, char in bare if char == "&") + 1
    return ["/bin/sh", "-c", f"{line[:at]} exec{line[at:]}"]


def program_in(line: str) -> str:
    """Return the program that a line starts in the end: past env and its variables, and what is done first."""
    last = shlex.split(line[max((place for place, char in _bare(line) if char == "&"), default=-1) + 1 :])
    words = (word for word in last if word != "env" and "=" not in word)
    return next(words, "")


def _bare(line: str) -> Iterator[tuple[int, str]]:
    """Yield the characters that stand outside of quotes, with their places."""
    quote = ""
    for place, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            yield place, char


def _other_mpi(program: str, report: Report) -> str:
    """Say that this machine's MPI is not the nodes', "" where it is: its daemons there would not understand it."""
    theirs = report.nodes[0].facts.get("MPI", "")
    if program not in ("mpirun", "mpiexec") or not theirs:
        return ""
    from ncheck.parse.mpi_version import parse_mpi

    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} --version does not work on this machine: {error}"
    ours = parse_mpi(said.stdout + said.stderr)
    here = f"{ours.implementation} {ours.version}" if ours and ours.version else "no MPI that ncheck knows"
    return "" if _release(here) == _release(theirs) else f"{program} here is {here}, and the nodes have {theirs}"


def _release(mpi: str) -> str:
    """Cut "Open MPI 4.1.4" to what must be equal: "Open MPI 4.1"."""
    return ".".join(mpi.split(".")[:2])
