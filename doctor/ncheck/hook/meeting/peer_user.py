"""Whose process holds the other end of a connection: known where that process is on this machine.

A job's id is often easy to guess, so the proof that a peer knows it is not enough: on one machine it must also be of
this job's user.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

_UNKNOWN_HERE = 65534  # how the kernel shows a user that this container has no number for
_ROOT = 0


def is_other(user: int | None) -> bool:
    """Tell whether this is known to be another user than that of this process, and not root."""
    return user is not None and user not in {os.geteuid(), _ROOT}


def user_of_peer(sock: socket.socket) -> int | None:
    """Return the user of the other end; None if that is on another machine, or unknown."""
    try:
        if sock.family == socket.AF_UNIX:
            return os.geteuid()  # a pair that this process made
        own, peer = sock.getsockname(), sock.getpeername()
    except OSError:
        return None
    user = _user(peer, own) if _is_own(str(peer[0])) else None
    return None if user == _UNKNOWN_HERE else user


def _is_own(address: str) -> bool:
    """Return whether an address is one of this machine: the kernel lets nobody be bound to another one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        return True
    return False


def _user(local: tuple[str | int, ...], remote: tuple[str | int, ...]) -> int | None:
    """Return the user of the socket with this end and that one."""
    with suppress(OSError, struct.error):
        return _asked(_packed(local), int(local[1]), _packed(remote), int(remote[1]))
    for one, other in zip(_as_shown(local), _as_shown(remote), strict=True):
        if (user := _row_user(f" {one} {other} ")) is not None:
            return user
    return None


def _as_shown(address: tuple[str | int, ...]) -> tuple[str, str]:
    """Return an address as the kernel's tables show it, for IPv4 and for IPv6: 0100007F:1F90 is 127.0.0.1:8080."""
    packed = _packed(address)
    words = [packed[at : at + 4][::-1].hex().upper() for at in range(0, 16, 4)]
    return f"{words[3]}:{address[1]:04X}", f"{''.join(words)}:{address[1]:04X}"


def _packed(address: tuple[str | int, ...]) -> bytes:
    """Return the 16 bytes of an address, those of IPv4 as IPv6 has them."""
    text = str(address[0]).partition("%")[0]
    return socket.inet_pton(socket.AF_INET6, text if ":" in text else f"::ffff:{text}")


_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_NO_COOKIE = b"\xff" * 8
_USER_AT = 16 + 4 + 48 + 12  # in the answer: after its header, four bytes, the two ends, and three numbers


def _asked(local: bytes, local_port: int, remote: bytes, remote_port: int) -> int:
    """Ask the kernel for one socket: reading all of its tables takes long where there are many. Raises OSError."""
    ends = struct.pack(">HH16s16sI", local_port, remote_port, local, remote, 0) + _NO_COOKIE
    question = struct.pack("=BBBBI", socket.AF_INET6, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends
    header = struct.pack("=IHHII", 16 + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(header + question)
        answer = kernel.recv(4096)
    if struct.unpack_from("=IH", answer)[1] != _BY_FAMILY:
        raise OSError("no such socket")
    return int(struct.unpack_from("=I", answer, _USER_AT)[0])


def _row_user(part: str) -> int | None:
    """Return the user of the first socket whose row has this part: its two addresses."""
    # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0
    for table in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as file:  # noqa: PTH123  pathlib is dear
            text = file.read()
            if (at := text.find(part)) >= 0:
                return int(text[text.rfind("\n", 0, at + 1) + 1 :].split(None, 8)[7])
    return None
