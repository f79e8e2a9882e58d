"""The mpiexec lines of MPICH and Intel MPI: one starter, Hydra, and two spellings of its options."""

from __future__ import annotations

from doctor.advice.launch import Launch, Line, typed


def mpich_line(launch: Launch) -> Line:
    """Return MPICH's line: slots stand with the hosts, ssh's options in a variable."""
    words = [*_ssh("HYDRA_LAUNCHER_EXTRA_ARGS", launch), "mpiexec", "-launcher", "ssh", "-hosts", launch.host_list]
    return _line(launch, [*words, "-n", str(launch.ranks)])


def intel_mpi_line(launch: Launch) -> Line:
    """Return Intel MPI's line: it takes one number of ranks for all hosts."""
    per_node = launch.alike("Intel MPI", "-ppn")
    words = [*_ssh("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", launch), "mpiexec", "-bootstrap", "ssh"]
    words += ["-hosts", ",".join(launch.names), "-ppn", str(per_node)]
    return _line(launch, [*words, "-n", str(launch.ranks)])


def _line(launch: Launch, words: list[str]) -> Line:
    name = _interface(launch)
    given = ["-iface", name] if name and _is_here(launch, name) else []
    told = [f"its ssh is told {launch.ssh_arguments}, as the list or the options say"] if launch.ssh_arguments else []
    if name and not given:
        told.append(f"no -iface {name}: this machine has none, and mpiexec would stop; ranks find a way themselves")
    return Line(typed([*words, *given, *_variables(launch), *launch.program_anywhere]), tuple(told))


def _ssh(variable: str, launch: Launch) -> list[str]:
    return ["env", f"{variable}={launch.ssh_arguments}"] if launch.ssh_arguments else []


def _interface(launch: Launch) -> str:
    """Return the name for Hydra's own interface, "" for none: it takes one for all nodes and no subnet."""
    return launch.network.names[0] if launch.network and launch.network.names else ""


def _is_here(launch: Launch, name: str) -> bool:
    """Tell whether the machine has it on which the line is typed: Hydra itself listens there first."""
    return launch.head is None or name in launch.head.interfaces.values()


def _variables(launch: Launch) -> list[str]:
    return [word for name, value in launch.variables.items() for word in ("-genv", name, value)]
