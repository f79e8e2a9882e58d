"""The network namespaces of the job's processes, each seen through /proc of one process in it: any user may read that.

An agent cannot enter the namespace of a container, and need not: /proc/PID/net shows tables, addresses and counters.
"""

import socket
import struct

from ncheck.agent import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

    Route = Tuple[int, int, str]  # network, mask, interface


def own_namespace() -> str:
    return proc.link("self", "ns/net")


def folders(processes: "Iterable[Mapping[str, Any]]") -> "Dict[str, str]":
    """Return {namespace: the folder of /proc that shows it}, of processes {"pid", "started"} that still run.

    That of the agent is always there.
    """
    found = {own_namespace(): _OWN}
    for one in processes:
        if proc.is_still(one["pid"], one["started"]):
            found.setdefault(proc.link(one["pid"], "ns/net") or one.get("namespace", ""), proc.path(one["pid"]))
    return {name: folder for name, folder in found.items() if name}


_OWN = proc.path("self")


def addresses(folder: str) -> "List[List[str]]":
    """Return [[ip, interface]] of a namespace. An address whose interface /proc does not show has ""."""
    if folder == _OWN:
        try:
            return _own()
        except OSError:  # or this python3 has no ctypes
            pass
    routes = _connected(lines_of(folder + "/net/route"))
    found = [[ip, _interface_of(ip, routes)] for ip in _local_v4(lines_of(folder + "/net/fib_trie"))]
    return found + _local_v6(lines_of(folder + "/net/if_inet6"))


def interfaces(folder: str) -> "Dict[str, List[int]]":
    """Return the interfaces of a namespace, with the columns of figures that the kernel counts of each."""
    found: "Dict[str, List[int]]" = {}
    # eth0: 1296 18 0 0 0 0 0 0 1296 18 0 0 0 0 0 0
    for line in lines_of(folder + "/net/dev")[2:]:
        name, _, figures = line.partition(":")
        found[name.strip()] = [int(figure) for figure in figures.split()]
    return found


def _own() -> "List[List[str]]":
    from ncheck.agent.answers.getifaddrs import getifaddrs

    return [[one["ip"], name] for name, (_, held) in getifaddrs().items() for one in held]


def lines_of(path: str) -> "List[str]":
    """Return the lines of a table of /proc; none where it cannot be read."""
    try:
        with open(path) as file:
            return file.read(1 << 24).splitlines()
    except OSError:
        return []


def _local_v4(lines: "Iterable[str]") -> "List[str]":
    """Return the node's own addresses: each is a leaf, and the line below it says what it is.

    |-- 172.17.0.1
       /32 host LOCAL
    """
    found: "Dict[str, None]" = {}
    leaf = ""
    for line in lines:
        words = line.split()
        if words[:1] == ["|--"]:
            leaf = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            found[leaf] = None
    return list(found)


def _connected(lines: "Sequence[str]") -> "List[Route]":
    """Return [(network, mask, interface)] of the routes without a gateway, the longest mask first.

    eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
    """
    rows = (line.split() for line in lines[1:])
    found = [(int(row[1], 16), int(row[7], 16), row[0]) for row in rows if len(row) > 7 and not int(row[2], 16)]
    return sorted(found, key=lambda one: -socket.ntohl(one[1]))


def _interface_of(ip: str, routes: "Iterable[Route]") -> str:
    (number,) = struct.unpack("=I", socket.inet_aton(ip))
    if ip.startswith("127."):
        return "lo"
    return next((name for network, mask, name in routes if mask and number & mask == network), "")


def _local_v6(lines: "Iterable[str]") -> "List[List[str]]":
    # fe8000000000000000fc00fffe000001 04 40 20 80     eth0
    rows = [line.split() for line in lines]
    return [[socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0])), row[5]] for row in rows if len(row) > 5]


def endpoint(text: str) -> "Tuple[str, int]":
    """Return (ip, port) of an address as /proc/net/tcp writes it: "0100007F:1F90", each 32 bits in the host's order."""
    address, _, port = text.rpartition(":")
    packed = b"".join(struct.pack("=I", int(address[at : at + 8], 16)) for at in range(0, len(address), 8))
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    if family == socket.AF_INET6 and packed[:12] == _MAPPED:
        family, packed = socket.AF_INET, packed[12:]
    return socket.inet_ntop(family, packed), int(port, 16)


_MAPPED = b"\0" * 10 + b"\xff\xff"  # ::ffff:10.0.0.1
