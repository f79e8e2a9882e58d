"""From ncheck to the program that starts the job: this process becomes it.

Nothing stands between a terminal, a shell or a batch system and the job then: ^C, ^Z, hang-ups, signals by number,
standard input and the exit code are the program's own without any of them being handed on. A process that stayed to
hand them on could only lose some.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from doctor.commands.examined import say
from doctor.errors import EXIT_FINDINGS

if TYPE_CHECKING:
    from doctor.model.report import Report

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
    from doctor.parse.mpi_version import parse_mpi  # noqa: PLC0415  only where a job is started

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
