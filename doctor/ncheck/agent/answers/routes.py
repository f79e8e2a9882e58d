"""Whether the kernel knows a route to an address: a UDP socket is connected to it, and nothing is sent."""

import os
import socket

_PORT = 9  # discard; no packet goes there

READS = ("the kernel's routing to where other nodes' NCCL would wait (a UDP socket is connected, nothing is sent)",)


def answer(sources, arguments, timeout):
    """Return {"routes": {ip: null, or why there is none}}; OSError where the kernel says neither."""
    return {"routes": {address: _none(address) for address in arguments["addresses"]}}


def _none(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((address, _PORT))
        except OSError as error:
            return os.strerror(error.errno) if error.errno else str(error)
    return None
