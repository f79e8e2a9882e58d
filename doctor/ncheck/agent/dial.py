"""Connecting to another node from one of this node's own addresses, and what a failure means."""

import errno
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

# An address that nobody has is reported by the kernel after three tries of ARP, a second each; a lost SYN is repeated
# after one second and after three.
PATIENCE = 5.0  # seconds without any sign of life
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing leaves no TIME_WAIT, and the next thousand links find ports
_BIND_NO_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)


def socket_from(source: str) -> "socket.socket":
    """Return a socket bound to this address, with a port that is free towards the node that it connects to."""
    sock = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_IP, _BIND_NO_PORT, 1)
    except OSError:
        pass
    try:
        sock.bind((source, 0))
    except OSError:
        sock.close()
        raise
    return sock


def reset_at_its_end(sock: "socket.socket") -> None:
    """Leave no TIME_WAIT, whether this process closes it or the kernel does as the process ends."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    except OSError:
        pass


def hang_up(sock: "socket.socket") -> None:
    """Close it without TIME_WAIT."""
    reset_at_its_end(sock)
    sock.close()


def not_connected(error: OSError, seconds: float) -> "Tuple[str, str]":
    """Return the cause and the detail of a connection that failed."""
    if error.errno == errno.ECONNREFUSED:
        return "refused", "connection refused, although its agent listens there"
    if error.errno == errno.ETIMEDOUT or isinstance(error, socket.timeout):
        return "filtered", "no answer within {:.0f} s".format(seconds)
    words = error.strerror or str(error)
    if error.errno == errno.EHOSTUNREACH:
        words += ": " + ("no answer to ARP" if seconds > 0.9 else "reported by a router or firewall on the way")
    return "unroutable", words
