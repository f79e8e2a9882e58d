"""What is on a node before the job starts: memory, load, system-wide limits, and processes that are stuck."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import OPTIONAL, Count, Null
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.facts.environment import variable
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.text import printable


@dataclass(frozen=True)
class Use:
    """How much of a limit is used. `used` and `limit`: numbers of what is limited, such as files; of swap, its
    bytes.
    """

    used: int
    limit: int


def _name(text: str) -> str:
    return printable(text, 64)


@dataclass(frozen=True)
class Stuck:
    """A process in uninterruptible sleep; `wait` is the kernel function that it waits in, "" if it is not shown."""

    pid: Count
    name: Annotated[str, _name]
    wait: Annotated[str, _name] = ""


@dataclass(frozen=True)
class LeftOver:
    """A rank that outlived its launcher. `variable`: that of the launcher; `holds`: "/dev/nvidia0", "port 29500"."""

    pid: Count
    name: Annotated[str, _name]
    variable: Annotated[str, variable]
    holds: tuple[Annotated[str, _name], ...]


@dataclass(frozen=True)
class Raylet:
    """A daemon of Ray. `address`: that by which Ray knows the node; `host_ip`: its VLLM_HOST_IP, "" unset.

    `contained`: it has other files than a login, as in a container: what a login has says nothing of what runs there.
    """

    pid: Count
    address: Annotated[str, _name]
    host_ip: Annotated[str, _name] = ""
    contained: Annotated[bool, OPTIONAL] = False


@dataclass(frozen=True)
class HostLoadFacts:
    """What the node is busy with; None is what could not be read.

    `memory`: bytes; `available`: bytes that a program can get. It counts the part of ZFS's cache that is given back
    when needed, unlike the kernel's own MemAvailable. `hugepages`: bytes that are reserved for these. `swap` in
    bytes.

    `cpus`: how many run. `load`: processes that ran or waited, the average of the last five minutes; `stalled`: 0
    to 1, the share of the last minute in which every process that ran waited for memory. `files` and `threads` of
    the whole node. `stuck_more`: how many others are stuck; `hidden`: this user is shown only its own processes.
    `left_over`: ranks of an earlier job; `raylets`: Ray's daemons of this user.
    """

    cpus: int
    memory: int | None = None
    available: int | None = None
    hugepages: int = 0
    swap: Use | None = None
    load: float | None = None
    stalled: float | None = None
    files: Use | None = None
    threads: Use | None = None
    stuck: tuple[Stuck, ...] = ()
    stuck_more: int = 0
    hidden: bool = False
    left_over: tuple[LeftOver, ...] = ()
    raylets: tuple[Raylet, ...] = ()


@dataclass(frozen=True)
class HostLoadAnswer:
    """Bytes, and texts as the kernel prints them."""

    memory: Mapping[str, Count]
    pressure: Annotated[str, Null("")]
    load: Annotated[str, Null("")]
    cpus: Count
    files: Annotated[str, Null("")]
    most_threads: int | None
    most_processes: int | None
    hidden: bool
    stuck: tuple[Stuck, ...]
    stuck_more: Count
    left_over: Annotated[tuple[LeftOver, ...], OPTIONAL] = ()
    raylets: Annotated[tuple[Raylet, ...], OPTIONAL] = ()


HOST_LOAD = Answer("host-load", shape=HostLoadAnswer, slow=True)

# 1.89 3.00 6.10 5/372 7750
_LOAD = expression(r"[\d.]{1,12} ([\d.]{1,12}) [\d.]{1,12} \d+/(\d{1,10})\b")

# full avg10=0.00 avg60=1.25 avg300=0.20 total=72607
_STALLED = expression(r"^full avg10=[\d.]+ avg60=([\d.]{1,12})", re.MULTILINE)

# 986     0       2466170
_FILES = expression(r"(\d{1,20})\s+\d+\s+(\d{1,20})")


@reading(HOST_LOAD)
def host_load(answer: HostLoadAnswer) -> HostLoadFacts:
    """Read the figures."""
    memory = answer.memory
    load, stalled, files = _LOAD.match(answer.load), _STALLED.search(answer.pressure), _FILES.match(answer.files)
    most = [limit for limit in (answer.most_threads, answer.most_processes) if limit]
    swap = memory.get("SwapTotal")
    return HostLoadFacts(
        cpus=answer.cpus,
        memory=memory.get("MemTotal") or None,
        available=_available(memory),
        hugepages=memory.get("Hugetlb", 0),
        swap=Use(max(0, swap - memory.get("SwapFree", swap)), swap) if swap else None,
        load=float(load[1]) if load else None,
        stalled=min(1.0, float(stalled[1]) / 100) if stalled else None,
        files=Use(int(files[1]), int(files[2])) if files and int(files[2]) else None,
        threads=Use(int(load[2]), min(most)) if load and most else None,
        stuck=answer.stuck,
        stuck_more=answer.stuck_more,
        hidden=answer.hidden,
        left_over=answer.left_over,
        raylets=answer.raylets,
    )


def _available(memory: Mapping[str, int]) -> int | None:
    available = memory.get("MemAvailable")
    return None if available is None else min(available + memory.get("ZfsCache", 0), memory.get("MemTotal", available))


FACTS = (Fact(HostLoadFacts, (HOST_LOAD,), host_load),)
