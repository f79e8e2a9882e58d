"""The MPI that a non-interactive login finds: mpirun's own word, its real path, and where Open MPI was installed."""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Status
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import MpiFacts
from doctor.parse.mpi_version import Mpi, parse_mpi

MPIRUN = Command(("mpirun", "--version"))
MPIEXEC = Command(("mpiexec", "--version"))
OMPI_INFO = Command(("ompi_info", "--parsable"))
# A virtual environment's mpirun shadows the system's: only the real path tells two installations apart.
REAL_PATH = Command(("sh", "-c", 'found=$(command -v mpirun || command -v mpiexec) && readlink -f "$found"'))


def mpi(evidence: Evidence) -> Read[MpiFacts]:
    """Read mpirun's version, or mpiexec's where there is no mpirun."""
    command = MPIEXEC if evidence.reply(MPIRUN).status is Status.MISSING else MPIRUN
    reply = evidence.reply(command)
    if why := trouble(command, reply):
        return Absent("no mpirun on the PATH of a non-interactive login") if isinstance(why, Absent) else why
    said = parse_mpi(reply.stdout + "\n" + reply.stderr)
    if said is None or said.implementation is None or said.version is None:
        words = (reply.stdout or reply.stderr).strip().splitlines() or ["nothing"]
        return Unread(f"{' '.join(command.argv)} says nothing known: {words[0]}", fix=" ".join(command.argv))
    return MpiFacts(said.implementation, said.version, _line(evidence, REAL_PATH), _prefix(evidence, said))


def _prefix(evidence: Evidence, said: Mpi) -> str:
    """Return where Open MPI was installed, as its own ompi_info tells it, of this same version."""
    reply = evidence.reply(OMPI_INFO)
    told = parse_mpi(reply.stdout) if reply.succeeded else None
    return told.prefix or "" if told and told.version == said.version else ""


def _line(evidence: Evidence, command: Command) -> str:
    reply = evidence.reply(command)
    return reply.stdout.strip() if reply.succeeded else ""


READERS = (Reader(MpiFacts, (MPIRUN, MPIEXEC, OMPI_INFO, REAL_PATH), mpi),)
