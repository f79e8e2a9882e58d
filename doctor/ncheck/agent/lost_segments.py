"""How many segments of a TCP connection were sent again, as this side's kernel counts them (TCP_INFO, tcp(7))."""

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

_BYTES = 232  # of struct tcp_info in linux/tcp.h; older kernels give less
_TOTAL_RETRANS, _DATA_SEGS_OUT, _DSACK_DUPS = 100, 156, 216  # where these numbers are in it, each a u32


def counted() -> bool:
    """Return whether this kernel counts the segments that a connection sent: Linux does from 4.6 on."""
    sock = socket.socket()
    try:
        return len(_info(sock)) >= _DATA_SEGS_OUT + 4
    finally:
        sock.close()


def unanswered(sock: "socket.socket") -> int:
    """Return how often the SYN of a connection that has just begun had to be sent again."""
    return _number(_info(sock), _TOTAL_RETRANS)


def resent(sock: "socket.socket", unanswered: int = 0) -> "Tuple[int, int]":
    """Return (segments that this side had to send again, segments with data that it sent); (0, 0) if it is unknown.

    What was sent again needlessly, as on a busy machine, does not count: the other side says that it had it already.
    """
    info = _info(sock)
    sent = _number(info, _DATA_SEGS_OUT)
    lost = _number(info, _TOTAL_RETRANS) - _number(info, _DSACK_DUPS) - unanswered
    return min(max(0, lost), sent), sent


def _info(sock: "socket.socket") -> bytes:
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES)
    except OSError:
        return b""


def _number(info: bytes, place: int) -> int:
    return struct.unpack_from("=I", info, place)[0] if len(info) >= place + 4 else 0
