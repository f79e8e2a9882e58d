"""Processes of this machine, by the variables of their launcher: ranks on their way, and a rank above this process."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from ncheck.agent import proc
from ncheck.agent.tcp_table import LISTENS, tcp_rows
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank


def living(rank: Rank, numbers: Collection[int]) -> list[int]:
    """Return those of these ranks of the same job that have a process on this machine."""
    name = rank.named.get("rank", "").partition("=")[0]
    same = {rank.named[key] for key in ("size", "master_port") if key in rank.named} | set(rank.job.split())
    wanted = {f"{name}={number}": number for number in numbers}
    found = set[int]()
    for pid in proc.pids() if name else ():
        if (variables := _variables(pid)) and same <= variables:
            found.update(wanted[one] for one in variables & wanted.keys())
    return sorted(found)


def inherited_from(rank: Rank) -> str:
    """Return the Python program above this process that has the same rank, as "process 4711 (python train.py)".

    It may be the rank itself, and this process a notebook or a program that it started. "" is none.
    """
    own = rank.named.get("rank")
    for pid in [os.getppid(), *proc.above(os.getppid())] if own else ():
        if own not in _variables(pid):
            return ""
        if "python" in os.path.basename(proc.link(pid, "exe")):  # noqa: PTH119  pathlib is dear
            return _named(pid)
    return ""


def other_listener(port: int) -> str:
    """Return who listens on a port here, as "process 4711 (python server.py)" or "user 1001".

    "" is nobody, this process or one above it, such as a launcher with the store of its ranks; or it is not known.
    """
    rows = (row for row in tcp_rows(proc.ROOT) if row.state == LISTENS and row.local.endswith(f":{port:04X}"))
    row = next(rows, None)
    if row is None:
        return ""
    if row.user != os.geteuid():
        return f"user {row.user}"
    holders = list(proc.holders(row.inode))
    if not holders or {os.getpid(), *proc.above(os.getpid())}.intersection(holders):
        return ""
    return _named(holders[0])


def _named(pid: int) -> str:
    """Return "process 4711 (python train.py)"; "" if it is over."""
    program, *arguments = proc.command(pid) or [""]
    command = printable(" ".join([os.path.basename(program), *arguments]), 60)  # noqa: PTH119
    return f"process {pid} ({command})" if command else ""


def _variables(pid: int) -> set[str]:
    """Return the variables of a process as NAME=value; none if it is over, or another user's."""
    return {f"{name}={value}" for name, value in (proc.environment(pid, errors="surrogateescape") or {}).items()}
