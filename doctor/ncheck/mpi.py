"""Which daemon mpirun starts on each node over ssh; if it cannot, why not, and whether --prefix helps.

Open MPI before 5 asks each node for orted by name: the PATH of a plain ssh login decides, unless --prefix names
the folder, or mpirun was built to act as if it did. Open MPI 5, MPICH and Intel MPI ask for the daemon in
mpirun's own folder, by its path. (Observed with 4.1.4, 5.0.11, 5.0.2 and 2021.18.)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from posixpath import dirname
from shlex import quote
from types import MappingProxyType

from ncheck.expression import expression
from ncheck.facts.mpi_daemon import INTERACTIVE, LOGIN, PLAIN, MpiDaemonFacts, MpiProgram
from ncheck.facts.os_release import OsFacts, command_to_install
from ncheck.lazy_dataclass import dataclass

Nodes = Mapping[str, MpiDaemonFacts]  # in the order of the list

_DAEMONS: Mapping[str, str] = {
    "Open MPI": "orted", "Spectrum MPI": "orted", "MPICH": "hydra_pmi_proxy", "MVAPICH2": "hydra_pmi_proxy",
    "Intel MPI": "hydra_bstrap_proxy",
}  # fmt: skip

_LAST_WITH_ORTED = 4  # later major releases of Open MPI start prted

_USERS_SHELLS = {INTERACTIVE: "an interactive shell", LOGIN: "a login shell"}

# /opt/openmpi-4.1.6: what needs no quoting in a start-up file and between double quotes
_PLAIN_PATH = expression(r"[A-Za-z0-9_./+-]+", re.ASCII)


@dataclass(frozen=True)
class MissingDaemon:
    """A node on which mpirun cannot start its daemon: the reason, and a command to type there, or on `where`."""

    node: str
    cause: str
    fix: str
    where: str = ""
    look: bool = False


@dataclass(frozen=True)
class Starter:
    """The mpirun that a job would use, the node that has it, and the daemon that it needs on all nodes."""

    node: str
    mpirun: MpiProgram
    daemon: str

    @property
    def by_name(self) -> bool:
        """Whether the node's PATH decides which daemon is started."""
        return self.daemon == "orted" and not self.mpirun.prefix_by_default

    @property
    def described(self) -> str:
        """Return "Open MPI 4.1.4"."""
        return f"{self.mpirun.implementation} {self.mpirun.version}"

    def started(self, facts: MpiDaemonFacts) -> MpiProgram | None:
        """Return the daemon that it starts on a node, whether that runs or not; None if there is none."""
        named = (daemon for daemon in facts.daemons if daemon.name == self.daemon)
        return next((daemon for daemon in named if self._asks_for(daemon)), None)

    def _asks_for(self, daemon: MpiProgram) -> bool:
        if self.by_name:
            return PLAIN in daemon.found_by
        own = {dirname(self.mpirun.path), dirname(self.mpirun.real_path)}
        return not own.isdisjoint((dirname(daemon.path), dirname(daemon.real_path)))


def starter_of(nodes: Nodes) -> Starter | None:
    """Return the mpirun of the first node that has one; None if no node has one whose daemon ncheck knows."""
    for node, facts in nodes.items():
        if facts.starter and (daemon := _daemon_of(facts.starter)):
            return Starter(node, facts.starter, daemon)
    return None


def _daemon_of(mpirun: MpiProgram) -> str | None:
    major = mpirun.version.partition(".")[0]
    if mpirun.implementation == "Open MPI" and major.isdecimal() and int(major) > _LAST_WITH_ORTED:
        return "prted"
    return _DAEMONS.get(mpirun.implementation)


def missing_daemons(
    nodes: Nodes, starter: Starter, systems: Mapping[str, OsFacts] = MappingProxyType({})
) -> Iterator[MissingDaemon]:
    """Yield the nodes on which the daemon is not found or does not run. `systems` are their distributions."""
    for node, facts in nodes.items():
        daemon = starter.started(facts)
        if daemon is None:
            yield _not_found(node, facts, starter, systems.get(node))
        elif daemon.trouble and (starter.by_name or not daemon.helped):
            cause = f"{daemon.path} exists but does not run: {daemon.trouble}"
            yield MissingDaemon(node, cause, f"ldd {quote(daemon.path)}", look=True)


def other_releases(nodes: Nodes, starter: Starter) -> dict[str, MpiProgram]:
    """Return the nodes whose daemon is of another release than mpirun, as far as both are known."""
    own = (starter.mpirun.implementation, starter.mpirun.release)
    return {
        node: daemon
        for node, facts in nodes.items()
        if (daemon := starter.started(facts)) and daemon.version and (daemon.implementation, daemon.release) != own
    }


def unknown_releases(nodes: Nodes, starter: Starter) -> tuple[str, ...]:
    """Return the nodes whose daemon exists but has no known release."""
    started = {node: starter.started(facts) for node, facts in nodes.items()}
    return tuple(node for node, daemon in started.items() if daemon and not daemon.version)


def prefix_for(nodes: Nodes) -> str | None:
    """Return the value for --prefix: mpirun's installation, if a node's plain login does not find it and every node
    has it in the same folder. None if no --prefix is needed, or none helps.
    """
    starter = starter_of(nodes)
    if starter is None or not starter.by_name:
        return None
    if not any(missing_daemons(nodes, starter)) and not other_releases(nodes, starter):
        return None
    return next((prefix for prefix in starter.mpirun.prefixes if _everywhere(nodes, starter, prefix)), None)


def _everywhere(nodes: Nodes, starter: Starter, prefix: str) -> bool:
    return all(any(_fits(daemon, starter, prefix) for daemon in facts.daemons) for facts in nodes.values())


def _fits(daemon: MpiProgram, starter: Starter, prefix: str) -> bool:
    runs = not daemon.trouble or daemon.helped
    same_release = daemon.release == starter.mpirun.release
    return daemon.name == starter.daemon and prefix in daemon.prefixes and runs and same_release


def _not_found(node: str, facts: MpiDaemonFacts, starter: Starter, system: OsFacts | None) -> MissingDaemon:
    """Return where the daemon is instead, which shell finds it, and why the plain login does not."""
    named = [daemon for daemon in facts.daemons if daemon.name == starter.daemon]
    in_a_shell = (daemon for daemon in named if not _USERS_SHELLS.keys().isdisjoint(daemon.found_by))
    daemon = next(in_a_shell, named[0] if named else None)
    if daemon is None:
        not_asked = "".join(f"; {reason}" for reason in facts.shells.values())
        cause = f"it is neither on the PATH of any shell there nor in the usual folders{not_asked}"
        return _to_install(node, cause, starter, system)
    if not starter.by_name:
        return _to_install(node, f"it is at {daemon.path}", starter, system)
    shells = " and ".join(name for shell, name in _USERS_SHELLS.items() if shell in daemon.found_by)
    if not shells:
        return _to_export(node, f"it is at {daemon.path}, which is on no shell's PATH", daemon)
    if early := facts.early_return:
        cause = f"{early.file} line {early.line} ({early.text}) returns before the exports in non-interactive shells"
        return _to_export(node, f"{cause}; {shells} finds {daemon.path}", daemon, first=early.line > 0)
    source = " (a module or a profile sets its PATH)" if shells == _USERS_SHELLS[LOGIN] else ""
    return _to_export(node, f"only {shells} finds {daemon.path}{source}", daemon)


def _to_export(node: str, cause: str, daemon: MpiProgram, *, first: bool = False) -> MissingDaemon:
    """Return the command that adds the folder to the plain login's PATH: in ~/.bashrc's first line, or at its end."""
    folder = dirname(daemon.path)
    if not _PLAIN_PATH.fullmatch(folder):
        return MissingDaemon(node, cause, f"ls -l {quote(daemon.path)}", look=True)
    export = f"export PATH={folder}:\\$PATH"
    edit = f'sed -i --follow-symlinks "1i {export}" ~/.bashrc' if first else f'echo "{export}" >> ~/.bashrc'
    return MissingDaemon(node, cause, edit)


_OPEN_MPI = {"apt-get": ("openmpi-bin",), "dnf": ("openmpi",), "zypper": ("openmpi4",)}
_PACKAGES = {"orted": _OPEN_MPI, "prted": _OPEN_MPI, "hydra_pmi_proxy": dict.fromkeys(_OPEN_MPI, ("mpich",))}


def _to_install(node: str, cause: str, starter: Starter, system: OsFacts | None) -> MissingDaemon:
    """Return the command that installs the daemon: from the system's packages if mpirun is from there, else a copy."""
    prefix = next(iter(starter.mpirun.prefixes), "")
    if prefix in ("", "/usr", "/"):
        packages = _PACKAGES.get(starter.daemon, dict.fromkeys(_OPEN_MPI, ("intel-oneapi-mpi",)))
        return MissingDaemon(node, cause, command_to_install(packages, system))
    copy = shlex.join(("rsync", "-a", f"{prefix}/", f"{node}:{prefix}/"))
    return MissingDaemon(node, cause, copy, where=starter.node)
