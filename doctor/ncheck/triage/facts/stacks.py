"""What the ranks of a job are doing: the stacks of their Python threads, and what the kernel says of each thread."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import OPTIONAL
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Absent, Unread
from ncheck.model.job import Job, Target
from ncheck.text import printable
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts

if TYPE_CHECKING:
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Frame:
    """One frame of a stack: a Python function, or a native one. `line` is 0 where it is not known.

    `file` is the whole path, `short` without the folder that its package is in; `source` the line of code itself, ""
    if it could not be read.
    """

    function: str
    file: str
    short: str
    line: int
    source: str = ""


@dataclass(frozen=True)
class PythonThread:
    """One Python thread, its innermost frame first. `number` is the kernel's, None if it is not known.

    `idle`: it waits in the kernel. `gil`: it holds the interpreter's lock.
    """

    name: str
    frames: tuple[Frame, ...]
    number: int | None = None
    idle: bool = False
    gil: bool = False


@dataclass(frozen=True)
class Task:
    """One thread as the kernel knows it. `cpu`: seconds that it computed; `sleeps`: how often it went to sleep so far.

    `call` is the system call that it is in, "" if it is in none or this cannot be read; `file` what the call reads or
    writes: a path, "pipe:[1]", "socket:[1]". `wchan` is the kernel's function that it sleeps in. `delay`: seconds that
    it was ready and waited for a CPU so far, None where the kernel does not say it.
    """

    number: int
    name: str
    state: str
    cpu: float
    sleeps: int | None = None
    wchan: str = ""
    call: str = ""
    file: str = ""
    stack: tuple[str, ...] = ()
    delay: float | None = None


@dataclass(frozen=True)
class ProcessStacks:
    """One process: a rank, or a child of one. Its Python threads at each look, which were spread over 2 seconds.

    `looks` is Absent for what is no Python program. `native` are the threads with native frames, where they were asked
    for. `before` and `after` are the kernel's threads at the first and at the last look, `seconds` apart, the main
    thread first. A process that ended meanwhile is `gone`.
    """

    pid: int
    looks: tuple[tuple[PythonThread, ...], ...] | Unread | Absent
    native: tuple[PythonThread, ...] = ()
    before: tuple[Task, ...] = ()
    after: tuple[Task, ...] = ()
    seconds: float = 0.0
    gone: bool = False


@dataclass(frozen=True)
class FileLock:
    """Who holds the lock on a file that a process waits for. `pid` is 0 where that is not known, as on other nodes.

    `file`: a lock file that is there, and that no process of the node has open: it was left.
    """

    pid: int
    name: str = ""
    file: str = ""


@dataclass(frozen=True)
class StacksFacts:
    """The processes of the job on a node, by pid. `unread`: why ranks have no Python stacks, each reason once.

    `left_out`: children beyond the most that are looked at. `locks` by the pid of who waits for one; `held`: the
    lock files that ranks have open, by pid.
    """

    processes: Mapping[int, ProcessStacks]
    unread: tuple[Unread, ...] = ()
    left_out: int = 0
    locks: Mapping[int, FileLock] = field(default_factory=dict)
    held: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def of(self, pid: int) -> ProcessStacks | None:
        return self.processes.get(pid)


@dataclass(frozen=True)
class ThreadAnswer:
    """`stack`: the places of its frames in `frames`, the innermost first."""

    name: Annotated[str, printable]
    tid: int | None
    active: bool
    gil: bool
    stack: tuple[int, ...]


@dataclass(frozen=True)
class TaskAnswer:
    """`switches`: how often it went to sleep; `syscall`: its file in /proc; `file`: the first argument of the call;
    `delay`: nanoseconds.
    """

    tid: int
    name: Annotated[str, printable]
    state: str
    ticks: int
    switches: int | None
    wchan: Annotated[str, printable]
    syscall: str
    file: Annotated[str, _clean]
    stack: tuple[Annotated[str, printable], ...]
    delay: Annotated[int | None, OPTIONAL] = None


@dataclass(frozen=True)
class ProcessAnswer:
    """`hangs`: a look did not come back; `not_run`: a py-spy that this user must not run; `samples`: null for the same
    as before.
    """

    pid: int
    rank: int
    gone: bool
    hangs: bool
    py_spy: str
    not_run: Annotated[str, printable]
    samples: tuple[tuple[ThreadAnswer, ...] | None, ...]
    native: tuple[ThreadAnswer, ...] | None
    error: str
    tasks: tuple[tuple[TaskAnswer, ...], ...]
    seconds: float


@dataclass(frozen=True)
class LockAnswer:
    """`waits`, `holds`: processes; 0 is not of this node."""

    waits: int
    holds: int
    name: Annotated[str, _short_name]
    file: Annotated[str, OPTIONAL, _clean] = ""


@dataclass(frozen=True)
class HeldAnswer:
    """A lock file that a process has open."""

    pid: int
    file: Annotated[str, _clean]


@dataclass(frozen=True)
class StacksAnswer:
    processes: tuple[ProcessAnswer, ...]
    frames: tuple[Annotated[Frame, _frame], ...]
    machine: str
    ptrace_scope: int | None
    ticks_per_second: int
    left_out: int
    locks: Annotated[tuple[LockAnswer, ...], OPTIONAL] = ()
    held: Annotated[tuple[HeldAnswer, ...], OPTIONAL] = ()


STACKS = Answer("stacks", timeout=20.0, shape=StacksAnswer)


@reading(STACKS)
def stacks(answer: StacksAnswer) -> StacksFacts:
    """Read the stacks."""
    found = {one.pid: _process(one, answer) for one in answer.processes}
    ranks = (found[one.pid].looks for one in answer.processes if one.pid == one.rank)
    unread = tuple(dict.fromkeys(looks for looks in ranks if isinstance(looks, Unread)))
    locks = {one.waits: FileLock(one.holds, one.name, one.file) for one in answer.locks}
    held: dict[int, tuple[str, ...]] = {}
    for one in answer.held:
        held[one.pid] = (*held.get(one.pid, ()), one.file)
    return StacksFacts(found, unread, answer.left_out, locks, held)


def _clean(text: str) -> str:
    return printable(text, 300)


def _short_name(text: str) -> str:
    return printable(text, 80)


Clean = Annotated[str, _clean]


def _frame(row: tuple[Clean, Clean, Clean, int, Clean]) -> Frame:
    function, file, short, line, source = row
    return Frame(function, file, _short(file, short), line, source)


def _short(file: str, short: str) -> str:
    """Return a file without the folder that its package is installed in: "torch/serialization.py"."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2]
    return short or file.rpartition("/")[2]


def _process(one: ProcessAnswer, answer: StacksAnswer) -> ProcessStacks:
    looks: list[tuple[PythonThread, ...]] = []
    for sample in one.samples:
        looks.append(looks[-1] if sample is None else _threads(sample, answer.frames))
    tasks = [tuple(_task(task, answer) for task in look) for look in one.tasks[:2]]
    before, after = tasks[0] if tasks else (), tasks[-1] if len(tasks) > 1 else ()
    return ProcessStacks(
        one.pid, tuple(looks) or _why_none(one, answer.ptrace_scope), _threads(one.native or (), answer.frames),
        before, after, one.seconds, one.gone,
    )  # fmt: skip


def _threads(sample: Sequence[ThreadAnswer], frames: Sequence[Frame]) -> tuple[PythonThread, ...]:
    return tuple(
        PythonThread(one.name, tuple(frames[it] for it in one.stack), one.tid, not one.active, one.gil)
        for one in sample
    )


def _why_none(one: ProcessAnswer, ptrace_scope: int | None) -> Unread | Absent:  # noqa: PLR0911  one for each reason
    """Return why there are no Python stacks of a process."""
    message = printable(one.error.strip().partition("\n")[0].removeprefix("Error: "), 300)
    if one.gone:
        return Absent("it has ended")
    if one.hangs:
        return Unread("the look at it did not come back: a file system hangs")
    if one.not_run:
        return Unread(f"root does not run a py-spy that others may write: {one.not_run}", fix=_INSTALL)
    if not one.py_spy:
        return Unread("no py-spy on this node", fix=_INSTALL)
    if "find python version" in message:
        return Absent("it is no Python program")
    if message.startswith("sudo: "):
        return Unread(f"py-spy: {message}")
    if "ermission" in message or "not permitted" in message:
        scope = f" (kernel.yama.ptrace_scope is {ptrace_scope})" if ptrace_scope else ""
        return Unread(f"py-spy may not read it as this user{scope}: it needs root", needs_root=True, fix=_AS_ROOT)
    return Unread(f"py-spy: {message or 'no answer'}", fix=_INSTALL if "Unsupported version" in message else "")


_INSTALL = "pip install py-spy"
_AS_ROOT = "ncheck triage --sudo"


def _task(one: TaskAnswer, answer: StacksAnswer) -> Task:
    number, _, _ = one.syscall.partition(" ")
    known = _CALLS.get(answer.machine, {})
    call = known.get(int(number), "") if re.fullmatch(r"[0-9]{1,4}", number) else ""
    return Task(
        one.tid, one.name, one.state[:1], one.ticks / answer.ticks_per_second, one.switches, one.wchan, call,
        one.file if call in _ON_FILES else "", one.stack, None if one.delay is None else one.delay / 1e9,
    )  # fmt: skip


# The numbers of system calls: include/uapi/asm-generic/unistd.h for arm64, arch/x86/entry/syscalls/syscall_64.tbl.
_ON_FILES = frozenset({
    "read", "write", "pread64", "pwrite64", "readv", "writev", "fsync", "fdatasync", "flock", "fcntl", "getdents64",
    "ftruncate", "close", "fstat", "accept", "connect", "recvfrom", "recvmsg", "sendto", "sendmsg", "ioctl", "lseek",
    "sendfile", "splice", "fallocate", "sync_file_range", "accept4",
})  # fmt: skip
_CALLS: Mapping[str, Mapping[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat", 7: "poll", 8: "lseek",
        16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 21: "access", 23: "select", 34: "pause",
        35: "nanosleep", 40: "sendfile", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 77: "ftruncate",
        82: "rename", 83: "mkdir", 87: "unlink", 89: "readlink", 128: "rt_sigtimedwait", 162: "sync",
        165: "mount", 202: "futex", 208: "io_getevents", 217: "getdents64", 230: "clock_nanosleep", 232: "epoll_wait",
        247: "waitid", 257: "openat", 262: "newfstatat", 270: "pselect6", 271: "ppoll", 275: "splice",
        277: "sync_file_range", 281: "epoll_pwait", 285: "fallocate", 288: "accept4", 332: "statx",
        426: "io_uring_enter", 441: "epoll_pwait2",
    },
    "aarch64": {
        21: "epoll_create1", 22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 34: "mkdirat", 35: "unlinkat",
        4: "io_getevents", 40: "mount", 46: "ftruncate", 47: "fallocate", 48: "faccessat", 56: "openat", 57: "close",
        61: "getdents64", 62: "lseek", 63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64",
        68: "pwrite64", 71: "sendfile", 72: "pselect6", 73: "ppoll", 76: "splice", 78: "readlinkat", 79: "newfstatat",
        80: "fstat", 81: "sync", 82: "fsync", 83: "fdatasync", 84: "sync_file_range", 95: "waitid", 98: "futex",
        101: "nanosleep", 115: "clock_nanosleep", 137: "rt_sigtimedwait", 202: "accept", 203: "connect",
        206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4", 276: "renameat2",
        291: "statx", 426: "io_uring_enter", 441: "epoll_pwait2",
    },
}  # fmt: skip


def _more(_job: Job, _node: str, settings: Settings) -> Mapping[str, JsonValue] | None:
    target = settings.run.target or Target()
    beside = str(Path(sys.executable).parent)  # a home folder that all nodes share has it there, too
    return {"native": target.native, "beside": beside} if target.stacks else None


FACTS = (
    Fact(StacksFacts, (STACKS,), stacks, phase=LOOKING, needs=(ProcessesFacts,), questions=ask_of_ranks(STACKS, _more)),
)
