"""What is on this node already: its memory, its load, and processes that the kernel does not let go."""

import re
import time

from ncheck.agent import proc
from ncheck.agent.files import line_of, number_in
from ncheck.agent.left_over_ranks import VARIABLES, left_over
from ncheck.agent.sources import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence

# Seconds after the first look at which processes in uninterruptible sleep are looked at again, as long as one of them
# is still in the same sleep. Most read a disk for a few milliseconds; one that stays for 3 s is stuck.
_LOOKS = (0.05, 0.2, 0.5, 1.0, 2.0, 3.0)
_MOST = 16  # of them, in the answer
_MEMORY = re.compile(r"^(MemTotal|MemAvailable|SwapTotal|SwapFree|Hugetlb):\s+(\d+) kB$", re.MULTILINE)
_ZFS = "/proc/spl/kstat/zfs/arcstats"

HOST_IP = "VLLM_HOST_IP"
_PATIENCE = 0.5  # seconds for the files of one process: a stuck one may hold up its readers

READS = (
    "/proc/{meminfo,loadavg,stat,pressure/memory}, /proc/sys/fs/file-nr, /proc/sys/kernel/{threads-max,pid_max}, "
    + _ZFS,
    "/proc/*/{stat,status,wchan}: processes in uninterruptible sleep (D), looked at again for up to 3 s",
    "/proc/*/{stat,environ,fd} of processes whose parent has ended: whether one has "
    + ", ".join(VARIABLES)
    + ", and what it holds",
    "/proc/*/{cmdline,environ,ns/net,ns/mnt} of Ray's raylet: the address by which Ray knows this node, and " + HOST_IP,
)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return the figures, and the processes that stay in one uninterruptible sleep."""
    stuck, table = stuck_processes(), proc.table()
    return {
        "memory": dict(_memory(), ZfsCache=_zfs_cache()),
        "pressure": line_of("/proc/pressure/memory"),
        "load": line_of("/proc/loadavg"),
        "cpus": len(re.findall(r"^cpu\d+ ", line_of("/proc/stat") or "", re.MULTILINE)),
        "files": line_of("/proc/sys/fs/file-nr"),
        "most_threads": number_in("/proc/sys/kernel/threads-max"),
        "most_processes": number_in("/proc/sys/kernel/pid_max"),
        "hidden": proc.stat(1) is None,
        "stuck": stuck[:_MOST],
        "stuck_more": max(0, len(stuck) - _MOST),
        "left_over": left_over(table),
        "raylets": raylets(table),
    }


def raylets(table: "Mapping[int, proc.Stat]", root: str = proc.ROOT) -> "List[Dict[str, Any]]":
    """Return [{"pid", "address", "host_ip", "contained"}] of Ray's daemons.

    These are daemons that this user may look at and that see this network. Ray's releases write --node_ip_address and
    --node-ip-address. One in a container with a network of its own is left out: its address is none of this node. One
    that shares only the network is "contained".
    """
    rows: "List[Dict[str, Any]]" = []
    for pid in sorted(pid for pid, now in table.items() if now.name == "raylet" and not now.ended):
        found = within(_PATIENCE, proc.environment, pid, root)
        variables = found[0] if found else None
        options = (word.replace("_", "-").partition("=") for word in proc.command(pid, root))
        address = next((value for name, _, value in options if name == "--node-ip-address"), "")
        if variables is not None and address and proc.link(pid, "ns/net", root) == proc.link("self", "ns/net", root):
            contained = proc.link(pid, "ns/mnt", root) != proc.link("self", "ns/mnt", root)
            host_ip = variables.get(HOST_IP, "")
            rows.append({"pid": pid, "address": address, "host_ip": host_ip, "contained": contained})
    return rows[:_MOST]


def _memory() -> "Dict[str, int]":
    return {name: int(size) * 1024 for name, size in _MEMORY.findall(line_of("/proc/meminfo") or "")}


def _zfs_cache() -> int:
    """Return what ZFS gives back of its cache when memory is needed, in bytes; the kernel counts that as used."""
    # size                            4    68719476736
    found = dict(re.findall(r"^(size|c_min)\s+\d+\s+(\d+)$", line_of(_ZFS) or "", re.MULTILINE))
    return max(0, int(found.get("size", 0)) - int(found.get("c_min", 0)))


def stuck_processes(
    looks: "Sequence[float]" = _LOOKS, root: str = proc.ROOT, sleep: "Callable[[float], object]" = time.sleep
) -> "List[Dict[str, Any]]":
    """Return [{"pid", "name", "wait"}] of user processes that slept uninterruptibly from the first look to the last.

    It ends as soon as none of them is left. A process that was given a CPU in between only waits long, as for a busy
    disk. Kernel threads wait like this by design, and so does what the freezer stopped.
    """
    stuck = _sleepers(root, proc.pids(root))
    stuck = {pid: process for pid, process in stuck.items() if not _frozen(root, pid, process["wait"])}
    waited = 0.0
    for seconds in looks:
        if not stuck:
            return []
        sleep(seconds - waited)
        waited = seconds
        now = _sleepers(root, stuck)
        stuck = {pid: now[pid] for pid in stuck if pid in now and now[pid]["since"] == stuck[pid]["since"]}
    return [{"pid": pid, "name": stuck[pid]["name"], "wait": stuck[pid]["wait"]} for pid in sorted(stuck)]


def _sleepers(root: str, pids: "Iterable[int]") -> "Dict[int, Dict[str, Any]]":
    """Return those of the processes in state D, without kernel threads: name, what they wait for, and figures that
    change when they run.
    """
    found = {}
    for pid in pids:
        now = proc.stat(pid, root)
        if now and now.state == "D" and not now.of_kernel:
            status = proc.status(pid, root)
            switches = [status.get(name) for name in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")]
            wait = proc.text(pid, "wchan", root=root).strip()
            found[pid] = {
                "name": now.name[:64], "wait": "" if wait == "0" else wait[:64], "since": (now.started, switches),
            }  # fmt: skip
    return found


def _frozen(root: str, pid: int, wait: str) -> bool:
    """Tell whether the freezer stopped it: what it waits for says so, or its control group of version 1 (docker)."""
    if "refrigerator" in wait:
        return True
    for line in proc.text(pid, "cgroup", root=root).splitlines():
        if ":freezer:" in line:
            state = line_of("/sys/fs/cgroup/freezer" + line.split(":", 2)[2] + "/freezer.state")
            return state not in (None, "THAWED")
    return False
