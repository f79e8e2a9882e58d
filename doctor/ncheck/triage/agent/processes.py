"""The processes of this node that may be a job's: its ranks, what is beneath them, and what started them."""

import fnmatch
import os
import re

from ncheck.agent.answers.environment import PATTERNS, SECRET
from ncheck.agent.sources import within

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


def answer(sources, arguments, timeout):
    """Return the processes as the kernel lists them, and how many others could not be looked into.

    Asked as {"rank_variables": [names that launchers set], "match": regular expression | null, "launchers": regular
    expression}.
    """
    wanted = set(arguments["rank_variables"])
    patterns = [re.compile(one) for one in (arguments.get("match"), arguments.get("launchers")) if one]
    table = {pid: entry for pid, entry in ((pid, _stat(pid)) for pid in _pids()) if entry}
    own = _own(table)
    chosen, hidden, others = set(), [], []
    for pid in table:
        if pid in own or table[pid]["parent"] == 2 or pid == 2:  # children of kthreadd have no environment
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
    around = set().union(*(_above(pid, table) for pid in chosen)) if chosen else set()
    listed = (chosen | _beneath(chosen, table) | around) - own - ({0, 1} - chosen)
    processes, size = [], 0
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


def _uptime():
    """Return for how many seconds the node has run: 350735.47 234388.90."""
    try:
        with open("/proc/uptime", "rb") as file:
            return float(file.read(64).split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def _own(table):
    """Return this process, what it started, and what started it. Above a watcher may be the job itself."""
    ours = _beneath({os.getpid()}, table) | {os.getpid()}
    return ours if MARK in os.environ else ours | _above(os.getpid(), table)


def _other(pid, patterns):
    """Return a process that this user may not look into, if it may be a rank or a launcher by its command line."""
    command, user = " ".join(_argv(pid)), _status(pid)[0]
    program = user is not None and user >= _FIRST_PERSON and _PROGRAM.match(command)
    if program or any(one.search(command) for one in patterns):
        return [{"pid": pid, "user": user or 0, "command": command[:_LONGEST]}]
    return []


def _looked(pid):
    """Return variables, command line and GPUs; ({}, "", []) of a process that has ended, None if it may not be read."""
    try:
        return _environment(pid), " ".join(_argv(pid)), _devices(pid)
    except (FileNotFoundError, ProcessLookupError):
        return {}, "", []
    except OSError:
        return None


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid):
    """Return parent, start and state: 4711 (tmux: server) S 1 4711 ...; None for a process that is gone."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as file:
            text = file.read()
    except OSError:
        return None
    name, _, rest = text.partition(b"(")[2].rpartition(b")")
    fields = rest.split()
    return {
        "state": fields[0].decode(), "parent": int(fields[1]), "started": int(fields[19]),
        "name": name.decode("utf-8", "backslashreplace"),
    }  # fmt: skip


def _above(pid, table):
    found = set()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid]["parent"]
    return found


def _beneath(roots, table):
    children = {}
    for pid, entry in table.items():
        children.setdefault(entry["parent"], []).append(pid)
    found, level = set(), set(roots)
    while level:
        level = {child for pid in level for child in children.get(pid, ())} - found - set(roots)
        found |= level
    return found


def _environment(pid):
    with open("/proc/{}/environ".format(pid), "rb") as file:
        pairs = file.read().split(b"\0")
    return dict(_text(pair).split("=", 1) for pair in pairs if b"=" in pair)


def _argv(pid):
    try:
        with open("/proc/{}/cmdline".format(pid), "rb") as file:
            words = file.read(1 << 16).rstrip(b"\0").split(b"\0")
    except OSError:
        return []
    return [_text(word)[:_LONGEST] for word in words[:_MOST_WORDS]] if words != [b""] else []


def _devices(pid):
    """Return the GPUs that a process has open, as far as this user can see it."""
    folder = "/proc/{}/fd".format(pid)
    found = set()
    try:
        for name in os.listdir(folder):
            found.update(_DEVICE.findall(os.readlink(folder + "/" + name)))
    except OSError:
        pass
    return sorted(found)


def _described(pid, entry):
    try:
        variables = _chosen(_environment(pid))
    except OSError:
        variables = None
    user, inner = _status(pid)
    if user is None:
        return None  # it has just ended
    return dict(
        entry, pid=pid, argv=_argv(pid), variables=variables, user=user, inner_pid=inner,
        namespace=_link("/proc/{}/ns/net".format(pid)), devices=_devices(pid),
    )  # fmt: skip


def _chosen(environment):
    """Return the variables that matter for a job, without those that may hold a secret."""
    names = [name for name in sorted(environment) if _WANTED.match(name) and not _SECRET.match(name.upper())]
    return {name: environment[name][:_LONGEST] for name in names[:_MOST_VARIABLES]}


def _status(pid):
    """Return the user's number, and the process's own in its innermost namespace."""
    user = inner = None
    try:
        with open("/proc/{}/status".format(pid), "rb") as file:
            for line in file:
                if line.startswith(b"Uid:"):
                    user = int(line.split()[1])
                elif line.startswith(b"NSpid:"):
                    inner = int(line.split()[-1])
    except OSError:
        return None, None
    return user, inner or pid


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _text(data):
    return data.decode("utf-8", "backslashreplace")
