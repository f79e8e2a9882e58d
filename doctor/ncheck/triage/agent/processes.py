"""The processes of this node that may be a job's: its ranks, what is beneath them, and what started them."""

import fnmatch
import os
import re

from ncheck.agent import proc
from ncheck.agent.answers.environment import PATTERNS, SECRET
from ncheck.agent.sources import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Pattern, Set, Tuple

READS = (
    "/proc/*/{stat,cmdline,environ,status,fd} and the network namespace: ranks, and what is above and beneath them",
    "/proc/uptime",
)

_MORE = (
    "RANK", "GLOBAL_RANK", "LOCAL_*", "GROUP_*", "ROLE_*", "CROSS_*", "NODE_RANK", "WORLD_SIZE", "TORCH*", "SLURM_*",
    "SLURMD_*", "PADDLE_*", "PALS_*", "MPI_LOCAL*", "DMLC_*", "RAY_*", "ACCELERATE_*", "DEEPSPEED_*", "PL_*",
    "KUBERNETES_SERVICE_HOST", "HOSTNAME", "PYTHONFAULTHANDLER", "NCHECK", "ONEFLOW_*",
)  # fmt: skip
_MOST, _LARGEST = 4096, 4 * 1024 * 1024  # processes in the answer, and its characters, about
_MOST_VARIABLES = 200  # of one process
_PATIENCE = 0.5  # seconds for one process
_LONGEST, _MOST_WORDS = 4000, 64  # characters of a value or a word, and words of a command line
_WANTED, _SECRET = (re.compile("|".join(map(fnmatch.translate, names))) for names in (PATTERNS + _MORE, SECRET))
_MOST_OTHERS, _FIRST_PERSON = 8, 1000  # processes of other users, and the first user's number that is a person's
_PROGRAM = re.compile(r"^\S*python[\d.]* ")
_DEVICE = re.compile(r"^/dev/(nvidia\d+|kfd)$")
MARK = "NCHECK_WATCHER"  # the variable of what watches a job from inside: the job started it, and it is no part of it


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return the processes as the kernel lists them, and how many others could not be looked into.

    Asked as {"rank_variables": [names that launchers set], "match": regular expression | null, "launchers": regular
    expression}.
    """
    wanted = set(arguments["rank_variables"])
    patterns = [re.compile(one) for one in (arguments.get("match"), arguments.get("launchers")) if one]
    table = {pid: now for pid, now in ((pid, proc.stat(pid)) for pid in proc.pids()) if now}
    parents = {pid: now.parent for pid, now in table.items()}
    own = _own(parents)
    chosen: "Set[int]" = set()
    hidden: "List[int]" = []
    others: "List[Dict[str, Any]]" = []
    for pid in table:
        if pid in own or parents[pid] == 2 or pid == 2:  # children of kthreadd have no environment
            continue
        # What sleeps in the kernel with its memory locked holds up whoever reads these files.
        looked = within(_PATIENCE, _looked, pid)
        if not looked or looked[0] is None:
            hidden.append(pid)
            if len(others) < _MOST_OTHERS:
                others += [other for found in within(_PATIENCE, _other, pid, patterns) for other in found]
            continue
        environment, command, devices = looked[0]
        if MARK in environment:
            own.add(pid)
        elif wanted & set(environment) or any(one.search(command) for one in patterns) or devices:
            chosen.add(pid)
    around = {above for pid in chosen for above in _above(pid, parents)}
    listed = chosen.union(proc.beneath(chosen, parents), around) - own - ({0, 1} - chosen)
    processes: "List[Dict[str, Any]]" = []
    size = 0
    for pid in sorted(listed)[:_MOST]:
        described = within(_PATIENCE, _described, pid, table[pid])
        if described and described[0]:
            size += len(str(described[0]))
            if size > _LARGEST:
                break
            processes.append(described[0])
    return {
        "processes": processes, "left_out": len(listed) - len(processes), "hidden": len(hidden),
        "others": others, "own_only": 1 not in table, "uptime": _uptime(),
    }  # fmt: skip


def _uptime() -> float:
    """Return for how many seconds the node has run: 350735.47 234388.90."""
    try:
        with open("/proc/uptime", "rb") as file:
            return float(file.read(64).split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def _own(parents: "Mapping[int, int]") -> "Set[int]":
    """Return this process, what it started, and what started it. Above a watcher may be the job itself."""
    ours = {os.getpid(), *proc.beneath([os.getpid()], parents)}
    return ours if MARK in os.environ else ours | _above(os.getpid(), parents)


def _other(pid: int, patterns: "Iterable[Pattern[str]]") -> "List[Dict[str, Any]]":
    """Return a process that this user may not look into, if it may be a rank or a launcher by its command line."""
    command, user = " ".join(_argv(pid)), _status(pid)[0]
    program = user is not None and user >= _FIRST_PERSON and _PROGRAM.match(command)
    if program or any(one.search(command) for one in patterns):
        return [{"pid": pid, "user": user or 0, "command": command[:_LONGEST]}]
    return []


def _looked(pid: int) -> "Optional[Tuple[Dict[str, str], str, List[str]]]":
    """Return variables, command line and GPUs; ({}, "", []) of a process that has ended, None if it may not be read."""
    variables = proc.environment(pid)
    return None if variables is None else (variables, " ".join(_argv(pid)), _devices(pid))


def _above(pid: int, parents: "Mapping[int, int]") -> "Set[int]":
    """Return a process and those above it."""
    found: "Set[int]" = set()
    while pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid]
    return found


def _argv(pid: int) -> "List[str]":
    return [word[:_LONGEST] for word in proc.command(pid)[:_MOST_WORDS]]


def _devices(pid: int) -> "List[str]":
    """Return the GPUs that a process has open, as far as this user can see it."""
    opened = proc.descriptors(pid) or {}
    return sorted({device for path in opened.values() for device in _DEVICE.findall(path)})


def _described(pid: int, now: proc.Stat) -> "Optional[Dict[str, Any]]":
    variables = proc.environment(pid)
    user, inner = _status(pid)
    if user is None:
        return None  # it has just ended
    return {
        "pid": pid, "state": now.state, "parent": now.parent, "started": now.started, "name": now.name,
        "argv": _argv(pid), "variables": None if variables is None else _chosen(variables), "user": user,
        "inner_pid": inner, "namespace": proc.link(pid, "ns/net"), "devices": _devices(pid),
    }  # fmt: skip


def _chosen(environment: "Mapping[str, str]") -> "Dict[str, str]":
    """Return the variables that matter for a job, without those that may hold a secret."""
    names = [name for name in sorted(environment) if _WANTED.match(name) and not _SECRET.match(name.upper())]
    return {name: environment[name][:_LONGEST] for name in names[:_MOST_VARIABLES]}


def _status(pid: int) -> "Tuple[Optional[int], Optional[int]]":
    """Return the user's number, and the process's own in its innermost namespace."""
    status = proc.status(pid)
    if "Uid" not in status:
        return None, None
    return int(status["Uid"].split()[0]), int(status.get("NSpid", str(pid)).split()[-1])
