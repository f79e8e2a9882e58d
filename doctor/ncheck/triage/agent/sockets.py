"""The TCP sockets of the job's processes, read twice two seconds apart; and what stands at the ends of its rendezvous.

Nothing is sent: all is read from /proc/PID/fd, /proc/PID/net and, by netlink, from the kernel's own counts.
"""

import threading
import time

from ncheck.agent import proc
from ncheck.agent.answers import WATCHED
from ncheck.agent.answers.listen import described
from ncheck.agent.answers.names import resolved
from ncheck.agent.tcp_table import LISTENS, tcp_rows
from ncheck.triage.agent.net_namespaces import addresses, endpoint, folders, interfaces, own_namespace
from ncheck.triage.agent.tcp_info import tcp_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

    from ncheck.agent.tcp_table import TcpRow
    from ncheck.triage.agent.tcp_info import Counts

    Looks = Dict[str, Tuple[List[TcpRow], Dict[int, Counts]]]  # by namespace: its sockets, and counts by inode

READS = (
    "/proc/PID/fd of the ranks, their children and their launchers: which sockets are theirs",
    "/proc/PID/net/{tcp,tcp6,dev,route,fib_trie,if_inet6}: sockets, interfaces and addresses of their namespace",
    "the kernel's counts of each TCP connection (netlink, NETLINK_SOCK_DIAG, as ss -ti: nothing is sent)",
    "getaddrinfo(3) of MASTER_ADDR of the ranks",
)

_RESOLVING = 4.0  # seconds for all names
_MOST, _MOST_OTHERS, _MOST_LISTENERS = 8192, 4096, 64  # sockets in the answer; of a namespace those of other processes

_TIME_WAIT = "06"


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return the sockets. Asked as {"ranks", "launchers", "names": [to resolve], "ports": [of the rendezvous]}."""
    processes = arguments["ranks"] + arguments.get("launchers", [])
    names: "Dict[str, Dict[str, Any]]" = {}
    looking_up = threading.Thread(
        target=lambda: names.update(resolved(arguments.get("names", []), _RESOLVING)), daemon=True
    )
    looking_up.start()
    held = {one["pid"]: _Held(one) for one in processes}
    spaces = folders(processes)
    first = _look(spaces)
    time.sleep(WATCHED)
    last = _look(spaces)
    for one in held.values():
        one.look()
    looking_up.join(_RESOLVING)
    owned = {inode for one in held.values() for inode in one.inodes}
    rows: "List[Dict[str, Any]]" = []
    left_out = 0
    for one in held.values():
        found = _sockets(one, first, last)
        room = max(0, _MOST - sum(len(other["sockets"]) for other in rows))
        left_out += max(0, len(found) - room)
        rows.append({"pid": one.pid, "error": one.error, "unread": sorted(one.unread), "sockets": found[:room]})
    ports = set(arguments.get("ports", []))
    return {
        "processes": rows,
        "places": {name: _space(folder, last[name][0], owned, ports) for name, folder in spaces.items()},
        "own": own_namespace(),
        "names": {name: names.get(name, {"late": True}) for name in arguments.get("names", [])},
        "left_out": left_out,
    }


class _Held:
    """The sockets that a process and those beneath it have open, at either look."""

    def __init__(self, asked: "Mapping[str, Any]") -> None:
        self.pid: int = asked["pid"]
        self.started: int = asked["started"]
        self.children: "List[int]" = asked.get("children", [])
        self.inodes: "Dict[str, int]" = {}
        self.unread: "Set[int]" = set()
        self.error: "Optional[str]" = None
        self.look()

    def look(self) -> None:
        if not proc.is_still(self.pid, self.started):
            self.error = "gone"
            return
        for pid in [self.pid, *self.children]:
            inodes = proc.sockets(pid)
            if inodes is None:
                self.unread.add(pid)
            for inode in inodes or ():
                self.inodes.setdefault(inode, pid)
        if self.pid in self.unread:
            self.error = "the sockets of other users' processes need root"


def _look(spaces: "Mapping[str, str]") -> "Looks":
    own = own_namespace()
    return {name: (list(tcp_rows(folder)), tcp_info() if name == own else {}) for name, folder in spaces.items()}


def _sockets(held: _Held, first: "Looks", last: "Looks") -> "List[Dict[str, Any]]":
    """Return what both looks saw of a process's sockets, those that wait for something before the others."""
    found: "Dict[Tuple[str, str], Dict[str, Any]]" = {}
    for turn, looked in enumerate((first, last)):
        for name, (rows, counts) in looked.items():
            for row in rows:
                if row.inode in held.inodes:
                    entry = found.setdefault((name, row.inode), _entry(name, row, held.inodes[row.inode]))
                    entry["seen"][turn] = _seen(row, counts)
    return sorted(found.values(), key=lambda one: not any(map(_waits, one["seen"])))


def _entry(name: str, row: "TcpRow", pid: int) -> "Dict[str, Any]":
    (local, local_port), (remote, remote_port) = endpoint(row.local), endpoint(row.remote)
    return {
        "held_by": pid, "namespace": name, "local": local, "local_port": local_port, "remote": remote,
        "remote_port": remote_port, "seen": [None, None],
    }  # fmt: skip


def _seen(row: "TcpRow", counts: "Mapping[int, Counts]") -> "Dict[str, Any]":
    return {
        "state": row.state, "sent": row.sent, "unread": row.unread, "timer": row.timer, "retransmits": row.retransmits,
        "counts": counts.get(int(row.inode)),
    }  # fmt: skip


def _waits(seen: "Optional[Dict[str, Any]]") -> bool:
    return seen is not None and (bool(seen["sent"] or seen["unread"]) or seen["state"] != "01")


def _space(
    folder: str, rows: "Sequence[TcpRow]", owned: "Collection[str]", ports: "Collection[int]"
) -> "Dict[str, Any]":
    """Describe a namespace: its addresses, who listens on the job's ports, and connections of other processes."""
    listeners: "List[Dict[str, Any]]" = []
    others: "List[List[Any]]" = []
    for row in rows:
        (ip, port), (remote, remote_port) = endpoint(row.local), endpoint(row.remote)
        if row.state == LISTENS:
            if port in ports and len(listeners) < _MOST_LISTENERS:
                mine = row.inode in owned
                pid = None if mine else next(proc.holders(row.inode), None)
                by = "" if mine else described(pid, row.user)
                listeners.append({"ip": ip, "port": port, "asked": mine, "pid": pid, "by": by})
        elif row.inode not in owned and row.state != _TIME_WAIT and not remote.startswith("127.") and remote != "::1":
            others.append([ip, port, remote, remote_port, row.state])
    return {
        "addresses": addresses(folder), "interfaces": list(interfaces(folder)), "listeners": listeners,
        "others": others[:_MOST_OTHERS], "others_left_out": max(0, len(others) - _MOST_OTHERS),
    }  # fmt: skip
