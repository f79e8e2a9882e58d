"""What the processes of a job do: two looks at each rank and at what is beneath it, and what the node has for them.

No look touches a file system that may hang: /proc names files, positions and mounts. Only the free space is asked of
the file systems themselves, by a program with a deadline of its own.
"""

import os
import re
import threading
import time

from ncheck.agent import commands, control_groups, proc
from ncheck.agent.answers import WATCHED
from ncheck.agent.answers.nccl_loaded import built_as
from ncheck.agent.mount_table import mount_of, read_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

    Files = Dict[int, Tuple[str, Optional[int]]]  # by descriptor: path, and position if it is open for writing
    Threads = Dict[int, Tuple[str, str, Optional[int], Optional[int], Optional[int]]]
    Libraries = Dict[int, Dict[str, str]]  # by process: path and version
    Result = Any  # of work that is done aside

READS = (
    "/proc/PID/{stat,status,io,fd,fdinfo,cwd,limits,cgroup,mountinfo,maps,oom_score_adj} of ranks and children",
    "/proc/PID/task/*/{stat,schedstat,wchan,syscall}",
    "/proc/{stat,meminfo,vmstat,loadavg,diskstats,pressure}, and the limits of the ranks' control groups",
    "stat -f: free space of the folders that the ranks work in and write to, and of their /tmp",
)

_PATIENCE = 1.5  # seconds for a file system to say how much room it has
_MOST = 1024  # processes
_MOST_THREADS, _MOST_LISTED = 512, 24  # of one process: looked at, and in the answer
_MOST_FILES, _MOST_WRITTEN, _MOST_MOUNTS, _MOST_SPACES = 4096, 16, 32, 16
_LONGEST = 4096  # characters of a small file

_MOST_ASLEEP = 128  # threads of one process of which it is asked in which function they sleep
_OF_STORAGE = re.compile(r"request_wait_answer|fuse_|rpc_wait|nfs|ll_|cl_sync|ceph|cifs|smb2?_|p9_|gpfs|cxi")
_LIBRARY = re.compile(
    r"/lib(?:nccl|rccl|nccl-net|nccl-tuner|nccl-profiler|rccl-net|mpi|ucp|cudart|torch_cuda|torch_cpu|cuda)"
    r"[\w.+-]*\.so[\d.]*$|/mpi_lib[\w.-]*\.so$"
)
_NO_FILE = ("/dev/", "/proc/", "/sys/", "/memfd:", "/anon_hugepage")


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return what each process was and did, and the node's own figures.

    Asked as {"ranks": [{"rank", "pid", "started", "inner_pid", "namespace", "children": [pids]}]}, as are all answers
    about a job.
    """
    owners: "Dict[int, int]" = {}
    gone: "List[int]" = []
    for rank in arguments["ranks"]:
        now = proc.stat(rank["pid"])
        if now and now.started == rank["started"]:
            owners[rank["pid"]] = rank["pid"]
        else:
            gone.append(rank["pid"])
    ranks = list(owners)
    for rank in arguments["ranks"]:
        if rank["pid"] in owners:
            for child in rank["children"]:
                owners.setdefault(child, rank["pid"])
    pids = list(owners)[:_MOST]
    asides = [_Aside(_libraries, ranks), _Aside(_spaces, ranks)]  # each may hang
    first = {pid: _look(pid) for pid in pids}
    folders = sorted({folder for pid in ranks for folder in control_groups.folders(pid, ("memory", "cpu"))})
    before, groups_before, begun = _node(), _read_groups(folders), time.monotonic()
    time.sleep(WATCHED)
    second = {pid: _look(pid) for pid in pids}
    after, groups_after, seconds = _node(), _read_groups(folders), time.monotonic() - begun
    libraries, spaces = [aside.result(begun + WATCHED + _PATIENCE) for aside in asides]
    return {
        "seconds": round(seconds, 3),
        "gone": gone,
        "processes": [
            _described(pid, owners[pid], look, second[pid], libraries)
            for pid, look in first.items()
            if look is not None
        ],
        "groups": {folder: [groups_before[folder], groups_after[folder]] for folder in folders},
        "spaces": spaces,
        "node": [before, after],
        "cpus": os.cpu_count(),
    }


class _Aside:
    """Work in a thread of its own, which is left to itself if it hangs."""

    def __init__(self, work: "Callable[[Any], Result]", argument: object) -> None:
        self.found: "List[Result]" = []
        self.thread = threading.Thread(target=lambda: self.found.append(work(argument)), daemon=True)
        self.thread.start()

    def result(self, until: float) -> "Result":
        self.thread.join(max(0.0, until - time.monotonic()))
        return self.found[0] if self.found else None


class _Look:
    """What one process is doing now. What this user may not read is None."""

    def __init__(self, pid: int, stat: proc.Stat) -> None:
        self.stat, self.files, self.io = stat, _files(pid), proc.moved(pid)
        self.threads, self.swap = _threads(pid), _swap(pid)


def _look(pid: int) -> "Optional[_Look]":
    stat = proc.stat(pid)
    return None if stat is None else _Look(pid, stat)


def _swap(pid: int) -> "Optional[int]":
    kilobytes = _number(proc.status(pid).get("VmSwap", "").partition(" ")[0])
    return None if kilobytes is None else kilobytes * 1024


def _threads(pid: int) -> "Threads":
    """Return (state, name, nanoseconds on a CPU, times it was given one, nanoseconds it waited for one) of each thread.

    None: the kernel has none.
    """
    found: "Threads" = {}
    for tid in proc.threads(pid)[:_MOST_THREADS]:
        stat = proc.stat(pid, thread=tid)
        if stat:
            ran = proc.text(pid, "task/{}/schedstat".format(tid)).split()
            busy, turns, delay = (int(ran[at]) if len(ran) > 2 else None for at in (0, 2, 1))
            found[tid] = stat.state, stat.name, busy, turns, delay
    return found


def _files(pid: int) -> "Optional[Files]":
    """Return the files of a process; None if refused."""
    opened = proc.descriptors(pid, most=_MOST_FILES)
    if opened is None:
        return None
    return {number: (path, proc.position(pid, number) if _is_file(path) else None) for number, path in opened.items()}


def _is_file(path: str) -> bool:
    return path.startswith("/") and not path.startswith(_NO_FILE)


def _described(
    pid: int, owner: int, first: _Look, second: "Optional[_Look]", libraries: "Optional[Libraries]"
) -> "Dict[str, Any]":
    """Return one process as it was at both looks."""
    if second is not None and second.stat.started != first.stat.started:
        second = None  # another process has its number
    last = second or first
    files = last.files or {}
    return {
        "pid": pid, "rank_pid": owner, "name": last.stat.name, "parent": last.stat.parent,
        "looks": [_short(look) for look in (first, second) if look],
        "threads": _thread_list(pid, first.threads, second.threads if second else None),
        "thread_count": len(last.threads),
        "cpus": _affinity(pid),
        "oom_score_adj": _number(proc.text(pid, "oom_score_adj")),
        "files": None if last.files is None else len(files),
        "files_limit": _files_limit(pid),
        "cwd": proc.link(pid, "cwd") or None,
        "output": [files[number][0] or None if number in files else None for number in (1, 2)],
        "written": _written(first.files or {}, files),
        "mounts": _mounts(pid, files),
        "groups": control_groups.folders(pid, ("memory", "cpu")),
        "libraries": (libraries or {}).get(pid),
    }  # fmt: skip


def _short(look: _Look) -> "Dict[str, Any]":
    stat = look.stat
    io: "Sequence[Optional[int]]" = look.io or [None] * 4
    return {
        "state": stat.state, "user": stat.user, "system": stat.system, "minor": stat.minor,
        "major": stat.major, "exit_code": stat.exit_code, "rss": stat.rss, "swap": look.swap,
        "ran": _sum(thread[2] for thread in look.threads.values()),
        "turns": _sum(thread[3] for thread in look.threads.values()),
        "delay": _sum(thread[4] for thread in look.threads.values()),
        "read": io[0], "written": io[1], "disk_read": io[2], "disk_written": io[3],
    }  # fmt: skip


def _sum(numbers: "Iterable[Optional[int]]") -> "Optional[int]":
    """Return the sum; None where one of them is not known."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _thread_list(pid: int, first: "Threads", second: "Optional[Threads]") -> "List[Dict[str, Any]]":
    """Return the first thread, and of the others those that did not just sleep, the busiest first.

    One that waits for a file system may sleep so that a signal can wake it: the kernel's function shows it.
    """

    def ran(tid: int) -> "Optional[int]":
        then, now = first.get(tid), (second or {}).get(tid)
        if then is None or now is None or then[2] is None or now[2] is None:
            return None
        return now[2] - then[2]

    last = second or first
    asleep = [tid for tid in last if last[tid][0] == "S" and not ran(tid)][:_MOST_ASLEEP]
    stored = {tid for tid in asleep if _OF_STORAGE.search(_waits_in(pid, tid, "wchan"))}
    busy = {tid: (last[tid][0] not in "SI" or tid in stored, ran(tid) or 0) for tid in last}
    chosen = sorted(last, key=lambda tid: (tid != pid, not busy[tid][0], -busy[tid][1]))[:_MOST_LISTED]
    return [
        {
            "tid": tid, "name": last[tid][1], "states": [look[tid][0] for look in (first, second or {}) if tid in look],
            "ran": ran(tid), "wait": _waits_in(pid, tid, "wchan"), "call": _waits_in(pid, tid, "syscall"),
        }
        for tid in chosen
        if tid == pid or any(busy[tid])
    ]  # fmt: skip


def _waits_in(pid: int, tid: int, name: str) -> str:
    return proc.text(pid, "task/{}/{}".format(tid, name)).strip()[:200]


def _affinity(pid: int) -> "Optional[int]":
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None


def _files_limit(pid: int) -> "Optional[int]":
    found = re.search(r"^Max open files\s+(\d+)", proc.text(pid, "limits"), re.MULTILINE)
    return int(found.group(1)) if found else None


def _written(first: "Files", last: "Files") -> "List[Dict[str, Any]]":
    """Return the files open for writing with their positions at both looks."""
    found: "List[Dict[str, Any]]" = []
    for number, (path, pos) in last.items():
        if pos is not None:
            before = first.get(number) or (None, None)
            found.append({"path": path[:_LONGEST], "from": before[1] if before[0] == path else None, "to": pos})
    found.sort(key=lambda one: (one["from"] == one["to"], one["path"]))
    return found[:_MOST_WRITTEN]


def _mounts(pid: int, files: "Files") -> "List[Dict[str, Any]]":
    """Return the file systems on which a process works or has files, and all network ones, without touching any."""
    table = read_mounts(proc.text(pid, "mountinfo", 1 << 20))
    used: "Dict[str, str]" = {}
    for path in [proc.link(pid, "cwd")] + [path for path, _ in files.values()]:
        if _is_file(path):
            on = mount_of(path, table)
            if on:
                used.setdefault(on["point"], path)
    listed: "Dict[str, Dict[str, Any]]" = {}
    for one in table:
        if one["point"] in used or one["network"]:
            listed[one["point"]] = {
                "point": one["point"], "type": one["type"], "source": one["source"], "options": one["options"],
                "used": used.get(one["point"], "")[:_LONGEST],
            }  # fmt: skip
    return sorted(listed.values(), key=lambda one: (not one["used"], one["point"]))[:_MOST_MOUNTS]


def _libraries(ranks: "Iterable[int]") -> "Libraries":
    """Return the communication libraries that each rank has mapped: maps can wait for a process that hangs."""
    found: "Libraries" = {}
    versions: "Dict[Tuple[str, str], str]" = {}
    for pid in ranks:
        mapped = proc.mapped(pid, ".so")
        place = proc.link(pid, "ns/mnt")
        if mapped is not None:
            paths = sorted(path for path in mapped if _LIBRARY.search(path))[:64]
            for path in paths:
                if (place, path) not in versions:
                    versions[place, path] = _version(proc.path(pid, "root") + path)
            found[pid] = {path: versions[place, path] for path in paths}
    return found


def _version(path: str) -> str:
    """Return the version that a copy of NCCL was built as; "" for other libraries, and where it does not say."""
    return built_as(path)[0] if os.path.basename(path).startswith("libnccl.so") else ""


_SPACES = (("cwd", "cwd"), ("root/tmp", "/tmp"), ("root/dev/shm", "/dev/shm"))  # noqa: S108  asked only


def _spaces(ranks: "Iterable[int]") -> "Dict[str, Any]":
    """Return the room on the file systems that ranks use, each asked once by a program that may hang."""
    wanted: "Dict[Tuple[Optional[str], str], str]" = {}
    files: "Dict[Tuple[Optional[str], str], str]" = {}
    for pid in ranks:
        table = _mounts(pid, {})
        for place, name in _SPACES:
            path = proc.link(pid, "cwd") if name == "cwd" else name
            wanted.setdefault(("", path), proc.path(pid, place))
        for number, (path, pos) in sorted((_files(pid) or {}).items()):
            if pos is not None and len(files) < _MOST_SPACES:
                on = mount_of(path, table)
                key = on["point"] if on else None, os.path.dirname(path)
                files.setdefault(key, proc.path(pid, "fd", str(number)))
    wanted.update(files)
    workers = [(path, _Aside(_space, place)) for (_, path), place in list(wanted.items())[:_MOST_SPACES] if path]
    until = time.monotonic() + _PATIENCE + 0.5
    return {path: worker.result(until) or {"error": "no answer"} for path, worker in workers}


def _space(place: str) -> "Dict[str, Any]":
    reply = commands.run(["stat", "-f", "-L", "-c", "%S %b %a %c %d", place], _PATIENCE)
    if reply["status"] == "timeout":
        return {"error": "no answer within {} s".format(_PATIENCE)}
    numbers = reply.get("stdout", "").split()
    if len(numbers) != 5:
        return {"error": (reply.get("stderr") or reply.get("reason") or "cannot be read").strip()[:400]}
    unit, blocks, free, inodes, inodes_free = [int(number) for number in numbers]
    return {"size": unit * blocks, "free": unit * free, "files": inodes, "files_free": inodes_free}


_GROUP_FILES = (
    "memory.max", "memory.high", "memory.current", "memory.events", "memory.stat", "memory.pressure", "cpu.max",
    "cpu.stat", "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control", "cpu.cfs_quota_us",
    "cpu.cfs_period_us", "pids.max", "pids.current",
)  # fmt: skip


def _read_groups(folders: "Iterable[str]") -> "Dict[str, Dict[str, str]]":
    found = {folder: {name: _text(folder + "/" + name) for name in _GROUP_FILES} for folder in folders}
    for texts in found.values():
        texts["memory.stat"] = "\n".join(_OF_MEMORY.findall(texts["memory.stat"] or ""))
    return {folder: {name: text for name, text in texts.items() if text} for folder, texts in found.items()}


_OF_MEMORY = re.compile(r"^(?:total_rss|total_(?:in)?active_file|anon|(?:in)?active_file) \d+$", re.MULTILINE)


def _node() -> "Dict[str, str]":
    """Return the figures of the node that matter, as the kernel prints them."""
    keep = {
        "stat": r"cpu\d*|procs_\w+", "meminfo": r"(?:Mem|Swap|Cached|Buffers|Shmem|Active|Inactive|Dirty|Writeback)\S*",
        "vmstat": r"pswpin|pswpout|pgmajfault|oom_kill|allocstall\w*", "loadavg": r"\S+", "diskstats": r"",
    }  # fmt: skip
    found = {}
    for name, wanted in keep.items():
        lines = (_text(os.path.join(proc.ROOT, name), 1 << 20) or "").splitlines()
        found[name] = "\n".join(line for line in lines[:4096] if re.match(r"\s*(?:{})\b".format(wanted), line))
    for name in ("cpu", "memory", "io"):
        found["pressure/" + name] = _text(os.path.join(proc.ROOT, "pressure", name)) or ""
    return found


def _number(text: str) -> "Optional[int]":
    try:
        return int(text)
    except ValueError:
        return None


def _text(path: str, most: int = _LONGEST * 4) -> "Optional[str]":
    try:
        with open(path, "rb") as file:
            return file.read(most).decode("utf-8", "backslashreplace")
    except OSError:
        return None
