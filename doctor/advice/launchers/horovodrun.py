"""horovodrun's line. It looks for interfaces by name, intersects the names, and gives NCCL and MPI what is left.

--network-interfaces spares it that, and goes word for word to Open MPI's btl_tcp_if_include and to NCCL_SOCKET_IFNAME
(Horovod source, runner/mpi_run.py and runner/driver). To NCCL a name is a beginning; and Open MPI 4.1.4 was seen to
crash where one of several names is not on a node. So where not one name is right for both, Open MPI gets the subnet,
and NCCL its own value in front of the program. All variables of its own environment horovodrun passes on.
"""

from __future__ import annotations

import math

from doctor.advice.launch import Launch, Line, typed

IFNAME = "NCCL_SOCKET_IFNAME"
_START = 30  # seconds that it waits by default
_HOSTS_IN_THAT_TIME = 16  # each is a login and an import of Horovod, often from one file server


def horovodrun_line(launch: Launch) -> Line:
    """Return the line, to be typed on the head node."""
    name, subnet = _name(launch), _subnet(launch)
    spoken_for = launch.several and bool(name or subnet)
    variables = {key: value for key, value in launch.variables.items() if not (spoken_for and key == IFNAME)}
    words = ["env", *(f"{key}={value}" for key, value in variables.items())] if variables else []
    words += ["horovodrun", "-np", str(launch.ranks), "-H", launch.host_list]
    words += ["-p", str(launch.way.port)] if launch.way.port not in (None, 22) else []
    words += ["-i", launch.way.identity] if launch.way.identity else []
    words += _start_timeout(launch)
    if launch.several:
        words += ["--network-interfaces", name or subnet] if spoken_for else ["--disable-cache"]
        words += _nccls_own(launch) if spoken_for and not name else []
    return Line(typed([*words, *launch.program_anywhere]), tuple(_reasons(launch, name, subnet)))


def _name(launch: Launch) -> str:
    """Return the one interface of the job's network, where by its beginning it means no other anywhere, else ""."""
    if launch.network is None or not launch.network.names:
        return ""
    name = launch.network.names[0]
    meant = {other for own in launch.interfaces for other in own if other.startswith(name)}
    return name if meant == {name} else ""


def _subnet(launch: Launch) -> str:
    """Return the job's subnet; Open MPI takes IPv4 subnets only."""
    subnet = launch.network.subnet if launch.network else ""
    return "" if ":" in subnet else subnet


def _nccls_own(launch: Launch) -> list[str]:
    """Return the words that set NCCL's variable for the program, or free it of the subnet."""
    value = launch.variables.get(IFNAME)
    return ["env", f"{IFNAME}={value}"] if value else ["env", "-u", IFNAME]


def _start_timeout(launch: Launch) -> list[str]:
    rounds = math.ceil(len(launch.hosts) / _HOSTS_IN_THAT_TIME)
    return ["--start-timeout", str(_START * rounds)] if rounds > 1 else []


def _reasons(launch: Launch, name: str, subnet: str) -> list[str]:
    told = []
    if launch.several and not name:
        told += _without_a_name(subnet)
    elif name and launch.head and name not in launch.head.interfaces.values():
        told.append(f"a Horovod without MPI (gloo) looks for {name} on this machine too: type it on a node then")
    if launch.way.user or launch.way.config:
        told.append(f"its ssh must be told {launch.ssh_arguments} by ~/.ssh/config")
    return told


def _without_a_name(subnet: str) -> list[str]:
    if not subnet:
        return ["it looks for interfaces itself; --disable-cache makes it look anew, not at what it found before"]
    return [
        f"no one name means {subnet} alone everywhere: MPI is given the subnet, NCCL its own in front of the program",
        "a Horovod without MPI (gloo) takes one name for all nodes, and cannot start so",
    ]
