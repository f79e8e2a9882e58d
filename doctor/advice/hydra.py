"""The mpiexec lines of MPICH and Intel MPI: one starter, Hydra, and two spellings of its options."""

from __future__ import annotations

from doctor.advice.launch import PROGRAM, Launch, typed


def mpich_line(launch: Launch) -> str:
    """Return MPICH's line: slots stand with the hosts, ssh's options in a variable."""
    words = [*_ssh("HYDRA_LAUNCHER_EXTRA_ARGS", launch), "mpiexec", "-launcher", "ssh", "-hosts", launch.hosts]
    return typed([*words, "-n", str(launch.ranks), *_interface(launch), *_variables(launch), *PROGRAM])


def intel_mpi_line(launch: Launch) -> str:
    """Return Intel MPI's line: it takes one number of ranks for all hosts; raises ValueError where they differ."""
    per_node = set(launch.slots.values())
    if len(per_node) != 1:
        raise ValueError("Intel MPI's -ppn is one number for all nodes, and their slots differ: use a machine file")
    words = [*_ssh("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", launch), "mpiexec", "-bootstrap", "ssh"]
    words += ["-hosts", ",".join(launch.slots), "-ppn", str(per_node.pop()), "-n", str(launch.ranks)]
    return typed([*words, *_interface(launch), *_variables(launch), *PROGRAM])


def _ssh(variable: str, launch: Launch) -> list[str]:
    return ["env", f"{variable}={launch.ssh_arguments}"] if launch.ssh_arguments else []


def _interface(launch: Launch) -> list[str]:
    """Name Hydra's own interface: it takes one name for all nodes and no subnet."""
    return ["-iface", launch.network.names[0]] if launch.network and launch.network.names else []


def _variables(launch: Launch) -> list[str]:
    return [word for name, value in launch.variables.items() for word in ("-genv", name, value)]
