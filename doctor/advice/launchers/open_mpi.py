"""The mpirun line of Open MPI. 3.1, 4.x and 5.0 take the spelling of 4.x, and differ in two things.

`btl ^openib` is gone with 5.0. And 5.0 (5.0.11 was tried) takes no subnet for its daemons' own connections: it warns
"Did not find interface matching this subnet" and goes on with any. Names it takes, also those of other nodes only.

For the ranks' traffic it is the other way round: a name that a node has not crashes them (4.1.4: segmentation fault in
pml_ob1), a subnet that it has not is warned of and passed over.
"""

from __future__ import annotations

from collections.abc import Mapping

from doctor.advice.launch import Launch, Line, NoLineError, typed
from doctor.advice.networks import Network

FIVE = (5,)

# The two published recipes: unbound in the order of the slots, or round the NUMA domains and bound to them.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "slot": ("--bind-to", "none", "--map-by", "slot"),
    "numa": ("--map-by", "numa"),
}


def open_mpi_line(launch: Launch) -> Line:
    """Return the line for the release that was found."""
    words = ["mpirun", *(["--allow-run-as-root"] if launch.as_root else [])]
    words += ["--prefix", launch.prefix] if launch.prefix else []
    words += ["-np", str(launch.ranks), "-H", launch.host_list, *PROFILES[launch.profile]]
    words += _parameter("pml", "ob1")
    if not _is_five(launch):
        words += _parameter("btl", "^openib")
    words += [*_network(launch), *_ssh(launch)]
    for name, value in launch.variables.items():
        words += ["-x", f"{name}={value}"]
    words += ["-x", "PATH", *(["-x", "LD_LIBRARY_PATH"] if launch.libraries else [])]  # unset, it is warned of
    words += launch.program_anywhere
    return Line(typed(words), tuple(_reasons(launch)))


def _reasons(launch: Launch) -> list[str]:
    told = []
    if launch.network:
        told.append(f"held to {launch.network.told}: by itself it tries every interface, docker0 too, and may hang")
    if launch.out_of_band and launch.out_of_band.why:
        told.append(launch.out_of_band.why)
    if launch.prefix:
        told.append(f"its helper is looked for under {launch.prefix}: some node's login does not find it")
    if launch.ssh_arguments:
        told.append(f"its ssh is told {launch.ssh_arguments}, as the list or the options say")
    return told


def _is_five(launch: Launch) -> bool:
    if launch.mpi is None:
        raise NoLineError("no release of Open MPI is known")
    return launch.mpi.release >= FIVE


def _network(launch: Launch) -> list[str]:
    daemons, where = launch.out_of_band, _between_ranks(launch.network) if launch.network else ""
    words = _parameter("btl_tcp_if_include", where) if where else []
    if daemons is not None and daemons.names:
        words += _parameter("oob_tcp_if_include", ",".join(daemons.names) if _is_five(launch) else daemons.where)
    return words


def _between_ranks(network: Network) -> str:
    """Name the subnet, which holds where interface names differ; behind routers the one name, else all subnets.

    Open MPI takes IPv4 subnets only; "" where it can be told nothing that is true of every node.
    """
    if network.subnet and ":" not in network.subnet:
        return network.subnet
    if network.names:
        return network.names[0]
    seats = (seat for held in network.members.values() for seat in held)
    return ",".join(sorted({seat.subnet for seat in seats if ":" not in seat.subnet}))


def _ssh(launch: Launch) -> list[str]:
    return _parameter("plm_rsh_args", launch.ssh_arguments) if launch.ssh_arguments else []


def _parameter(name: str, value: str) -> list[str]:
    return ["--mca", name, value]
