"""How each RoCE port treats its traffic: flow control and trust by the kernel's DCB, ECN and traffic class by sysfs.

The kernel is asked by netlink as `dcb pfc show` and `dcb app show` do, which needs neither root nor a vendor's tool.
"""

import os
import socket
import struct

from ncheck.agent.files import line_of, matching, need_sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

    Settings = Dict[str, Any]  # "pfc" and "dscp", as `dcb` returns them

SYS = "/sys/class"
CONFIGURED = "/sys/kernel/config/rdma_cm"
_GET, _REQUEST, _ERROR = 78, 1, 2  # RTM_GETDCB, NLM_F_REQUEST, NLMSG_ERROR
_IEEE_GET = 21
_IFNAME, _IEEE, _PFC, _APP_TABLE, _APP = 1, 13, 2, 3, 1  # attributes, from the outermost in
_DSCP = 5  # what an entry of the APP table is about
_TYPE = 0x3FFF  # of an attribute, without the flag that it is nested
_PRIORITIES = 8
_PATIENCE = 2.0  # seconds for the kernel
_MOST = 64  # ports
_FILES = ["/{}".format(priority) for priority in range(8)]

READS = (
    "netlink RTM_GETDCB: priority flow control and DSCP of the network interfaces of RoCE ports",
    "/sys/class/net/*/ecn/roce_{np,rp}/enable/*, /sys/class/infiniband/*/tc/*/traffic_class",
    "/sys/kernel/config/rdma_cm/*/ports/*/default_roce_tos",
)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    need_sysfs()
    return ports(SYS, CONFIGURED, dcb)


def ports(root: str, configured: str, ask: "Callable[[str], Settings]") -> "Dict[str, Any]":
    """Return {"ports": {"mlx5_0:1": PORT}}. Only Ethernet ports; none is an empty mapping."""
    found: "Dict[str, Dict[str, object]]" = {}
    for folder in matching(root + "/infiniband/*/ports/*")[:_MOST]:
        device, _, port = folder.split("/")[-3:]
        if line_of(folder + "/link_layer") != "Ethernet":
            continue
        names = [os.path.basename(path) for path in matching(root + "/infiniband/" + device + "/device/net/*")]
        place = root + "/net/" + (names[0] if names else "")
        found[device + ":" + port] = dict(
            ask(names[0]) if names else {"pfc": None, "dscp": None},
            interface=names[0] if names else "",
            ecn_np=_enabled(place + "/ecn/roce_np/enable") if names else None,
            ecn_rp=_enabled(place + "/ecn/roce_rp/enable") if names else None,
            traffic_class=line_of(root + "/infiniband/{}/tc/{}/traffic_class".format(device, port)),
            tos=line_of(configured + "/{}/ports/{}/default_roce_tos".format(device, port)),
        )
    return {"ports": found}


def _enabled(folder: str) -> "Optional[List[int]]":
    """Return the priorities for which it is on; null where the driver does not show it."""
    files = [path for path in matching(folder + "/*") if path[-2:] in _FILES]
    return [int(os.path.basename(path)) for path in files if line_of(path) == "1"] if files else None


def dcb(name: str) -> "Settings":
    """Return {"pfc": [priorities], "dscp": [[dscp, priority]]}; null where the interface has no DCB."""
    attribute = _attribute(_IFNAME, name.encode() + b"\0")
    body = struct.pack("=BBH", 0, _IEEE_GET, 0) + attribute
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asked:
            asked.settimeout(_PATIENCE)
            asked.bind((0, 0))
            asked.send(struct.pack("=LHHLL", 16 + len(body), _GET, _REQUEST, 1, 0) + body)
            return settings_in(asked.recv(1 << 16))
    except OSError:
        return {"pfc": None, "dscp": None}


def settings_in(message: bytes) -> "Settings":
    """Return the settings in the kernel's reply."""
    found: "Settings" = {"pfc": None, "dscp": None}
    if len(message) < 20 or struct.unpack("=H", message[4:6])[0] == _ERROR:
        return found
    for kind, value in _attributes(dict(_attributes(message[20:])).get(_IEEE, b"")):
        if kind == _PFC and len(value) > 1:
            found["pfc"] = [priority for priority in range(_PRIORITIES) if value[1] >> priority & 1]
        elif kind == _APP_TABLE:
            entries = [
                struct.unpack("=BBH", one[:4]) for tag, one in _attributes(value) if tag == _APP and len(one) > 3
            ]
            found["dscp"] = sorted([code, priority] for selector, priority, code in entries if selector == _DSCP)
    return found


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _attributes(data: bytes) -> "Iterator[Tuple[int, bytes]]":
    """Yield (type, value) of each attribute."""
    while len(data) >= 4:
        size, kind = struct.unpack("=HH", data[:4])
        if size < 4:
            return
        yield kind & _TYPE, data[4:size]
        data = data[(size + 3) & ~3 :]
