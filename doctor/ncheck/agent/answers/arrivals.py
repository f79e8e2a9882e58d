"""What the kernel would do with packets of other nodes: its routing is asked by netlink, and nothing is sent."""

import errno
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Arguments

_GET_ROUTE, _REQUEST, _ERROR = 26, 1, 2  # RTM_GETROUTE, NLM_F_REQUEST, NLMSG_ERROR
_TARGET, _SOURCE, _COMES_IN_BY = 1, 2, 3  # RTA_DST, RTA_SRC, RTA_IIF
_HEADER = struct.Struct("=LHHLL")
_ROUTE = struct.Struct("=BBBBBBBBL")
# EXDEV is the reverse path filter's own; from Linux 6.14 on all drops of the input route are EINVAL.
_DROPPED = (errno.EXDEV, errno.EINVAL)

READS = ("the kernel's routing for packets that other nodes would send (netlink, RTM_GETROUTE: nothing is sent)",)


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"arrivals": [{"interface", "address", "source", "taken": bool}]}; OSError where it says neither."""
    answers = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.settimeout(timeout)
        for number, one in enumerate(arguments["arrivals"], 1):
            answers.append(dict(one, taken=_taken(kernel, number, one)))
    return {"arrivals": answers}


def _taken(kernel: "socket.socket", number: int, one: "Dict[str, str]") -> bool:
    kernel.send(_question(number, one))
    while True:
        reply = kernel.recv(65536)
        _, kind, _, sequence, _ = _HEADER.unpack_from(reply)
        if sequence == number:
            break
    if kind != _ERROR:
        return True
    (code,) = struct.unpack_from("=i", reply, _HEADER.size)
    if -code in _DROPPED:
        return False
    raise OSError(-code, "the kernel's routing cannot be asked")


def _question(number: int, one: "Dict[str, str]") -> bytes:
    attributes = (
        (_TARGET, socket.inet_aton(one["address"])),
        (_SOURCE, socket.inet_aton(one["source"])),
        (_COMES_IN_BY, struct.pack("=L", socket.if_nametoindex(one["interface"]))),
    )
    route = _ROUTE.pack(socket.AF_INET, 32, 32, 0, 0, 0, 0, 0, 0)
    body = route + b"".join(struct.pack("=HH", 4 + len(data), kind) + data for kind, data in attributes)
    return _HEADER.pack(_HEADER.size + len(body), _GET_ROUTE, _REQUEST, number, 0) + body
