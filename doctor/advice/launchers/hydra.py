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
    told = f"its ssh is told {launch.ssh_arguments}, as the list or the options say"
    return Line(
        typed([*words, *_interface(launch), *_variables(launch), *launch.program_anywhere]),
        (told,) if launch.ssh_arguments else (),
    )


def _ssh(variable: str, launch: Launch) -> list[str]:
    return ["env", f"{variable}={launch.ssh_arguments}"] if launch.ssh_arguments else []


def _interface(launch: Launch) -> list[str]:
    """Name Hydra's own interface: it takes one name for all nodes and no subnet."""
    return ["-iface", launch.network.names[0]] if launch.network and launch.network.names else []


def _variables(launch: Launch) -> list[str]:
    return [word for name, value in launch.variables.items() for word in ("-genv", name, value)]
