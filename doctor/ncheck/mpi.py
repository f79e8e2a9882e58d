"""Which daemon mpirun's ssh starts on each node, where it is not to be had, why not, and whether --prefix helps.

Open MPI before 5 asks each node for orted by its name: the PATH of a plain ssh login decides, unless --prefix names
the folder, or that mpirun was built to act as if it did. Open MPI 5, MPICH and Intel MPI ask for the daemon in
mpirun's own folder, by its path. (So did 4.1.4, 5.0.11, 5.0.2 and 2021.18.)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname
from shlex import quote

from ncheck.facts.mpi_daemon import INTERACTIVE, LOGIN, PLAIN, MpiDaemonFacts, MpiProgram

Found = Mapping[str, MpiDaemonFacts]  # by node, in the order of the listing


_DAEMONS: Mapping[str, str] = {
    "Open MPI": "orted", "Spectrum MPI": "orted", "MPICH": "hydra_pmi_proxy", "MVAPICH2": "hydra_pmi_proxy",
    "Intel MPI": "hydra_bstrap_proxy",
}  # fmt: skip


_LAST_OF_ORTED = 4


_PERSONS = {INTERACTIVE: "an interactive shell", LOGIN: "a login shell"}


# /opt/openmpi-4.1.6: what can stand in a start-up file and between double quotes as it is
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+", re.ASCII)


@dataclass(frozen=True)
class Lack:
    """A node that mpirun cannot start its daemon on: why, and a line to type."""

    node: str
    cause: str
    fix: str


@dataclass(frozen=True)
class Start:
    """The mpirun that the first node would start, and what it asks the others for."""

    node: str
    mpirun: MpiProgram
    daemon: str

    @property
    def by_name(self) -> bool:
        """Tell whether it leaves it to the node's PATH where the daemon lies."""
        return self.daemon == "orted" and not self.mpirun.prefix_by_default

    @property
    def told(self) -> str:
        return f"{self.mpirun.implementation} {self.mpirun.version}"

    def started(self, facts: MpiDaemonFacts) -> MpiProgram | None:
        """Return the daemon that it starts on a node, whether it runs or not; None where there is none."""
        named = (one for one in facts.daemons if one.name == self.daemon)
        return next((one for one in named if self._is_asked_for(one)), None)

    def _is_asked_for(self, daemon: MpiProgram) -> bool:
        if self.by_name:
            return PLAIN in daemon.found_by
        own = {dirname(self.mpirun.path), dirname(self.mpirun.real_path)}
        return not own.isdisjoint((dirname(daemon.path), dirname(daemon.real_path)))


def start_of(found: Found) -> Start | None:
    """Return the start that the nodes are judged by: the first node's that has an mpirun; None where none is known."""
    for node, facts in found.items():
        if facts.starter and (daemon := _daemon(facts.starter)):
            return Start(node, facts.starter, daemon)
    return None


def _daemon(mpirun: MpiProgram) -> str | None:
    first = mpirun.version.partition(".")[0]
    if mpirun.implementation == "Open MPI" and first.isdecimal() and int(first) > _LAST_OF_ORTED:
        return "prted"
    return _DAEMONS.get(mpirun.implementation)


def lacks(found: Found, start: Start) -> Iterator[Lack]:
    """Yield the nodes on which the daemon is not found, or does not run."""
    for node, facts in found.items():
        daemon = start.started(facts)
        if daemon is None:
            yield _missing(node, facts, start)
        elif daemon.trouble and (start.by_name or not daemon.helped):
            yield Lack(node, f"{daemon.path} is there and does not run: {daemon.trouble}", _libraries(node, daemon))


def differing(found: Found, start: Start) -> dict[str, MpiProgram]:
    """Return the nodes whose daemon is of another release than mpirun, as far as both tell theirs."""
    started = {node: daemon for node, facts in found.items() if (daemon := start.started(facts))}
    own = (start.mpirun.implementation, start.mpirun.release)
    return {
        node: daemon
        for node, daemon in started.items()
        if daemon.version and (daemon.implementation, daemon.release) != own
    }


def untold(found: Found, start: Start) -> tuple[str, ...]:
    """Return the nodes whose daemon is there, and nothing beside it says of which release it is."""
    started = {node: start.started(facts) for node, facts in found.items()}
    return tuple(node for node, daemon in started.items() if daemon and not daemon.version)


def prefix_for(found: Found) -> str | None:
    """Return what --prefix must be: mpirun's own installation, where a node's plain login does not lead to it and
    every node has it there. None where nothing need be said, or nothing said helps.
    """
    start = start_of(found)
    if start is None or not start.by_name or not (any(lacks(found, start)) or differing(found, start)):
        return None
    return next((prefix for prefix in start.mpirun.prefixes if _everywhere(found, start, prefix)), None)


def _everywhere(found: Found, start: Start, prefix: str) -> bool:
    return all(any(_fits(daemon, start, prefix) for daemon in facts.daemons) for facts in found.values())


def _fits(daemon: MpiProgram, start: Start, prefix: str) -> bool:
    runs = not daemon.trouble or daemon.helped
    return daemon.name == start.daemon and prefix in daemon.prefixes and runs and daemon.release == start.mpirun.release


def _missing(node: str, facts: MpiDaemonFacts, start: Start) -> Lack:
    """Tell where the daemon is instead, by whom it is found, and what keeps the plain login from it."""
    there = [one for one in facts.daemons if one.name == start.daemon]
    daemon = next((one for one in there if not _PERSONS.keys().isdisjoint(one.found_by)), there[0] if there else None)
    if daemon is None:
        unasked = "".join(f"; {why}" for why in facts.shells.values())
        return Lack(
            node, f"no shell there finds one, nor do the usual folders hold one{unasked}", _install(node, start)
        )
    if not start.by_name:
        return Lack(node, f"it lies at {daemon.path}", _install(node, start))
    persons = " and ".join(told for way, told in _PERSONS.items() if way in daemon.found_by)
    if not persons:
        return Lack(
            node, f"it lies at {daemon.path}, and no shell has that folder on its PATH", _export(node, daemon, 0)
        )
    if early := facts.early_return:
        why = f"{early.file} line {early.line} ({early.text}) returns before its exports where no person is there"
        return Lack(node, f"{why}; {persons} finds {daemon.path}", _export(node, daemon, early.line))
    whence = " (a module or a profile sets its PATH)" if persons == _PERSONS[LOGIN] else ""
    return Lack(node, f"only {persons} finds {daemon.path}{whence}", _export(node, daemon, 0))


def _export(node: str, daemon: MpiProgram, above: int) -> str:
    """Return the line that puts the folder on the plain login's PATH: above what returns early, else at the end."""
    folder = dirname(daemon.path)
    if not _PLAIN_PATH.fullmatch(folder):
        return f"ssh {quote(node)} {quote(f'ls -l {quote(daemon.path)}')}"
    export = f"export PATH={folder}:\\$PATH"
    put = f'sed -i --follow-symlinks "1i {export}" ~/.bashrc' if above else f'echo "{export}" >> ~/.bashrc'
    return f"ssh {quote(node)} {quote(put)}"


def _libraries(node: str, daemon: MpiProgram) -> str:
    return f"ssh {quote(node)} {quote(f'ldd {quote(daemon.path)}')}"


def _install(node: str, start: Start) -> str:
    """Return the line that brings the installation over: by the system's packages where it is theirs."""
    prefix = next(iter(start.mpirun.prefixes), "")
    if prefix in ("", "/usr", "/"):
        package = {"orted": "openmpi-bin", "prted": "openmpi-bin", "hydra_pmi_proxy": "mpich"}.get(start.daemon)
        return f"ssh -t {quote(node)} sudo apt-get install {package or 'intel-oneapi-mpi'}"
    return f"ssh {quote(start.node)} {quote(shlex.join(['rsync', '-a', f'{prefix}/', f'{node}:{prefix}/']))}"
