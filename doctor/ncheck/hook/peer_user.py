"""Whose process holds the other end of a connection: known where that process is on this machine.

A job's id is often easy to guess, so the proof that a peer knows it is not enough: on one machine it must also be of
this job's user.
"""

from __future__ import annotations

import os
import socket
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


def user_of_listener(port: int) -> int | None:
    """Return the user who listens on a port of this machine; None if nobody does, or it is unknown."""
    return next(filter(lambda user: user is not None, (_row_user(f":{port:04X} {peer} 0A ") for peer in _NOBODY)), None)


def _is_own(address: str) -> bool:
    """Return whether an address is one of this machine: the kernel lets nobody be bound to another one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        return True
    return False


def _user(local: tuple[str | int, ...], remote: tuple[str | int, ...]) -> int | None:
    for one, other in zip(_as_shown(local), _as_shown(remote), strict=True):
        if (user := _row_user(f" {one} {other} ")) is not None:
            return user
    return None


def _as_shown(address: tuple[str | int, ...]) -> tuple[str, str]:
    """Return an address as the kernel's tables show it, for IPv4 and for IPv6: 0100007F:1F90 is 127.0.0.1:8080."""
    text, port = str(address[0]).partition("%")[0], int(address[1])
    if ":" in text:
        packed = socket.inet_pton(socket.AF_INET6, text)
    else:
        packed = bytes(10) + b"\xff\xff" + socket.inet_aton(text)
    words = [packed[at : at + 4][::-1].hex().upper() for at in range(0, 16, 4)]
    return f"{words[3]}:{port:04X}", f"{''.join(words)}:{port:04X}"


_NOBODY = ("00000000:0000", "0" * 32 + ":0000")  # the peer of a socket that listens


def _row_user(part: str) -> int | None:
    """Return the user of the first socket whose row has this part, which ends after its addresses or its state."""
    # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0
    for table in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as file:  # noqa: PTH123  pathlib is dear
            text = file.read()
            if (at := text.find(part)) >= 0:
                return int(text[text.rfind("\n", 0, at + 1) + 1 :].split(None, 8)[7])
    return None
