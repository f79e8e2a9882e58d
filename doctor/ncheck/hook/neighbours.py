"""Processes of this machine, by the variables of their launcher: ranks on their way, and a rank above this process."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

_LARGEST = 1 << 20  # bytes of an environment


def living(rank: Rank, numbers: Collection[int]) -> list[int]:
    """Return those of these ranks of the same job that have a process on this machine."""
    name = rank.named.get("rank", "").partition("=")[0]
    same = {rank.named[key].encode() for key in ("size", "master_port") if key in rank.named}
    same |= {part.encode() for part in rank.job.split()}
    wanted = {f"{name}={number}".encode(): number for number in numbers}
    found = set[int]()
    for pid in os.listdir("/proc") if name else ():  # noqa: PTH208  pathlib is dear
        if pid.isdigit() and (variables := _environment(pid)) and same <= variables:
            found.update(wanted[one] for one in variables & wanted.keys())
    return sorted(found)


def inherited_from(rank: Rank) -> str:
    """Return the Python program above this process that has the same rank, as "process 4711 (python train.py)".

    It may be the rank itself, and this process a notebook or a program that it started. "" is none.
    """
    own = rank.named.get("rank", "").encode()
    pid = os.getppid()
    for _ in range(_MOST_PARENTS if own else 0):
        if own not in _environment(str(pid)):
            return ""
        with suppress(OSError, ValueError, IndexError):
            if "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe")):  # noqa: PTH115, PTH119
                return f"process {pid} ({_command(pid)})"
            pid = _parent(pid)
            continue
        return ""
    return ""


def other_listener(port: int) -> str:
    """Return who listens on a port here, as "process 4711 (python server.py)" or "user 1001".

    "" is nobody, this process or one above it, such as a launcher with the store of its ranks; or it is not known.
    """
    row = _listening_row(port)
    if not row:
        return ""
    user, inode = int(row[7]), row[9]
    if user != os.geteuid():
        return f"user {user}"
    above, pid = {os.getpid()}, os.getppid()
    for _ in range(_MOST_PARENTS):
        above.add(pid)
        with suppress(OSError, ValueError, IndexError):
            pid = _parent(pid)
    holders = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _holds(pid, inode)]  # noqa: PTH208
    if not holders or above.intersection(holders):
        return ""
    with suppress(OSError):
        return f"process {holders[0]} ({_command(holders[0])})"
    return ""


def _listening_row(port: int) -> list[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as file:  # noqa: PTH123
            for line in file:
                # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 31337 1 0000 100 0
                fields = line.split()
                if fields[3] == "0A" and fields[1].endswith(f":{port:04X}"):
                    return fields
    return []


def _holds(pid: str, inode: str) -> bool:
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}") == f"socket:[{inode}]":  # noqa: PTH115
                    return True
    return False


_MOST_PARENTS = 10


def _command(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
        words = file.read(_LARGEST).decode("utf-8", "replace").split("\0")
    return printable(" ".join([os.path.basename(words[0]), *words[1:]]).strip(), 60)  # noqa: PTH119


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        # 4711 (tmux: server) S 1 4711 4711 0 -1 ...
        return int(file.read().rpartition(")")[2].split()[1])


def _environment(pid: str) -> set[bytes]:
    """Return the variables of a process; none if it is over, or another user's."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        return set(file.read(_LARGEST).split(b"\0"))
    return set()
