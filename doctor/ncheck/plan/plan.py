"""Facts to a launch plan: the variables and the line for this job, each with its reason. Fewer is better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold, is_name
from ncheck.local_host import Head
from ncheck.model.cluster import Facts
from ncheck.model.node import Node
from ncheck.model.plan import MEETING_PORTS, LaunchPlan, Setting
from ncheck.mpi import prefix_for
from ncheck.nccl.choice import LINK_STATE_COUNTS, settings_in_force
from ncheck.parity import split
from ncheck.plan.advice import Advice
from ncheck.plan.interface import advise
from ncheck.plan.launch import PROGRAM, Host, Launch, Line, Maker, NoLineError, Way, out_of_band, values_in
from ncheck.plan.launchers import (
    FILES,
    accelerate_line,
    deepspeed_line,
    horovodrun_line,
    intel_mpi_line,
    mpich_line,
    oneflow_line,
    open_mpi_line,
    paddle_line,
    srun_line,
    tensorflow_line,
    torchrun_line,
)
from ncheck.plan.sight import Sight, sight_of
from ncheck.settings import Settings

# The command's own name and the maker of its line, by implementation.
MPI_LINES: Mapping[str, tuple[str, Maker]] = {
    "Open MPI": ("mpirun", open_mpi_line),
    "MPICH": ("mpiexec", mpich_line),
    "Intel MPI": ("mpiexec", intel_mpi_line),
}


LINES: Mapping[str, Maker] = {
    "horovodrun": horovodrun_line,
    "torchrun": torchrun_line,
    "srun": srun_line,
    "deepspeed": deepspeed_line,
    "accelerate": accelerate_line,
    "paddle": paddle_line,
    "oneflow": oneflow_line,
    "tensorflow": tensorflow_line,
}


_NOTHING_REACHED = LaunchPlan(
    {"NCCL_SOCKET_IFNAME": Setting(None, "not known: no node was reached", decided=False)},
    notes=("no node was reached: there is nothing to plan with",),
)


def propose(
    nodes: Sequence[Node],
    facts: Mapping[str, Facts],
    settings: Settings,
    *,
    user_is_root: bool,
    head: Head | None = None,
) -> LaunchPlan:
    """Return the plan for a job over all listed nodes; what could not be decided stands in its notes, with why.

    `head` is the machine on which the line is typed, None where it is not known and taken to be like the nodes.
    """
    sight = sight_of(nodes, facts)
    if not sight.reached:
        return _NOTHING_REACHED
    advice = advise(sight)
    plan = LaunchPlan(advice.env, notes=(*_missing(sight, settings), *advice.notes), per_node=advice.per_node)
    launcher = settings.launcher or launcher_found(sight)
    try:
        variables = _variables(sight, advice)
        if launcher in FILES:
            return replace(plan, lines={launcher: FILES[launcher](plan, host_names(sight))})
        launch, note = _launch(sight, advice, settings, launcher, variables)
        launch = _typed_on(head, replace(launch, as_root=user_is_root), sight)
        unused = _no_use(settings, launcher, launch)
        notes = (*_without_package(sight, launcher), *unused, *([note] if note else []))
        return _with_line(plan, launcher, launch, notes)
    except NoLineError as error:
        return replace(plan, notes=(*plan.notes, f"no {launcher} line: {error}"))


def mpi_launch(
    nodes: Sequence[Node],
    facts: Mapping[str, Facts],
    settings: Settings,
    *,
    user_is_root: bool,
    head: Head | None = None,
) -> Launch:
    """Return what the plan's mpirun line is made of, whichever line the plan shows. Raises NoLineError."""
    sight = sight_of(nodes, facts)
    if not sight.reached:
        raise NoLineError("no node was reached")
    advice = advise(sight)
    launch, _ = _launch(sight, advice, settings, "mpirun", _variables(sight, advice))
    return _typed_on(head, replace(launch, as_root=user_is_root), sight)


def mpi_line(launch: Launch) -> str:
    """Return the line of the MPI that was found. Raises NoLineError."""
    return _line("mpirun", launch)[1].text


def _with_line(plan: LaunchPlan, launcher: str, launch: Launch, notes: tuple[str, ...]) -> LaunchPlan:
    name, line = _line(launcher, launch)
    reasons = {name: (_found(launch) + (line.starts or _ranks(launch)), *line.reasons)}
    return replace(plan, lines={name: line.text}, notes=(*plan.notes, *notes), reasons=reasons)


def _line(launcher: str, launch: Launch) -> tuple[str, Line]:
    """Return the line under the name of the command that it calls."""
    if launch.mpi is None:
        return launcher, LINES[launcher](launch)
    if launch.mpi.implementation not in MPI_LINES:
        found = f"{launch.mpi.implementation} {launch.mpi.version}"
        raise NoLineError(f"ncheck knows none for {found}")
    name, maker = MPI_LINES[launch.mpi.implementation]
    return name, maker(launch)


def _launch(
    sight: Sight, advice: Advice, settings: Settings, launcher: str, variables: Mapping[str, str]
) -> tuple[Launch, str]:
    """Return what a line is made of, and a note on what it cannot say."""
    mpi = same_mpi(sight) if launcher == "mpirun" else None
    way, note = way_in(sight, settings, launcher)
    launch = Launch(
        hosts=hosts(sight, advice, settings.slots),
        network=advice.network,
        variables=variables,
        way=way,
        program=settings.program or PROGRAM,
        meeting_port=settings.master_port or MEETING_PORTS.get(launcher, 0),
        mpi=mpi,
        profile=settings.profile or "slot",
        prefix=prefix_for(sight.known(MpiDaemonFacts)) if mpi and mpi.implementation == "Open MPI" else None,
        interfaces=tuple(frozenset(nic.name for nic in nics.interfaces) for nics in sight.known(NicFacts).values()),
    )
    return launch, note


def _typed_on(head: Head | None, launch: Launch, sight: Sight) -> Launch:
    """Return the launch with what depends on the machine that it is typed on."""
    found = sight.known(EnvironmentFacts).values()
    known = [*(frozenset(env.variables) for env in found), *([head.variables] if head else [])]
    return replace(
        launch,
        head=head,
        as_root=launch.as_root or (head is not None and head.root),
        out_of_band=out_of_band(sight, launch.network, head) if launch.network else None,
        libraries=not found or any("LD_LIBRARY_PATH" in names for names in known),
    )


def _variables(sight: Sight, advice: Advice) -> dict[str, str]:
    """Return the variables of the job.

    NCCL says nothing of its own errors unless NCCL_DEBUG is set; somebody's own choice of it is left alone.
    """
    found = values_in(advice.env)
    own = (settings_in_force(env, LINK_STATE_COUNTS) for env in sight.known(EnvironmentFacts).values())
    if sight.known(LoadedNcclFacts) and not any("NCCL_DEBUG" in settings for settings in own):
        found["NCCL_DEBUG"] = "WARN"
    return found


def _missing(sight: Sight, settings: Settings) -> Iterator[str]:
    if sight.unreached:
        absent = fold(sight.unreached)
        yield f"the plan is for all listed nodes; {absent} was not reached and is taken to be like the rest"
    dark = [node.name for node in sight.nodes if node.name in sight.unread(GpuFacts) and not node.slots]
    if dark and not settings.slots:
        yield f"the GPUs of {fold(dark)} could not be read: the slots there are taken to be like the rest"
    if dark := list(sight.unread(EnvironmentFacts)):
        yield f"the environment of {fold(dark)} could not be read: NCCL's variables are taken to be unset there"
    if idle := [node.name for node in sight.nodes if node.slots and node.slots < sight.gpus.get(node.name, 0)]:
        yield f"{fold(idle)} is listed with fewer slots than GPUs: the other GPUs there stay idle"


def _without_package(sight: Sight, launcher: str) -> tuple[str, ...]:
    if without := lacking(sight, launcher):
        package = PACKAGES[launcher]
        return (f"no {package} was found in the interpreter of {fold(without)}: --python PATH names another one",)
    return ()


def _no_use(settings: Settings, launcher: str, launch: Launch) -> Iterator[str]:
    """Say what was asked for and no line of this launcher takes."""
    if settings.profile and not (launch.mpi and launch.mpi.implementation == "Open MPI"):
        yield f"--profile {settings.profile} is for Open MPI's mpirun, and changes nothing here"
    if settings.master_port and launcher not in MEETING_PORTS:
        yield f"--master-port {settings.master_port} is looked at, and has no place in {launcher}'s line"


def _ranks(launch: Launch) -> str:
    """Say where the number of ranks is from."""
    ranks = "1 rank" if launch.ranks == 1 else f"{launch.ranks} ranks"
    return f"{ranks}: the listed slots, else the GPUs"


def _found(launch: Launch) -> str:
    return f"for {launch.mpi.implementation} {launch.mpi.version}; " if launch.mpi else ""


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
        raise NoLineError(f"MPI differs: {parted.summary()}")
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
