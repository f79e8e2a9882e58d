"""The addresses to which a process's connections get no answer: some libraries wait for them without a limit."""

import socket
import struct

from ncheck.agent import proc
from ncheck.agent.tcp_table import SYN_SENT, tcp_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple


def unanswered(pid: int) -> "List[str]":
    """Return ["10.0.0.2 port 4711 from 10.0.0.1"], each once; [] if there is none, or this user may not read them."""
    own, found = proc.sockets(pid) or (), set()
    for row in tcp_rows(proc.ROOT) if own else ():
        if row.state == SYN_SENT and row.inode in own:
            found.add("{} port {} from {}".format(*_place(row.remote) + _place(row.local)[:1]))
    return sorted(found)


def _place(text: str) -> "Tuple[str, int]":
    """Return (ip, port) of "0200000A:1F90": words of an address in this machine's order, and a port."""
    address, _, port = text.partition(":")
    words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    ip = socket.inet_ntop(socket.AF_INET6 if len(packed) > 4 else socket.AF_INET, packed)
    return ip, int(port, 16)
