"""How many bytes every interface and HCA port has moved, and what errors a port has counted: the kernel's own counters,
which any user may read.
"""

import os

from ncheck.agent.files import line_of, matching, number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Container, Dict, Iterable, Optional, Tuple

    Moved = Tuple[Optional[int], Optional[int]]  # bytes that were sent, and received
    Counters = Dict[str, Tuple[int, int]]

SYS = "/sys/class"
_WORD = 4  # bytes: an HCA port counts its data in units of four (PortXmitData of the InfiniBand specification)

READS = (
    "/sys/class/net/*/statistics/{tx_bytes,rx_bytes}",
    "/sys/class/infiniband/*/ports/*/counters/{port_xmit_data,port_rcv_data}",
)


def counters(root: str = SYS) -> "Counters":
    """Return {name: (sent, received)} in bytes: interfaces by name, HCA ports as "mlx5_0:1"."""
    read = {}
    for folder in matching(root + "/net/*/statistics"):
        read[folder.split("/")[-2]] = of_interface(folder)
    for folder in matching(root + "/infiniband/*/ports/*/counters"):
        device, _, port = folder.split("/")[-4:-1]
        read[device + ":" + port] = _of_port(folder)
    return {
        name: (sent, received) for name, (sent, received) in read.items() if sent is not None and received is not None
    }


def of_interface(folder: str) -> "Moved":
    """Return what an interface sent and received, by its folder of statistics; None twice where one is missing."""
    return _pair(folder, "tx_bytes", "rx_bytes", 1)


def _of_port(folder: str) -> "Moved":
    return _pair(folder, "port_xmit_data", "port_rcv_data", _WORD)


def ports(files: "Iterable[str]", root: str = SYS) -> "Dict[str, Dict[str, Any]]":
    """Return each HCA port by name: its state, the bytes that it carried, and those of the counters that it has."""
    found = {}
    for folder in matching(root + "/infiniband/*/ports/*"):
        device, _, port = folder.split("/")[-3:]
        name = device + ":" + port
        sent, received = _of_port(folder + "/counters")
        if sent is None:
            sent, received = _pair(folder + "/hw_counters", "tx_bytes", "rx_bytes", 1)  # EFA's
        errors = {os.path.basename(one): number_in(os.path.join(folder, one)) for one in files}
        found[name] = {
            "state": line_of(folder + "/state") or "", "link_layer": line_of(folder + "/link_layer") or "",
            "sent": sent, "received": received,
            "errors": {one: count for one, count in errors.items() if count is not None},
        }  # fmt: skip
    return found


def _pair(folder: str, sent: str, received: str, unit: int) -> "Moved":
    there, back = (number_in(os.path.join(folder, name)) for name in (sent, received))
    return (None, None) if there is None or back is None else (there * unit, back * unit)


def carried(before: "Counters", after: "Counters", planned: "Container[str]" = ()) -> "Dict[str, Dict[str, int]]":
    """Return {name: {"sent", "received"}} between two readings, for those that moved anything and those `planned`. One
    whose counters were reset meanwhile is left out.
    """
    moved = {}
    for name in set(before) & set(after):
        sent, received = after[name][0] - before[name][0], after[name][1] - before[name][1]
        if min(sent, received) >= 0 and (sent or received or name in planned):
            moved[name] = {"sent": sent, "received": received}
    return moved
