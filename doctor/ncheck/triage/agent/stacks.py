"""What the ranks of a job are doing: the stacks of their Python threads by py-spy, and what the kernel says of them."""

import glob
import json
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from ncheck.agent import commands, proc
from ncheck.agent.answers import WATCHED
from ncheck.agent.sources import within
from ncheck.triage.agent import own_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    from ncheck.agent.sources import Sources

    Key = Tuple[str, str, str, int]  # of a frame: name, file, short name of the file, line
    Thread = Dict[str, Any]

READS = (
    "py-spy dump --nonblocking of each rank and its children (no pause; with --native one more, which pauses them)",
    "/proc/PID/task/*/{stat,status,schedstat,wchan,syscall,stack}, and the lines of source code at the frames",
    "/proc/locks and /proc/PID/{fd,fdinfo}, for who holds the lock on a file that a rank waits for",
    "the names in torch's folder of extensions, where a rank waits for a lock file there",
)

# When to look, in parts of that time; uneven, so that no regular step is met each time. True: at children, too.
_LOOKS = (
    (0.0, True),
    (0.1, False),
    (0.25, True),
    (0.41, False),
    (0.53, False),
    (0.65, True),
    (0.84, False),
    (1.0, True),
)
_LATE = 0.1  # seconds
_PATIENCE = 5.0  # seconds for one py-spy: it reads the interpreter's file, which may lie on a mount that hangs
_PATIENCE_DEEPER = 20.0  # and for one that pauses the process: not begun where less than half of that is left
_ATTEMPTS = 3  # a process that runs may be read while its frames change
_AT_ONCE = 8
_MOST_RANKS, _MOST_CHILDREN, _MOST_OF_ONE_RANK = 64, 96, 24  # processes
_MOST_OFTEN = 64  # processes that are looked at each time: the others at the first and at the last
_MOST_THREADS, _MOST_TASKS, _MOST_FRAMES = 64, 32, 100
_LONGEST, _LONGEST_WORDS = 300, 600  # characters of a name or line, and of an error


def answer(sources: "Sources", arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return what each rank and its children are at: looked at several times within WATCHED seconds.

    Asked as {"ranks": [RANK], "native": bool, "beside": folder that py-spy may be in}.
    What hangs, such as a mount that an interpreter lies on, costs the
    others nothing.
    """
    frames, begun = _Frames(), time.monotonic()
    ends = begun + max(WATCHED, timeout - _PATIENCE)
    ranks = arguments["ranks"]
    beside = arguments.get("beside", "")
    watched = [_Watched(sources, rank["pid"], rank["pid"], rank["started"], beside) for rank in ranks[:_MOST_RANKS]]
    children = [(pid, rank["pid"]) for rank in ranks[:_MOST_RANKS] for pid in rank["children"][:_MOST_OF_ONE_RANK]]
    number = len(watched)
    watched += [_Watched(sources, pid, rank, beside=beside) for pid, rank in children[:_MOST_CHILDREN]]
    locks: "Dict[int, Dict[str, Any]]" = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for part, children_too in _LOOKS:
            late = time.monotonic() - begun - part * WATCHED
            if late > _LATE and not children_too:
                continue  # the node is busy: what it has time for is looked at
            time.sleep(max(0.0, -late))
            now = (
                watched if part in (0.0, 1.0) else watched[: _MOST_OFTEN if children_too else min(number, _MOST_OFTEN)]
            )
            list(pool.map(lambda one: one.look(frames, ends), now))
            locks = {pid: lock for pid, lock in _locks(watched[:number]).items() if part == 0.0 or pid in locks}
            if time.monotonic() > ends:
                break
        if arguments.get("native"):
            list(pool.map(lambda one: one.look_deeper(frames, begun + timeout - 1.0), watched))
    frames.add_source_lines(time.monotonic() + min(_PATIENCE, max(0.5, ends - time.monotonic())))
    return {
        "processes": [one.described() for one in watched], "frames": frames.listed(), "machine": os.uname().machine,
        "ptrace_scope": _ptrace_scope(), "ticks_per_second": os.sysconf("SC_CLK_TCK"),
        "left_out": sum(1 + len(rank["children"]) for rank in ranks) - len(watched),
        "locks": list(locks.values()) + [lock for one in watched[:number] for lock in _left_locks(one, frames)],
        "held": [{"pid": one.pid, "file": path} for one in watched[:number] for path in _lock_files(one.pid)],
    }  # fmt: skip


class _Frames:
    """The frames of all stacks, each once: stacks refer to them by number."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.numbers: "Dict[Key, int]" = {}
        self.lines: "Dict[int, str]" = {}
        # By the owner of the process: {path: [(line, number of the frame)]}
        self.files: "Dict[Optional[own_files.Owner], Dict[str, List[Tuple[int, int]]]]" = {}

    def number(self, frame: "Mapping[str, Any]", owner: "Optional[own_files.Owner]") -> int:
        file, short, line = str(frame.get("filename") or ""), str(frame.get("short_filename") or ""), frame.get("line")
        line = line if isinstance(line, int) and 0 <= line < 1 << 31 else 0
        key = (str(frame.get("name") or "")[:_LONGEST], file[-_LONGEST:], short[-_LONGEST:], line)
        with self.lock:
            if key not in self.numbers:
                self.numbers[key] = len(self.numbers)
                self.files.setdefault(owner, {}).setdefault(file, []).append((line, self.numbers[key]))
            return self.numbers[key]

    def is_in(self, number: int, file: str) -> bool:
        """Whether a frame is in a file of a library."""
        with self.lock:
            return next((key[1] for key, it in self.numbers.items() if it == number), "").endswith(file)

    def add_source_lines(self, ends: float) -> None:
        """Read what stands at the places of the frames, each file once.

        Of what lies on a mount that hangs, what was read before it stays.
        """
        try:
            readers = [own_files.Reader(owner, files) for owner, files in self.files.items() if owner]
            for reader in readers:
                self.lines.update((number, text[:_LONGEST]) for number, text in reader.lines(ends))
        except OSError:
            pass  # no further process can be started: the stacks come without the lines of source

    def listed(self) -> "List[List[Any]]":
        with self.lock:
            return [[*key, self.lines.get(number, "")] for key, number in self.numbers.items()]


class _Watched:
    """One process. `rank` is the pid of the rank that it is, or that it is beneath."""

    def __init__(
        self, sources: "Sources", pid: int, rank: int, started: "Optional[int]" = None, beside: str = ""
    ) -> None:
        self.sources, self.pid, self.rank, self.beside, self.started = sources, pid, rank, beside, started
        self.program: "Optional[str]" = None
        self.untrusted: "Optional[str]" = None
        self.samples: "List[List[Thread]]" = []
        self.tasks: "List[List[Thread]]" = []
        self.times: "List[float]" = []
        self.native: "Optional[List[Thread]]" = None
        self.owner: "Optional[own_files.Owner]" = None
        self.error, self.gone, self.hangs = "", False, False

    def look(self, frames: _Frames, ends: float) -> None:
        """Look at it in a thread of its own, which is left alone if it does not come back."""
        if not (self.hangs or self.gone):
            self.hangs = not within(min(_PATIENCE, max(0.1, ends - time.monotonic())), self.look_at_all, frames)

    def look_at_all(self, frames: _Frames) -> bool:
        """Take one sample of what the kernel says, and of the Python stacks."""
        self.gone = not self.is_there()
        tasks = [] if self.gone else _tasks(self.pid, _MOST_TASKS if self.pid == self.rank else 2)
        if tasks:
            self.tasks[1:], self.times[1:] = [tasks], [time.monotonic()]  # the first and the last look are kept
            if self.program is None:
                self.program, self.untrusted = self.found()
            if self.program and (self.samples or not self.error):
                sample = self.sampled(frames, ["--nonblocking"], _PATIENCE)
                self.samples += [sample] if sample is not None else []
        return True

    def look_deeper(self, frames: _Frames, ends: float) -> None:
        """Take one sample with native frames, which pauses the process: only if each of its threads runs or sleeps.

        One in state D does not stop: py-spy waits for it, and if that is ended meanwhile, the job stops for good.
        """
        seconds = min(_PATIENCE_DEEPER, ends - time.monotonic())
        fit = self.samples and not (self.hangs or self.gone) and seconds >= _PATIENCE_DEEPER / 2
        if fit and self.is_there() and _states(self.pid) <= {"R", "S"}:
            self.native = self.sampled(frames, ["--native"], seconds, attempts=1)
            if self.native is None:
                self.error = "--native: " + self.error
            if _left_stopped(self.pid):
                self.error = "process {0} was left stopped by py-spy --native: kill -CONT {0}".format(self.pid)
                self.samples = []  # the report names the error of a process without stacks

    def is_there(self) -> bool:
        """Whether the process is still the one that was asked about, and has not ended."""
        now = proc.stat(self.pid)
        if now is None or now.ended:
            return False
        self.started = self.started or now.started
        return now.started == self.started and (self.pid == self.rank or self.rank in proc.above(self.pid))

    def sampled(
        self, frames: _Frames, options: "Sequence[str]", seconds: float, attempts: int = _ATTEMPTS
    ) -> "Optional[List[Thread]]":
        """Return the threads as py-spy sees them; None if it could not, and then the error says why."""
        argv = [str(self.program), "dump", "--json", *options, "--pid", str(self.pid)]
        environment = dict(self.sources.job.login_environment, NO_COLOR="1")
        for _ in range(attempts):
            reply = self.sources.as_root(argv, seconds, environment, tail=False)
            if reply["status"] == "ok" and reply.get("exit_status") == 0:
                try:
                    threads = [_thread(one, frames, self) for one in json.loads(reply["stdout"])[:_MOST_THREADS]]
                except (ValueError, TypeError, AttributeError, KeyError) as error:
                    self.error = "its output cannot be read: {}".format(error)[:_LONGEST_WORDS]
                else:
                    self.error = ""
                    return threads
            else:
                message = reply.get("stderr", "").partition("Stack backtrace:")[0].strip()
                refused = reply.get("reason", "") if reply["status"] != "ok" else ""
                self.error = (refused or message or "exit status {}".format(reply.get("exit_status")))[:_LONGEST_WORDS]
            if not _WHILE_IT_RUNS.search(self.error):
                break
            time.sleep(0.02)
        return None

    def found(self) -> "Tuple[Optional[str], str]":
        """Return the py-spy to use, and one that was found but belongs to somebody who is not trusted with that.

        It lies on PATH, or beside ncheck. One beside the rank's interpreter, in its environment or on its PATH is used
        for this user's own ranks only, never by sudo nor out of a container: the rank itself says where these are.
        """
        self.owner = _owner(self.pid)
        by_root, job = os.geteuid() == 0 or self.sources.sudo, self.sources.job
        environment = job.login_environment if by_root else job.environment
        own = self.owner[:2] == ("", os.geteuid()) and (os.geteuid() == 0 or not self.sources.sudo)
        folders = self.folders() if own else []
        folders += environment.get("PATH", "").split(":") + commands.SYSTEM_FOLDERS.split(":")
        folders += [os.path.expanduser("~/.local/bin"), self.beside]
        refused = ""
        for folder in folders:
            one = os.path.realpath(folder + "/py-spy")  # what is checked is what is run
            if folder.startswith("/") and os.access(one, os.X_OK) and os.path.isfile(one):
                if not one.startswith("/proc/") and (not by_root or own_files.is_ours_alone(one)):
                    return one, ""
                refused = refused or one
        return None, refused

    def folders(self) -> "List[str]":
        """Return where the rank's own py-spy may lie."""
        variables = proc.environment(self.pid) or {}
        programs = [*proc.command(self.pid)[:1], proc.link(self.pid, "exe")]
        found = [variables[name] + "/bin" for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if variables.get(name)]
        return found + [os.path.dirname(path) for path in programs] + variables.get("PATH", "").split(":")

    def described(self) -> "Dict[str, Any]":
        samples, tasks, times = list(self.samples), list(self.tasks), list(self.times)
        shown = [None if at and one == samples[at - 1] else one for at, one in enumerate(samples)]
        return {
            "pid": self.pid, "rank": self.rank, "gone": self.gone, "hangs": self.hangs, "py_spy": self.program or "",
            "not_run": self.untrusted or "", "samples": shown, "native": self.native, "error": self.error,
            "tasks": tasks, "seconds": round(times[-1] - times[0], 3) if times else 0.0,
        }  # fmt: skip


# Error: Failed to copy PyThreadState   |   Error: failed to get gil_thread_id   |   Bad address (os error 14)
_WHILE_IT_RUNS = re.compile(r"(?i)failed to (?:copy|call|get|find|suspend)|bad address|recursion depth|cannot be read")


def _thread(one: "Mapping[str, Any]", frames: _Frames, process: _Watched) -> "Thread":
    """Return one thread of py-spy's, its innermost frame first."""
    tid = one.get("os_thread_id")
    return {
        "name": str(one.get("thread_name") or "")[:_LONGEST], "id": str(one.get("thread_id"))[:_LONGEST],
        "tid": tid if isinstance(tid, int) else None, "active": bool(one.get("active")),
        "gil": bool(one.get("owns_gil")),
        "stack": [frames.number(it, process.owner) for it in one["frames"][:_MOST_FRAMES]],
    }  # fmt: skip


def _tasks(pid: int, most: int) -> "List[Thread]":
    """Return the threads as the kernel knows them, the main thread first; none for a process that is gone."""
    numbers = sorted(proc.threads(pid), key=lambda tid: tid != pid)
    return [task for task in (_task(pid, tid) for tid in numbers[:most]) if task]


def _task(pid: int, tid: int) -> "Optional[Thread]":
    """Return one thread: its state, its CPU time in clock ticks, and how often it has gone to sleep so far."""
    folder = "task/{}/".format(tid)
    now = proc.stat(pid, thread=tid)
    if now is None:
        return None
    ran = proc.text(pid, folder + "schedstat").split()  # nanoseconds on a CPU, and ready without one
    switches = proc.status(pid, thread=tid).get("voluntary_ctxt_switches")
    call = proc.text(pid, folder + "syscall").strip()
    words = call.split()
    first = int(words[1], 16) if len(words) > 1 and words[1].startswith("0x") else 1 << 32
    return {
        "tid": tid, "name": now.name[:_LONGEST], "state": now.state, "ticks": now.user + now.system,
        "switches": int(switches) if switches else None, "delay": int(ran[1]) if len(ran) > 2 else None,
        "wchan": proc.text(pid, folder + "wchan")[:_LONGEST], "syscall": call[:_LONGEST],
        "file": proc.link(pid, "fd/{}".format(first))[:_LONGEST] if first < 1 << 31 else "",
        "stack": proc.text(pid, folder + "stack").splitlines()[:16] if now.state == "D" else [],
    }  # fmt: skip


# 7: POSIX  ADVISORY  WRITE 4711 08:01:1835091 0 EOF | 7: -> POSIX  ADVISORY  WRITE 4720 08:01:1835091 0 EOF
_LOCK = re.compile(r"^(\d+): (->)? *(?:FLOCK|POSIX|OFDLCK) +\w+ +\w+ (-?\d+) (\S+)", re.MULTILINE)


def _locks(ranks: "Iterable[_Watched]") -> "Dict[int, Dict[str, Any]]":
    """Return who holds the lock that a rank waits for, by the rank's pid; holds: 0 where it is not of this node."""
    pids = {one.pid for one in ranks}
    try:
        with open("/proc/locks") as file:
            lines = _LOCK.findall(file.read(1 << 20))
    except OSError:
        return {}
    holders = {number: int(pid) for number, waits, pid, _ in lines if not waits}
    found: "Dict[int, Dict[str, Any]]" = {}
    for number, waits, pid, _ in lines:
        if waits and int(pid) in pids:
            holder = max(0, holders.get(number, 0))
            name = " ".join(proc.command(holder)).strip() if holder else ""
            found[int(pid)] = {"waits": int(pid), "holds": holder, "name": name[:_LONGEST]}
    return found


_LOCK_FILE = re.compile(r"(?:^|[./-])lock$")
_MOST_FILES, _MOST_LOCKS = 1024, 16


def _lock_files(pid: int) -> "List[str]":
    """Return the lock files that a process has open, locked or not: some are a lock as long as they are there."""
    opened = proc.descriptors(pid, most=_MOST_FILES) or {}
    files = ((number, path) for number, path in opened.items() if path.startswith("/"))
    found = [path for number, path in files if _LOCK_FILE.search(path) or _is_locked(pid, number)]
    return [path[:_LONGEST] for path in found[:_MOST_LOCKS]]


def _is_locked(pid: int, number: int) -> bool:
    return "\nlock:" in proc.text(pid, "fdinfo/{}".format(number))


def _left_locks(process: _Watched, frames: _Frames) -> "List[Dict[str, Any]]":
    """Return the lock files for which a rank may wait in torch's FileBaton, and that no process here has open."""
    shown = (number for sample in process.samples[-1:] for thread in sample for number in thread["stack"])
    if not any(frames.is_in(number, "torch/utils/file_baton.py") for number in shown):
        return []
    variables = proc.environment(process.pid) or {}
    base = variables.get("XDG_CACHE_HOME") or variables.get("HOME", "/root") + "/.cache"
    folder = variables.get("TORCH_EXTENSIONS_DIR") or base + "/torch_extensions"
    root = proc.path(process.pid, "root")
    found = [path[len(root) :] for one in within(_LOCKS_PATIENCE, _locks_in, root + folder) for path in one]
    if not found:
        return []
    held = within(_LOCKS_PATIENCE, lambda: {path for pid in proc.pids() for path in _lock_files(pid)})
    left = sorted(set(found) - held[0]) if held else []
    return [{"waits": process.pid, "holds": 0, "name": "", "file": path} for path in left]


_LOCKS_PATIENCE = 1.0  # seconds


def _locks_in(folder: str) -> "List[str]":
    """Return the lock files in folders of extensions: FOLDER/py311_cu121/NAME/lock, or FOLDER/NAME/lock."""
    return (glob.glob(folder + "/*/lock") + glob.glob(folder + "/*/*/lock"))[:_MOST_LOCKS]


def _owner(pid: int) -> own_files.Owner:
    """Return whose process it is."""
    root = "" if proc.link(pid, "ns/mnt") == proc.link("self", "ns/mnt") else proc.path(pid, "root")
    status = os.stat(proc.path(pid))
    return own_files.Owner(root, status.st_uid, status.st_gid)


def _states(pid: int, root: str = proc.ROOT) -> "Set[str]":
    """Return the states of all threads: {"R", "S"}."""
    return {now.state for now in (proc.stat(pid, root, tid) for tid in proc.threads(pid, root)) if now}


def _left_stopped(pid: int, root: str = proc.ROOT) -> bool:
    """Whether it is stopped, or will be as soon as a thread wakes up to which a SIGSTOP was sent."""
    ends = time.monotonic() + 2.0
    while "t" in _states(pid, root) and time.monotonic() < ends:  # by sudo, py-spy ends a little later
        time.sleep(0.02)
    pending = [proc.status(pid, root, tid).get("SigPnd", "0") for tid in proc.threads(pid, root)]
    return "T" in _states(pid, root) or any(int(one, 16) >> (signal.SIGSTOP - 1) & 1 for one in pending)


def _ptrace_scope() -> "Optional[int]":
    """Return Yama's rule for who may look into whom; None without one."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
