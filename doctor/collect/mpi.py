"""The MPI that a non-interactive login finds: mpirun's own word, and its real path."""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Status
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import MpiFacts
from doctor.parse.mpi_version import parse_mpi

MPIRUN = Command(("mpirun", "--version"))
MPIEXEC = Command(("mpiexec", "--version"))
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
    return MpiFacts(said.implementation, said.version, _line(evidence, REAL_PATH))


def _line(evidence: Evidence, command: Command) -> str:
    reply = evidence.reply(command)
    return reply.stdout.strip() if reply.succeeded else ""


READERS = (Reader(MpiFacts, (MPIRUN, MPIEXEC, REAL_PATH), mpi),)
