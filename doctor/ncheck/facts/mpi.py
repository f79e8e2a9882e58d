"""The mpirun that a job would start, and its version."""

from __future__ import annotations

from ncheck.facts.definition import Fact, exempt_in_job_unless, trouble
from ncheck.facts.mpi_daemon import MPI_DAEMON, PLAIN, MpiDaemonFacts, mpi_daemon
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.mpi_version import parse_mpi


@dataclass(frozen=True)
class MpiFacts:
    """The mpirun that a job would start: from the job's environment, else a plain login, else an interactive shell.

    `implementation`: Open MPI, MPICH, Intel MPI, Spectrum MPI.
    """

    implementation: str
    version: str
    path: str = ""

    @property
    def release(self) -> tuple[int, ...]:
        """The leading numbers of the version: (4, 1, 4); letters such as in 4.1.0rc1 end them."""
        numbers: list[int] = []
        for part in self.version.split("."):
            digits = part[: len(part) - len(part.lstrip("0123456789"))]
            if not digits:
                break
            numbers.append(int(digits))
            if digits != part:
                break
        return tuple(numbers)


MPIRUN = Command(("mpirun", "--version"))
MPIEXEC = Command(("mpiexec", "--version"))

# A virtual environment's mpirun shadows the system's: only the real path tells two installations apart.
REAL_PATH = Command(("sh", "-c", 'found=$(command -v mpirun || command -v mpiexec) && readlink -f "$found"'))


def mpi(evidence: Evidence) -> Read[MpiFacts]:
    """Read the version of mpirun, or of mpiexec if there is no mpirun. The job's own comes before the plain login's."""
    if elsewhere := _elsewhere(evidence):
        return elsewhere
    command = MPIEXEC if evidence.reply(MPIRUN).status is Status.MISSING else MPIRUN
    reply = evidence.reply(command)
    if why := trouble(command, reply):
        return Absent("no mpirun on the PATH of a non-interactive login") if isinstance(why, Absent) else why
    parsed = parse_mpi(reply.stdout + "\n" + reply.stderr)
    if parsed is None or parsed.implementation is None or parsed.version is None:
        lines = (reply.stdout or reply.stderr).strip().splitlines() or ["no output"]
        return Unread(f"{' '.join(command.argv)} prints no known version: {lines[0]}", fix=" ".join(command.argv))
    return MpiFacts(parsed.implementation, parsed.version, _line(evidence, REAL_PATH))


def _elsewhere(evidence: Evidence) -> MpiFacts | None:
    """Return the mpirun that only the job's environment or an interactive shell finds; None if there is none."""
    if not evidence.reply(MPI_DAEMON).succeeded:
        return None
    found = mpi_daemon(evidence)
    mpirun = found.starter if isinstance(found, MpiDaemonFacts) else None
    if mpirun is None or PLAIN in mpirun.found_by or not (mpirun.implementation and mpirun.version):
        return None
    return MpiFacts(mpirun.implementation, mpirun.version, mpirun.real_path)


def _line(evidence: Evidence, command: Command) -> str:
    reply = evidence.reply(command)
    return reply.stdout.strip() if reply.succeeded else ""


FACTS = (Fact(MpiFacts, (MPIRUN, MPIEXEC, REAL_PATH, MPI_DAEMON), mpi, exempt=exempt_in_job_unless("mpirun")),)
MPI_FAILS = "failing mpirun"  # what mpi-folder-missing explains
