"""Ranks of an earlier job that outlived their launcher, and hold a GPU, a port or shared memory."""

import re

from ncheck.agent import proc
from ncheck.agent.sources import within
from ncheck.agent.tcp_table import LISTENS, tcp_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

# What a launcher sets that is the parent of its ranks, here or by its daemon, as long as it lives.
VARIABLES = ("TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK")
MARK = "NCHECK_WATCHER"  # what watches a job is no part of it
# They adopt processes whose parent has ended: the first process of a machine or a container; a user's own systemd.
_FIRST = ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "sshd")
_SECOND = ("systemd",)
_DEVICE = re.compile(r"^/dev/(?:nvidia\d+|kfd)$")
_PATIENCE = 0.5  # seconds for the files of one process: a stuck one may hold up its readers
_MOST, _MOST_HELD = 16, 8


def left_over(table: "Mapping[int, proc.Stat]", root: str = proc.ROOT) -> "List[Dict[str, Any]]":
    """Return [{"pid", "name", "variable", "holds"}] of processes that a launcher started and that init has adopted.

    None is named while another process of the same launcher's variable is there that is not beneath one of them: its
    launcher may live. What a job left on purpose (a server) holds none of this, or is named rightly.
    """
    adopters = {pid for pid, now in table.items() if now.parent == 1 and now.name in _SECOND}
    adopters |= {1} if 1 in table and table[1].name in _FIRST else set()
    adopted = [pid for pid, now in table.items() if now.parent in adopters and now.state in "SRT"]
    found = {pid: variable for pid in adopted for variable in _launched(pid, root)}
    if not found:
        return []
    below = proc.beneath(found, {pid: now.parent for pid, now in table.items()})
    for pid in set(table).difference(found, below):
        if table[pid].state in "SRT" and table[pid].parent != 2:
            alive = _launched(pid, root)
            found = {one: variable for one, variable in found.items() if variable not in alive}
    listening = {row.inode: int(row.local.rpartition(":")[2], 16) for row in tcp_rows(root) if row.state == LISTENS}
    rows = []
    for pid in sorted(found):
        holds = (within(_PATIENCE, _holds, pid, listening, root) or [[]])[0]
        if holds:
            name = table[pid].name
            rows.append({"pid": pid, "name": name[:64], "variable": found[pid], "holds": holds[:_MOST_HELD]})
    return rows[:_MOST]


def _launched(pid: int, root: str) -> "List[str]":
    """Return the variable of a launcher that a process has, in a list; [] for none, or if it may not be read."""
    found = within(_PATIENCE, proc.environment, pid, root)
    variables = found[0] if found else None
    return [] if not variables or MARK in variables else [name for name in VARIABLES if name in variables][:1]


def _holds(pid: int, listening: "Mapping[str, int]", root: str) -> "List[str]":
    """Return the GPUs, ports and files of shared memory that a process has open, each once."""
    held = []
    for path in (proc.descriptors(pid, root) or {}).values():
        port = listening.get(path[len("socket:[") : -1]) if path.startswith("socket:[") else None
        if _DEVICE.match(path) or path.startswith("/dev/shm/"):  # noqa: S108  only compared
            held.append(path)
        elif port:
            held.append("port {}".format(port))
    return sorted(set(held))
