"""Dialling another node from one of this node's own addresses, and what a failure of it means."""

import errno
import socket
import struct

# An address that nobody has is reported by the kernel after three tries of ARP, a second each; a lost SYN is repeated
# after one second and after three.
PATIENCE = 5.0  # seconds without any sign of life
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing leaves no TIME_WAIT, and the next thousand links find ports
_BIND_NO_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)


def socket_from(source):
    """Return a socket that will leave from this address, by whatever port is free for the one that is dialled."""
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


def reset_at_its_end(sock):
    """Let nothing of it be left, whoever closes it: this process, or the kernel as the process ends."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    except OSError:
        pass


def hang_up(sock):
    """Close it so that nothing of it is left."""
    reset_at_its_end(sock)
    sock.close()


def not_connected(error, seconds):
    """Return the cause and the words for a connection that did not come about."""
    if error.errno == errno.ECONNREFUSED:
        return "refused", "connection refused, although its agent listens there"
    if error.errno == errno.ETIMEDOUT or isinstance(error, socket.timeout):
        return "filtered", "no answer within {:.0f} s".format(seconds)
    words = error.strerror or str(error)
    if error.errno == errno.EHOSTUNREACH:
        words += ": " + ("no answer to ARP" if seconds > 0.9 else "some router or firewall on the way says so")
    return "unroutable", words
