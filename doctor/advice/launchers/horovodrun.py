"""horovodrun's line. It looks for interfaces by name, intersects the names, and gives NCCL and MPI what is left.

--network-interfaces spares it that, and becomes NCCL_SOCKET_IFNAME itself, as names that need match at their beginning
only; so it is given where no other interface begins so. All variables of its own environment it passes on (Horovod
source, runner/mpi_run.py and runner/driver).
"""

from __future__ import annotations

import math

from doctor.advice.launch import Launch, Line, typed

IFNAME = "NCCL_SOCKET_IFNAME"
_START = 30  # seconds that it waits by default
_HOSTS_IN_THAT_TIME = 16  # each is a login and an import of Horovod, often from one file server


def horovodrun_line(launch: Launch) -> Line:
    """Return the line, to be typed on the head node."""
    names = _names(launch)
    variables = {name: value for name, value in launch.variables.items() if not (names and name == IFNAME)}
    words = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
    words += ["horovodrun", "-np", str(launch.ranks), "-H", launch.host_list]
    words += ["-p", str(launch.way.port)] if launch.way.port not in (None, 22) else []
    words += ["-i", launch.way.identity] if launch.way.identity else []
    words += _start_timeout(launch)
    if launch.several:
        words += ["--network-interfaces", ",".join(names)] if names else ["--disable-cache"]
    return Line(typed([*words, *launch.program_anywhere]), tuple(_reasons(launch, names)))


def _names(launch: Launch) -> tuple[str, ...]:
    """Return the interfaces of the job's network by name, where by their beginning they mean no other anywhere."""
    network = launch.network
    if network is None or not launch.several:
        return ()
    names = network.names[:1] or tuple(sorted(network.first_names))
    held = {name for own in launch.interfaces for name in own}
    meant = [name for name in held if name.startswith(names)]
    one_each = all(len(own.intersection(names)) == 1 for own in launch.interfaces)
    return names if one_each and sorted(meant) == sorted(names) else ()


def _start_timeout(launch: Launch) -> list[str]:
    rounds = math.ceil(len(launch.hosts) / _HOSTS_IN_THAT_TIME)
    return ["--start-timeout", str(_START * rounds)] if rounds > 1 else []


def _reasons(launch: Launch, names: tuple[str, ...]) -> list[str]:
    told = []
    if launch.several and not names:
        told.append("it looks for interfaces itself; --disable-cache makes it look anew, not at what it found before")
    if len(names) > 1:
        told.append("a Horovod without MPI takes one name for all nodes (gloo), and they differ: it needs one with MPI")
    elif names and launch.head and not set(names) <= {*launch.head.interfaces.values()}:
        told.append(f"a Horovod without MPI (gloo) looks for {names[0]} on this machine too: type it on a node then")
    if launch.way.user or launch.way.config:
        told.append(f"its ssh must be told {launch.ssh_arguments} by ~/.ssh/config")
    return told
