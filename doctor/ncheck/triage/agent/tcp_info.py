"""What the kernel counts of each TCP connection (struct tcp_info), asked by netlink as ss does: any user may.

It shows the agent's own network namespace alone.
"""

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, Optional

    Counts = Dict[str, Optional[int]]

_SOCK_DIAG, _BY_FAMILY, _INET_DIAG_INFO = 4, 20, 2  # NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, the attribute
_REQUEST, _DUMP, _ERROR, _DONE = 0x1, 0x300, 2, 3
_HEADER = struct.Struct("=LHHLL")
_ALL_STATES = 0xFFF & ~(1 << 10)  # all but LISTEN, which moves nothing
_INODE, _MESSAGE = 68, 72  # struct inet_diag_msg: its last field is the inode
_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")
_FIELDS = (
    ("unacknowledged", 24, _U32), ("lost", 32, _U32), ("last_sent", 44, _U32), ("last_received", 52, _U32),
    ("last_answer", 56, _U32), ("resent", 100, _U32), ("acknowledged", 120, _U64), ("received", 128, _U64),
)  # fmt: skip


def tcp_info(timeout: float = 2.0) -> "Dict[int, Counts]":
    """Return {inode: {...}}; {} where the kernel cannot be asked.

    Segments: "unacknowledged", "lost", "resent" (in all). Bytes: "acknowledged", "received". Milliseconds since the
    "last_sent" and "last_received" data, and the "last_answer", an ACK.
    """
    found: "Dict[int, Counts]" = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(timeout)
            for family in (socket.AF_INET, socket.AF_INET6):
                kernel.send(_question(family))
                for message in _answers(kernel):
                    entry = _entry(message)
                    if entry:
                        found[_U32.unpack_from(message, _INODE)[0]] = entry
    except OSError:
        pass
    return found


def _question(family: int) -> bytes:
    body = struct.pack("=BBBBL48x", family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _ALL_STATES)
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST | _DUMP, 1, 0) + body


def _answers(kernel: socket.socket) -> "Iterator[bytes]":
    while True:
        data = kernel.recv(1 << 18)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, _, _, _ = _HEADER.unpack_from(data, at)
            if kind in (_DONE, _ERROR) or length < _HEADER.size:
                return
            yield data[at + _HEADER.size : at + length]
            at += (length + 3) & ~3


def _entry(message: bytes) -> "Optional[Counts]":
    """Return the numbers of one socket; None if it has none. An older kernel counts less: what it lacks is None."""
    at = _MESSAGE
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == _INET_DIAG_INFO:
            info = message[at + 4 : at + length]
            return {name: one.unpack_from(info, begin)[0] if len(info) >= begin + one.size else None
                    for name, begin, one in _FIELDS}  # fmt: skip
        at += max(4, (length + 3) & ~3)
    return None
