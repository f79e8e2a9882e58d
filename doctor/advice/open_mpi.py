"""The mpirun line of Open MPI. 3.1, 4.x and 5.0 take the spelling of 4.x, and differ in two things.

`btl ^openib` is gone with 5.0. And 5.0 (5.0.11 was tried) takes no subnet for its daemons' own connections: it warns
"Did not find interface matching this subnet" and goes on with any. Names it takes, also those of other nodes only.
"""

from __future__ import annotations

from doctor.advice.launch import PROGRAM, Launch, typed

FIVE = (5,)


def open_mpi_line(launch: Launch) -> str:
    """Return the line for the release that was found."""
    words = ["mpirun", *(["--allow-run-as-root"] if launch.as_root else [])]
    words += ["-np", str(launch.ranks), "-H", launch.hosts, "--bind-to", "none", "--map-by", "slot"]
    words += _parameter("pml", "ob1")
    if launch.mpi.release < FIVE:
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
    names = network.names[0] if network.names else ",".join(sorted(network.first_names))
    where = network.subnet if network.subnet and ":" not in network.subnet else names
    daemons = where if launch.mpi.release < FIVE else names
    return [*_parameter("btl_tcp_if_include", where), *_parameter("oob_tcp_if_include", daemons)]


def _ssh(launch: Launch) -> list[str]:
    return _parameter("plm_rsh_args", launch.ssh_arguments) if launch.ssh_arguments else []


def _parameter(name: str, value: str) -> list[str]:
    return ["--mca", name, value]
