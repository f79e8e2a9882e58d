"""What every launch line needs: which MPI, which hosts, which network, which port; and what stands in its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

from doctor.advice.interface import Network
from doctor.advice.sight import Sight
from doctor.hostlist import fold
from doctor.model.facts import MpiFacts
from doctor.parity import split

PROGRAM = ("python", "train.py")


@dataclass(frozen=True)
class Launch:
    """One job over all listed nodes. `user` and `port` are what ssh must be told beside its own configuration."""

    mpi: MpiFacts
    slots: Mapping[str, int]
    network: Network | None
    variables: Mapping[str, str]
    port: int | None
    user: str | None
    as_root: bool

    @property
    def ranks(self) -> int:
        return sum(self.slots.values())

    @property
    def hosts(self) -> str:
        """Return the hosts with their slots: "node01:8,node02:8"."""
        return ",".join(f"{host}:{slots}" for host, slots in self.slots.items())

    @property
    def ssh_arguments(self) -> str:
        """Return what ssh must be told: "-p 2222 -l ada". No "=": Open MPI 5.0 cuts a value there."""
        port = f"-p {self.port}" if self.port not in (None, 22) else ""
        return " ".join(word for word in (port, f"-l {quote(self.user)}" if self.user else "") if word)


def typed(words: list[str]) -> str:
    """Return a line that a shell reads as these words; zsh would take =eth0 for the path of a program eth0."""
    return " ".join(f"'{word}'" if word.startswith("=") and quote(word) == word else quote(word) for word in words)


def same_mpi(sight: Sight) -> tuple[MpiFacts | None, str]:
    """Return the MPI that every reached node has, or why there is no line to give."""
    found = sight.known(MpiFacts)
    if unread := sight.unread(MpiFacts):
        return None, f"no mpirun line: MPI could not be read on {fold(unread)}: {next(iter(unread.values()))}"
    if not found:
        return None, "no mpirun line: no mpirun is on the PATH of a non-interactive login"
    if lacking := [node for node in sight.reached if node not in found]:
        return None, f"no mpirun line: {fold(lacking)} has no mpirun on the PATH of a non-interactive login"
    parted = split({node: f"{mpi.implementation} {_release(mpi)}" for node, mpi in found.items()})
    return (None, f"no mpirun line: MPI differs: {parted.told()}") if parted else (next(iter(found.values())), "")


def _release(mpi: MpiFacts) -> str:
    return ".".join(str(number) for number in mpi.release[:2]) or mpi.version


def same_way_in(sight: Sight, port: int | None) -> tuple[int | None, str | None, str]:
    """Return the one port and user that the listing asks for, or a note where nodes ask for several."""
    ports = {node.port if node.port is not None else port for node in sight.nodes}
    users = {node.user for node in sight.nodes}
    if len(ports) > 1 or len(users) > 1:
        return None, None, "nodes are listed with several ports or users: mpirun's ssh reads them from ~/.ssh/config"
    return ports.pop(), users.pop(), ""
