"""The resource limits of a non-interactive login, and the size of /dev/shm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated

from ncheck.decode import OPTIONAL, Count
from ncheck.facts.definition import Fact
from ncheck.facts.environment import Assignment
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Unread


@dataclass(frozen=True)
class SharedMemory:
    """The file system /dev/shm. `total` and `free` in bytes."""

    total: Count
    free: Count


_SHM = "/dev/shm"  # noqa: S108  only named, never written to


def _of_shm(read: SharedMemory | Unread) -> SharedMemory | Unread:
    return replace(read, reason=f"{_SHM}: {read.reason}") if isinstance(read, Unread) else read


@dataclass(frozen=True)
class LimitsFacts:
    """Soft limits of a non-interactive login, None where unlimited, and shared memory.

    `memlock`, `address_space`, `file_size`, `stack` and `data` are in bytes; `cpu_seconds`: seconds of one process.
    `open_files`: how many of one process; `processes`: how many of the user, threads included. `set_in`: by the name in
    limits.conf ("nofile"), the lines of start-up files and of PAM's files that set a limit to the value that it has.
    """

    memlock: Count | None
    shm: Annotated[SharedMemory | Unread, _of_shm]
    open_files: Count | None = None
    processes: Count | None = None
    address_space: Count | None = None
    cpu_seconds: Count | None = None
    file_size: Count | None = None
    stack: Annotated[Count | None, OPTIONAL] = None
    data: Annotated[Count | None, OPTIONAL] = None
    set_in: Annotated[Mapping[str, tuple[Assignment, ...]], OPTIONAL] = field(default_factory=dict)


LIMITS = Answer("limits", shape=LimitsFacts)
FACTS = (Fact(LimitsFacts, (LIMITS,)),)
