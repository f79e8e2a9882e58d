"""From facts to a launch plan: the variables and the command line of this job, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.mpi_settings import MpiSettingsFacts, excluded_everywhere
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold, is_name
from ncheck.inventory.read import SLURM_LISTS
from ncheck.launchers import LAUNCHER_TABLE, MEETING_PORTS
from ncheck.model.cluster import Cluster
from ncheck.model.plan import LaunchCommand, LaunchPlan, Setting
from ncheck.mpi import prefix_for
from ncheck.nccl.settings import LINK_STATE_COUNTS, release_of, settings_in_force
from ncheck.parity import split
from ncheck.plan.advice import Advice
from ncheck.plan.inputs import each_node_once, gpu_counts, logged_in, slots_per_node, unreachable, unread_reasons
from ncheck.plan.launch import (
    PROGRAM,
    SSH_PORT,
    Launch,
    LaunchHost,
    LaunchLine,
    NoLineError,
    SshOptions,
    out_of_band,
    values_in,
)
from ncheck.plan.launchers import FILES, LINES, MPI_LINES
from ncheck.plan.variables import advise
from ncheck.settings import Settings
from ncheck.this_machine.local_host import LocalHost

_ALL_UNREACHABLE = LaunchPlan(
    {"NCCL_SOCKET_IFNAME": Setting(None, "unknown: all nodes are unreachable", decided=False)},
    notes=("all nodes are unreachable",),
)


def propose(
    cluster: Cluster, settings: Settings, *, user_is_root: bool, local_host: LocalHost | None = None
) -> LaunchPlan:
    """Return the plan for a job over all listed nodes; its notes say what could not be decided and why.

    `local_host` is the machine on which the line is typed; None if it is unknown, and assumed to match the nodes.
    """
    if not logged_in(cluster).nodes:
        return _ALL_UNREACHABLE
    launcher = settings.launcher or default_launcher(cluster)
    advice = advise(cluster, launcher, settings.program or ())
    notes = (*_assumptions(cluster, settings.slots), *advice.notes)
    plan = LaunchPlan(advice.env, notes=notes, per_node=advice.per_node)
    try:
        if launcher in FILES:
            return replace(plan, lines={launcher: FILES[launcher](plan, host_names(cluster))})
        launch = _launch(cluster, settings, launcher, advice, local_host=local_host, user_is_root=user_is_root)
        name, line = _line(launcher, launch)
    except NoLineError as error:
        return replace(plan, notes=(*plan.notes, f"no {launcher} line: {error}"))
    _, ssh_note = ssh_options(cluster, settings, launcher)
    found = f"for {launch.mpi.implementation} {launch.mpi.version}; " if launch.mpi else ""
    return replace(
        plan,
        lines={name: line.text},
        reasons={name: (found + (line.processes or _ranks(cluster, launch)), *line.reasons)},
        notes=(
            *plan.notes,
            *_without_package(cluster, launcher),
            *_without_effect(settings, launcher, launch),
            *([ssh_note] if ssh_note else []),
        ),
        command=_command(launch, line) if line.argv else None,
    )


def _command(launch: Launch, line: LaunchLine) -> LaunchCommand:
    mpi = launch.mpi
    return LaunchCommand(
        line.argv,
        line.program,
        mpi_implementation=mpi.implementation if mpi else "",
        mpi_version=mpi.version if mpi else "",
        prefix=launch.prefix or "",
        hosts={host.name: host.slots for host in launch.hosts},
    )


def mpi_launch(
    cluster: Cluster, settings: Settings, *, user_is_root: bool, local_host: LocalHost | None = None
) -> Launch:
    """Return what the plan's mpirun line is made of, whichever line the plan shows. Raises NoLineError."""
    if not logged_in(cluster).nodes:
        raise NoLineError("all nodes are unreachable")
    return _launch(cluster, settings, "mpirun", advise(cluster), local_host=local_host, user_is_root=user_is_root)


def mpi_line(launch: Launch) -> LaunchLine:
    """Return the line for the installed MPI. Raises NoLineError."""
    return _line("mpirun", launch)[1]


def _line(launcher: str, launch: Launch) -> tuple[str, LaunchLine]:
    """Return the line under the name of the command that it calls."""
    if launch.mpi is None:
        return launcher, LINES[launcher](launch)
    if launch.mpi.implementation not in MPI_LINES:
        raise NoLineError(f"ncheck does not support {launch.mpi.implementation} {launch.mpi.version}")
    name, make = MPI_LINES[launch.mpi.implementation]
    return name, make(launch)


def _launch(  # noqa: PLR0913  what a plan is made of
    cluster: Cluster,
    settings: Settings,
    launcher: str,
    advice: Advice,
    *,
    local_host: LocalHost | None,
    user_is_root: bool,
) -> Launch:
    """Return what a line is made of. Raises NoLineError."""
    reached = logged_in(cluster)
    mpi = same_mpi(reached) if launcher == "mpirun" else None
    set_somewhere = [frozenset(facts.variables) for facts in reached.facts(EnvironmentFacts).values()]
    on_local_host = [local_host.variables] if local_host else []
    return Launch(
        hosts=hosts(cluster, advice, settings.slots),
        network=advice.network,
        variables=_variables(reached, advice),
        ssh=ssh_options(cluster, settings, launcher)[0],
        program=settings.program or PROGRAM,
        meeting_port=settings.master_port or MEETING_PORTS.get(launcher, 0),
        mpi=mpi,
        as_root=user_is_root or (local_host is not None and local_host.root),
        profile=settings.profile or "slot",
        prefix=prefix_for(reached.facts(MpiDaemonFacts)) if mpi and mpi.implementation == "Open MPI" else None,
        interfaces=tuple(frozenset(nic.name for nic in nics.interfaces) for nics in reached.facts(NicFacts).values()),
        out_of_band=out_of_band(reached, advice.network, local_host) if advice.network else None,
        pass_library_path=not set_somewhere
        or any("LD_LIBRARY_PATH" in names for names in (*set_somewhere, *on_local_host)),
        local_host=local_host,
        excluding=excluded_everywhere(reached.facts(MpiSettingsFacts)),
        slurm_left_over=settings.via != "srun" and _slurm_left_over(cluster, local_host),
        releases=_package_releases(reached, launcher),
        here=all(node.local for node in cluster.nodes),
    )


def _package_releases(reached: Cluster, launcher: str) -> frozenset[tuple[int, ...]]:
    """Return the first two numbers of the launcher's package on each node; () where there is none."""
    package, known = LAUNCHER_TABLE[launcher].package, reached.facts(InterpreterFacts)
    versions = (known[node].frameworks.get(package, "") if node in known else "" for node in reached.names)
    return frozenset(release_of(".".join(version.split(".")[:2])) for version in versions)


def _slurm_left_over(cluster: Cluster, local_host: LocalHost | None) -> bool:
    """Tell whether Slurm's variables are set where the line is typed, and the nodes were not taken from them.

    They may be those of an allocation that has ended, as in a tmux that was begun in it. In one that lives, a launch by
    ssh works too, as ncheck's own logins did.
    """
    job = local_host is not None and not local_host.variables.isdisjoint(("SLURM_JOB_ID", "SLURM_JOBID"))
    return job and not any(place in SLURM_LISTS for node in cluster.nodes for place in node.places)


def _variables(reached: Cluster, advice: Advice) -> dict[str, str]:
    """Return the variables of the job.

    NCCL reports its own errors only if NCCL_DEBUG is set; a value that the user has set is kept.
    """
    variables = values_in(advice.env)
    own = (settings_in_force(facts, LINK_STATE_COUNTS) for facts in reached.facts(EnvironmentFacts).values())
    if reached.facts(LoadedNcclFacts) and not any("NCCL_DEBUG" in values for values in own):
        variables["NCCL_DEBUG"] = "WARN"
    return variables


def _assumptions(cluster: Cluster, slots: int | None) -> Iterator[str]:
    """Yield what the plan assumes about nodes of which not everything is known."""
    nodes, reached = each_node_once(cluster).nodes, logged_in(cluster)
    if down := unreachable(cluster):
        yield f"{fold(down)} {'is' if len(down) == 1 else 'are'} unreachable; assumed to match the other nodes"
    unread = unread_reasons(reached, GpuFacts)
    if unknown := [node.name for node in nodes if node.name in unread and not node.slots and not slots]:
        yield f"the GPUs of {fold(unknown)} could not be read; the slots there are assumed to match the other nodes"
    if unknown := list(unread_reasons(reached, EnvironmentFacts)):
        yield f"the environment of {fold(unknown)} could not be read; NCCL's variables are assumed to be unset there"
    gpus = gpu_counts(reached)
    if idle := [node.name for node in nodes if node.slots and node.slots < gpus.get(node.name, 0)]:
        yield f"{fold(idle)} {'has' if len(idle) == 1 else 'have'} fewer slots than GPUs: the other GPUs stay idle"


def _without_package(cluster: Cluster, launcher: str) -> tuple[str, ...]:
    if without := lacking(cluster, launcher):
        package = LAUNCHER_TABLE[launcher].package
        return (f"no {package} in the interpreter of {fold(without)}; --python PATH selects another interpreter",)
    return ()


def _without_effect(settings: Settings, launcher: str, launch: Launch) -> Iterator[str]:
    """Yield the options that have no effect on this launcher's line."""
    if settings.profile and not (launch.mpi and launch.mpi.implementation == "Open MPI"):
        yield f"--profile {settings.profile} only affects Open MPI's mpirun; it is ignored here"
    if settings.master_port and launcher not in MEETING_PORTS:
        yield f"--master-port {settings.master_port} is checked, but {launcher}'s line has no such option"


def _ranks(cluster: Cluster, launch: Launch) -> str:
    """Return "48 ranks (6 nodes x 8 GPUs)"."""
    unknown = {*unreachable(cluster), *unread_reasons(logged_in(cluster), GpuFacts)}
    names, slots = each_node_once(cluster).names, sorted({host.slots for host in launch.hosts})
    per_gpu = all(
        host.gpus == host.slots or name in unknown for name, host in zip(names, launch.hosts, strict=True)
    ) and any(host.gpus for host in launch.hosts)
    nodes, unit = _counted(len(launch.hosts), "node"), "GPU" if per_gpu else "slot"
    ranks = _counted(launch.ranks, "rank")
    if len(slots) == 1:
        return f"{ranks} ({nodes} x {_counted(slots[0], unit)})"
    return f"{ranks} ({nodes} with {slots[0]} to {_counted(slots[-1], unit)})"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def default_launcher(cluster: Cluster) -> str:
    """Return torchrun if torch is installed on all nodes and no node has an mpirun; else mpirun."""
    reached = logged_in(cluster)
    if reached.facts(MpiFacts) or unread_reasons(reached, MpiFacts):
        return "mpirun"
    return "mpirun" if lacking(cluster, "torchrun") else "torchrun"


def lacking(cluster: Cluster, launcher: str) -> tuple[str, ...]:
    """Return the nodes whose interpreter lacks the launcher's package; unreachable nodes are left out."""
    package = LAUNCHER_TABLE[launcher].package
    if not package:
        return ()
    reached = logged_in(cluster)
    known = reached.facts(InterpreterFacts)
    return tuple(node for node in reached.names if node not in known or package not in known[node].frameworks)


def same_mpi(reached: Cluster) -> MpiFacts:
    """Return the MPI that all nodes have. Raises NoLineError if a node has none, or another release."""
    known = reached.facts(MpiFacts)
    if unread := unread_reasons(reached, MpiFacts):
        raise NoLineError(f"MPI could not be read on {fold(unread)}: {next(iter(unread.values()))}")
    if not known:
        raise NoLineError("no mpirun on the PATH of a non-interactive login")
    if without := [node for node in reached.names if node not in known]:
        verb = "has" if len(without) == 1 else "have"
        raise NoLineError(f"{fold(without)} {verb} no mpirun on the PATH of a non-interactive login")
    if parted := split({node: f"{mpi.implementation} {_release(mpi)}" for node, mpi in known.items()}):
        raise NoLineError(f"MPI differs: {parted.summary()}")
    return next(iter(known.values()))


def _release(mpi: MpiFacts) -> str:
    return ".".join(str(number) for number in mpi.release[:2]) or mpi.version


def host_names(cluster: Cluster) -> dict[str, str]:
    """Return the nodes' hostnames (uname -n), as far as they are known and valid."""
    names = {node: identity.host_name for node, identity in logged_in(cluster).facts(IdentityFacts).items()}
    return {node: names[node] for node in each_node_once(cluster).names if is_name(names.get(node, ""))}


def hosts(cluster: Cluster, advice: Advice, default_slots: int | None) -> tuple[LaunchHost, ...]:
    """Return the job's hosts in the order of the list. For the slots see `slots_per_node`."""
    gpus, slots = logged_in(cluster).facts(GpuFacts), slots_per_node(cluster, default_slots)
    names, addresses = host_names(cluster), advice.network.members if advice.network else {}
    return tuple(
        LaunchHost(
            "localhost" if node.local else node.name,
            slots[node.name],
            len(gpus[node.name].gpus) if node.name in gpus else 0,
            addresses[node.name][0].ip if addresses.get(node.name) else "",
            values_in(advice.per_node.get(node.name, {})),
            names.get(node.name, ""),
        )
        for node in each_node_once(cluster).nodes
    )


def ssh_options(cluster: Cluster, settings: Settings, launcher: str) -> tuple[SshOptions, str]:
    """Return the ssh options that are the same for all nodes, and a note on options that the launcher cannot pass.

    Raises NoLineError if the list gives nodes different ports: one line cannot pass them.
    """
    if not LAUNCHER_TABLE[launcher].uses_ssh:
        return SshOptions(), ""
    nodes = each_node_once(cluster).nodes
    ports = {node.port if node.port is not None else settings.port for node in nodes if not node.local}
    users = {node.user or settings.user for node in nodes}
    config = None if settings.run.rehearsal or not settings.ssh_config else str(Path(settings.ssh_config).expanduser())
    files = (settings.identity, config)  # ssh itself expands ~ in -i, but not in -F
    options = SshOptions(
        next(iter(ports)) if len(ports) == 1 else None, next(iter(users)) if len(users) == 1 else None, *files
    )
    if any(len(file.split()) > 1 for file in files if file):
        note = "launchers split ssh options at blanks: use a path without blanks for -i and -F"
        return replace(options, identity=None, config=None), note
    file = config or "~/.ssh/config"
    if len(ports) > 1 and ports != {None, SSH_PORT}:
        named = " and ".join(sorted(str(port or SSH_PORT) for port in ports))
        raise NoLineError(
            f"the nodes have different ssh ports ({named}), which {launcher} cannot pass to ssh: "
            f"write them into {file}, and leave them out of the node list"
        )
    if len(users) > 1:
        return options, f"the nodes have different users, which {launcher} cannot pass to ssh: set them in {file}"
    return options, ""
