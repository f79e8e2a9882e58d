"""The mpirun line of Open MPI: 3.1, 4.x and 5.0 differ in little, and the spelling of 4.x is good for all."""

from __future__ import annotations

from doctor.advice.launch import PROGRAM, Launch, typed

WITHOUT_OPENIB = (5,)


def open_mpi_line(launch: Launch) -> str:
    """Return the line. Every option is one that Open MPI 3.1 to 5.0 accept, but for `btl ^openib`, gone with 5.0."""
    words = ["mpirun", *(["--allow-run-as-root"] if launch.as_root else [])]
    words += ["-np", str(launch.ranks), "-H", launch.hosts, "--bind-to", "none", "--map-by", "slot"]
    words += _parameter("pml", "ob1")
    if launch.mpi.release < WITHOUT_OPENIB:
        words += _parameter("btl", "^openib")
    words += [*_network(launch), *_ssh(launch)]
    for name, value in launch.variables.items():
        words += ["-x", f"{name}={value}"]
    return typed([*words, "-x", "PATH", "-x", "LD_LIBRARY_PATH", *PROGRAM])


def _network(launch: Launch) -> list[str]:
    """Name the subnet, which holds where interface names differ; Open MPI takes IPv4 subnets only."""
    network = launch.network
    if network is None:
        return []
    by_subnet = network.subnet if ":" not in network.subnet else ""
    where = by_subnet or (network.names[0] if network.names else "")
    return [*_parameter("btl_tcp_if_include", where), *_parameter("oob_tcp_if_include", where)] if where else []


def _ssh(launch: Launch) -> list[str]:
    return _parameter("plm_rsh_args", launch.ssh_arguments) if launch.ssh_arguments else []


def _parameter(name: str, value: str) -> list[str]:
    return ["--mca", name, value]
