"""Processes of this machine, by the variables that their launcher gave them: which ranks are on their way."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncheck.hook.launchers import Rank

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


def _environment(pid: str) -> set[bytes]:
    """Return the variables of a process; none if it is over, or another user's."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        return set(file.read(_LARGEST).split(b"\0"))
    return set()
