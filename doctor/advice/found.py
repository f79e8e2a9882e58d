"""What there is to launch with: which launcher, which MPI, which hosts, and which way in ssh must be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from doctor.advice.advice import Advice
from doctor.advice.launch import Host, NoLineError, Way, values_in
from doctor.advice.sight import Sight
from doctor.hostlist import fold, is_name
from doctor.model.facts import GpuFacts, IdentityFacts, InterpreterFacts, MpiFacts
from doctor.reasoning.parity import split
from doctor.settings import Settings

# The launchers that are a framework's own, and the package that brings each.
PACKAGES = {
    "horovodrun": "horovod", "torchrun": "torch", "deepspeed": "deepspeed", "accelerate": "accelerate",
    "paddle": "paddle", "oneflow": "oneflow", "tensorflow": "tensorflow",
}  # fmt: skip


def launcher_found(sight: Sight) -> str:
    """Return mpirun where any node has one, or torchrun where torch lives on all; else mpirun, which is missed then."""
    if sight.known(MpiFacts) or sight.unread(MpiFacts):
        return "mpirun"
    return "mpirun" if lacking(sight, "torchrun") else "torchrun"


def lacking(sight: Sight, launcher: str) -> tuple[str, ...]:
    """Return the reached nodes whose interpreter has not the package that the launcher comes with."""
    package = PACKAGES.get(launcher)
    if package is None:
        return ()
    known = sight.known(InterpreterFacts)
    return tuple(node for node in sight.reached if node not in known or package not in known[node].frameworks)


def same_mpi(sight: Sight) -> MpiFacts:
    """Return the MPI that every reached node has. Raises NoLineError where they have not one and the same."""
    found = sight.known(MpiFacts)
    if unread := sight.unread(MpiFacts):
        why = next(iter(unread.values()))
        raise NoLineError(f"MPI could not be read on {fold(unread)}: {why}")
    if not found:
        raise NoLineError("no mpirun is on the PATH of a non-interactive login")
    if without := [node for node in sight.reached if node not in found]:
        raise NoLineError(f"{fold(without)} has no mpirun on the PATH of a non-interactive login")
    if parted := split({node: f"{mpi.implementation} {_release(mpi)}" for node, mpi in found.items()}):
        raise NoLineError(f"MPI differs: {parted.told()}")
    return next(iter(found.values()))


def _release(mpi: MpiFacts) -> str:
    return ".".join(str(number) for number in mpi.release[:2]) or mpi.version


def host_names(sight: Sight) -> dict[str, str]:
    """Return what the nodes call themselves; a node that says what is no name is taken by the listed one."""
    said = {name: identity.host_name for name, identity in sight.known(IdentityFacts).items()}
    return {node.name: said[node.name] for node in sight.nodes if is_name(said.get(node.name, ""))}


def hosts(sight: Sight, advice: Advice, otherwise: int | None) -> tuple[Host, ...]:
    """Return the job's hosts in the order of the listing; `otherwise` are the slots where nothing else tells them."""
    gpus, slots, names = sight.known(GpuFacts), sight.slots(otherwise), host_names(sight)
    seats = advice.network.members if advice.network else {}
    return tuple(
        Host(
            "localhost" if node.local else node.name,
            slots[node.name],
            len(gpus[node.name].gpus) if node.name in gpus else 0,
            seats[node.name][0].ip if seats.get(node.name) else "",
            values_in(advice.per_node.get(node.name, {})),
            names.get(node.name, ""),
        )
        for node in sight.nodes
    )


# The launchers that log in to the nodes themselves.
BY_SSH = ("mpirun", "horovodrun", "deepspeed")


def way_in(sight: Sight, settings: Settings, launcher: str) -> tuple[Way, str]:
    """Return the one way in that all nodes are listed with, and a note on what cannot be told to the launcher's ssh."""
    if launcher not in BY_SSH:
        return Way(), ""
    ports = {node.port if node.port is not None else settings.port for node in sight.nodes}
    users = {node.user or settings.user for node in sight.nodes}
    config = None if settings.rehearsal or not settings.ssh_config else str(Path(settings.ssh_config).expanduser())
    files = (settings.identity, config)  # ssh itself knows ~ in -i, and not in -F
    way = Way(ports.pop() if len(ports) == 1 else None, users.pop() if len(users) == 1 else None, *files)
    if any(len(file.split()) > 1 for file in files if file):
        note = "a launcher parts what its ssh is told at blanks: name the file of -i or -F without one"
        return replace(way, identity=None, config=None), note
    if several := [what for what, told in (("ports", ports), ("users", users)) if len(told) > 1]:
        where = config or "~/.ssh/config"
        note = f"the nodes' {' and '.join(several)} differ, and {launcher} has no words for that: name them in {where}"
        return way, note
    return way, ""
