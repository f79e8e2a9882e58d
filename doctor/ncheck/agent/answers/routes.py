"""Whether the kernel knows a route to an address: a UDP socket is connected to it, and nothing is sent."""

import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from ncheck.agent.sources import Arguments

_PORT = 9  # discard; no packet goes there

READS = ("the kernel's routing to where other nodes' NCCL would wait (a UDP socket is connected, nothing is sent)",)


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"routes": {ip: null, or why there is none}}; OSError where the kernel says neither."""
    return {"routes": {address: _none(address) for address in arguments["addresses"]}}


def _none(address: str) -> "Optional[str]":
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((address, _PORT))
        except OSError as error:
            return os.strerror(error.errno) if error.errno else str(error)
    return None
