"""Ranks of an earlier job that outlived their launcher, and hold a GPU, a port or shared memory."""

import os
import re

from ncheck.agent.files import line_of
from ncheck.agent.sources import within
from ncheck.agent.tcp_table import LISTENS, tcp_sockets

# What a launcher sets that is the parent of its ranks, here or by its daemon, as long as it lives.
VARIABLES = ("TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK")
MARK = "NCHECK_WATCHER"  # what watches a job is no part of it
# They adopt processes whose parent has ended: the first process of a machine or a container; a user's own systemd.
_FIRST = ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "sshd")
_SECOND = ("systemd",)
_DEVICE = re.compile(r"^/dev/(?:nvidia\d+|kfd)$")
_PATIENCE = 0.5  # seconds for the files of one process: a stuck one may hold up its readers
_MOST, _MOST_HELD = 16, 8


def left_over(proc="/proc"):
    """Return [{"pid", "name", "variable", "holds"}] of processes that a launcher started and that init has adopted.

    None is named while another process of the same launcher's variable is there that is not beneath one of them: its
    launcher may live. What a job left on purpose (a server) holds none of this, or is named rightly.
    """
    table = dict(_stats(proc))
    adopters = {pid for pid, (name, parent, _) in table.items() if parent == 1 and name in _SECOND}
    adopters |= {1} if table.get(1, ("",))[0] in _FIRST else set()
    adopted = [pid for pid, (_, parent, state) in table.items() if parent in adopters and state in "SRT"]
    found = {pid: variable for pid in adopted for variable in _launched(pid, proc)}
    if not found:
        return []
    below = _beneath(set(found), table)
    for pid in set(table) - below:
        if table[pid][2] in "SRT" and table[pid][1] != 2:
            alive = _launched(pid, proc)
            found = {one: variable for one, variable in found.items() if variable not in alive}
    listening = {row[4]: int(row[0].rpartition(":")[2], 16) for row in tcp_sockets(proc) if row[2] == LISTENS}
    rows = []
    for pid in sorted(found):
        holds = (within(_PATIENCE, _holds, pid, listening, proc) or [[]])[0]
        if holds:
            name = table[pid][0]
            rows.append({"pid": pid, "name": name[:64], "variable": found[pid], "holds": holds[:_MOST_HELD]})
    return rows[:_MOST]


def _stats(proc):
    """Yield each process: its number, and name, parent and state."""
    for pid in filter(str.isdigit, os.listdir(proc)):
        # 4711 (tmux: server) S 1 4711 ...
        name, _, rest = (line_of("{}/{}/stat".format(proc, pid)) or "").partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) > 1:
            yield int(pid), (name, int(fields[1]), fields[0])


def _launched(pid, proc):
    """Return the variable of a launcher that a process has, in a list; [] for none, or if it may not be read."""
    names = within(_PATIENCE, _names, pid, proc)
    return [] if not names or MARK in names[0] else [name for name in VARIABLES if name in names[0]][:1]


def _names(pid, proc):
    try:
        with open("{}/{}/environ".format(proc, pid), "rb") as file:
            return {pair.partition(b"=")[0].decode("utf-8", "replace") for pair in file.read().split(b"\0")}
    except OSError:
        return set()


def _beneath(roots, table):
    below, more = set(), set(roots)
    while more:
        below |= more
        more = {pid for pid, (_, parent, _) in table.items() if parent in more} - below
    return below


def _holds(pid, listening, proc):
    """Return the GPUs, ports and files of shared memory that a process has open, each once."""
    folder, held = "{}/{}/fd".format(proc, pid), []
    try:
        opened = [os.readlink(os.path.join(folder, number)) for number in os.listdir(folder)]
    except OSError:
        return []
    for path in opened:
        port = listening.get(path[len("socket:[") : -1]) if path.startswith("socket:[") else None
        if _DEVICE.match(path) or path.startswith("/dev/shm/"):  # noqa: S108  only compared
            held.append(path)
        elif port:
            held.append("port {}".format(port))
    return sorted(set(held))
