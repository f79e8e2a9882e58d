"""What the processes of a running job did while they were watched, and what their node had left for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import OPTIONAL, Key
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Unread
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts

TICKS = 100  # clock ticks per second, of all kernels that show them to programs


@dataclass(frozen=True)
class Look:
    """One look at a process. `user` and `system` are clock ticks, `ran` nanoseconds on a CPU, of all its threads.

    `delay`: nanoseconds that they were ready and waited for a CPU, as others had it; None: the kernel does not say it.

    `read` and `written` are bytes of all system calls, `disk_read` and `disk_written` of file systems; None: this user
    may not read it. `exit_code` is that of a process that has ended, as wait() returns it; 0 if it cannot be read.
    """

    state: str
    user: int = 0
    system: int = 0
    minor: int = 0
    major: int = 0
    exit_code: int = 0
    rss: int = 0
    swap: int | None = 0
    ran: int | None = 0
    turns: int | None = 0
    read: int | None = 0
    written: int | None = 0
    disk_read: int | None = 0
    disk_written: int | None = 0
    delay: Annotated[int | None, OPTIONAL] = None


@dataclass(frozen=True)
class Thread:
    """A thread: `states` at both looks, `ran` nanoseconds in between, `wait` the kernel function that it waits in."""

    tid: int
    name: str
    states: tuple[str, ...]
    ran: int | None = None
    wait: str = ""
    call: str = ""


@dataclass(frozen=True)
class Written:
    """A file open for writing: the position at both looks, in bytes."""

    path: str
    start: Annotated[int | None, Key("from")]
    end: Annotated[int, Key("to")]

    @property
    def grown(self) -> int:
        return max(0, self.end - self.start) if self.start is not None else 0


@dataclass(frozen=True)
class MountUse:
    """A file system of a process. `used` is a path on it that the process works in or has open, "" for none."""

    point: str
    kind: Annotated[str, Key("type")]
    source: str = ""
    read_only: Annotated[bool, Key("options"), _read_only] = False
    used: str = ""


@dataclass(frozen=True)
class ProcessActivity:
    """One process. `rank_pid` is the rank that it is, or is beneath. `looks` has one item if it ended in between.

    `threads` are the first and those that did more than sleep. `cpus`: so many it may run on. `libraries`: those of
    NCCL, MPI and CUDA that are mapped, with the version where the file says it; None if they could not be read.
    """

    pid: int
    rank_pid: int
    name: str
    looks: tuple[Look, ...]
    threads: tuple[Thread, ...] = ()
    thread_count: int = 1
    cpus: int | None = None
    oom_score_adj: int | None = None
    files: int | None = None
    files_limit: int | None = None
    cwd: str | None = None
    output: tuple[str | None, ...] = ()
    written: tuple[Written, ...] = ()
    mounts: tuple[MountUse, ...] = ()
    groups: tuple[str, ...] = ()
    libraries: Mapping[str, str] | None = None

    @property
    def states(self) -> str:
        """The states at both looks: "SS"."""
        return "".join(look.state for look in self.looks)

    @property
    def ended(self) -> bool:
        """Whether it has ended and its parent has not yet taken note of it, or it is gone."""
        return len(self.looks) == 1 or (self.states == "ZZ" and self.thread_count <= 1)

    def grown(self, name: str) -> int | None:
        """Return by how much a figure of Look has grown; None if it cannot be read."""
        first, last = (getattr(look, name) for look in (self.looks[0], self.looks[-1]))
        return None if first is None or last is None else max(0, last - first)

    @property
    def cpu_seconds(self) -> float:
        """The CPU time between the looks."""
        ran = self.grown("ran")
        return (self.grown("user") or 0) / TICKS + (self.grown("system") or 0) / TICKS if ran is None else ran / 1e9

    @property
    def wanted_seconds(self) -> float:
        """The CPU time that it would have had between the looks on a node that is not crowded."""
        return self.cpu_seconds + (self.grown("delay") or 0) / 1e9


@dataclass(frozen=True)
class Space:
    """The room on the file system of a path: bytes, and numbers of files (0 of 0: it has no such limit)."""

    size: int
    free: int
    files: int
    files_free: int


@dataclass(frozen=True)
class Group:
    """A control group. `limit`: bytes, None is unlimited. `used`: bytes without cached files.

    `killed`: processes that the kernel ended there for lack of memory. `cpus`: so many it may use, None is unlimited.
    `throttled`: the share of its periods in which it was held back while it was watched.
    """

    folder: str
    limit: int | None = None
    used: int | None = None
    killed: int = 0
    cpus: float | None = None
    throttled: float = 0.0


@dataclass(frozen=True)
class NodeActivity:
    """The node while it was watched: shares from 0 to 1, bytes, pages per second.

    `pressure`: the share of the last 10 s in which work waited, by resource and kind: "memory full".
    `disks`: the share of the time in which a disk was busy.
    """

    memory: int = 0
    available: int = 0
    swap: int = 0
    swapped_in: float = 0.0
    cpu: float = 0.0
    waiting: float = 0.0
    load: float = 0.0
    killed: int = 0
    pressure: Mapping[str, float] | None = None
    disks: Mapping[str, float] | None = None


@dataclass(frozen=True)
class ActivityFacts:
    """The job's processes on one node, by pid, watched for `seconds`. `gone`: ranks that had ended before.

    `spaces` by path; `cpus` of the node.
    """

    processes: Mapping[int, ProcessActivity]
    gone: frozenset[int] = frozenset()
    seconds: float = 2.0
    groups: Mapping[str, Group] | None = None
    spaces: Mapping[str, Space | Unread] | None = None
    node: NodeActivity = NodeActivity()
    cpus: int = 1

    def of(self, pid: int) -> ProcessActivity | Unread:
        return self.processes.get(pid) or Unread("it had ended" if pid in self.gone else "it was not looked at")

    def beneath(self, pid: int) -> tuple[ProcessActivity, ...]:
        """Return the processes beneath a rank."""
        return tuple(one for one in self.processes.values() if one.rank_pid == pid != one.pid)


Texts = Mapping[str, str]


@dataclass(frozen=True)
class ActivityAnswer:
    """`node`: what files of /proc said at both looks; `groups`: the same of each control group's files."""

    seconds: float
    gone: frozenset[int]
    processes: tuple[ProcessActivity, ...]
    groups: Mapping[str, tuple[Texts, ...]]
    spaces: Mapping[str, Space | Unread] | None
    node: tuple[Texts, Texts]
    cpus: int | None


ACTIVITY = Answer("activity", timeout=10.0, shape=ActivityAnswer)


@reading(ACTIVITY)
def activity(answer: ActivityAnswer) -> ActivityFacts:
    """Read what the processes did."""
    processes = {one.pid: one for one in answer.processes if one.looks}
    groups = {folder: _group(folder, *texts) for folder, texts in answer.groups.items() if len(texts) == 2}  # noqa: PLR2004
    node = _node(*answer.node, answer.seconds)
    return ActivityFacts(processes, answer.gone, answer.seconds, groups, answer.spaces or {}, node, answer.cpus or 1)


def _read_only(options: str) -> bool:
    return "ro" in options.split(",")


_UNLIMITED = 1 << 60  # version 1 of control groups writes its largest number for "no limit"


def _group(folder: str, before: Texts, after: Texts) -> Group:
    memory, cpu = _table(after.get("memory.stat", "")), _table(after.get("cpu.stat", ""))
    limit = _whole(after.get("memory.max") or after.get("memory.limit_in_bytes", ""))
    used = _whole(after.get("memory.current") or after.get("memory.usage_in_bytes", ""))
    cached = sum(memory.get(name, memory.get(f"total_{name}", 0)) for name in ("inactive_file", "active_file"))
    killed = _table(after.get("memory.events") or after.get("memory.oom_control", "")).get("oom_kill", 0)
    earlier = _table(before.get("cpu.stat", ""))
    periods = cpu.get("nr_periods", 0) - earlier.get("nr_periods", 0)
    throttled = cpu.get("nr_throttled", 0) - earlier.get("nr_throttled", 0)
    return Group(
        folder,
        limit if limit is not None and limit < _UNLIMITED else None,
        None if used is None else max(0, used - cached),
        killed,
        _cpus(after),
        throttled / periods if periods > 0 else 0.0,
    )


def _cpus(texts: Texts) -> float | None:
    """Return how many CPUs a group may use: cpu.max has "200000 100000", or "max 100000"."""
    quota, _, period = texts.get("cpu.max", "").partition(" ")
    quota, period = quota or texts.get("cpu.cfs_quota_us", ""), period or texts.get("cpu.cfs_period_us", "")
    allowed, every = _whole(quota), _whole(period)
    return allowed / every if allowed and every and allowed > 0 else None


def _node(before: Texts, after: Texts, seconds: float) -> NodeActivity:
    memory = {name: 1024 * kib for name, kib in _table(after.get("meminfo", "").replace(":", " ")).items()}
    first, last = _table(before.get("vmstat", "")), _table(after.get("vmstat", ""))

    def rate(name: str) -> float:
        return max(0, last.get(name, 0) - first.get(name, 0)) / max(seconds, 0.1)

    busy, waiting = _cpu(before.get("stat", ""), after.get("stat", ""))
    load = re.match(r"[\d.]{1,12}", after.get("loadavg", ""))
    return NodeActivity(
        memory.get("MemTotal", 0), memory.get("MemAvailable", 0), memory.get("SwapTotal", 0), rate("pswpin"), busy,
        waiting, float(load[0]) if load else 0.0, max(0, last.get("oom_kill", 0) - first.get("oom_kill", 0)),
        _pressure(after), _disks(before.get("diskstats", ""), after.get("diskstats", ""), seconds),
    )  # fmt: skip


def _cpu(before: str, after: str) -> tuple[float, float]:
    """Return the shares of CPU time that was used, and that waited for I/O: cpu  10132153 290696 3084719 46828483."""
    first, last = ([int(word) for word in text.partition("\n")[0].split()[1:9] if word.isdecimal()]
                   for text in (before, after))  # fmt: skip
    spent = [now - then for then, now in zip(first, last, strict=False)]
    total = sum(spent)
    if len(spent) < 5 or total <= 0:  # noqa: PLR2004  user nice system idle iowait
        return 0.0, 0.0
    return max(0.0, 1 - (spent[3] + spent[4]) / total), max(0.0, spent[4] / total)


# some avg10=12.34 avg60=1.00 avg300=0.20 total=123
_PRESSURE = expression(r"^(some|full) avg10=([\d.]{1,12})", re.MULTILINE)


def _pressure(texts: Texts) -> dict[str, float]:
    return {
        f"{resource} {kind}": min(1.0, float(share) / 100)
        for resource in ("cpu", "memory", "io")
        for kind, share in _PRESSURE.findall(texts.get(f"pressure/{resource}", ""))
    }


_BUSY = 12  # the column of the milliseconds in which a disk did something


def _disks(before: str, after: str, seconds: float) -> dict[str, float]:
    """Return how busy each disk was:    8       0 sda 11 22 33 44 ..."""

    def busy(text: str) -> dict[str, int]:
        rows = (line.split() for line in text.splitlines())
        return {row[2]: int(row[_BUSY]) for row in rows if len(row) > _BUSY and row[_BUSY].isdecimal()}

    first, last = busy(before), busy(after)
    return {
        name: min(1.0, max(0, now - first[name]) / 1000 / max(seconds, 0.1))
        for name, now in last.items()
        if name in first
    }


def _table(text: str) -> dict[str, int]:
    """Return the numbers of lines such as "oom_kill 3"."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal() and len(row[1]) < 20}  # noqa: PLR2004


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\s*-?\d{1,20}\s*", text) else None


FACTS = (
    Fact(
        ActivityFacts, (ACTIVITY,), activity, phase=LOOKING, needs=(ProcessesFacts,), questions=ask_of_ranks(ACTIVITY)
    ),
)
