"""Flight recorder dumps among the paths of `ncheck triage --logs`: found by their names and their first bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import islice

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.model.fact import Unread
from ncheck.triage.parse.flight_recorder import MOST, Dump, is_dump, read
from ncheck.triage.sources import MOST_FILES, Refusal, Unreadable, not_refused, opened_path

# nccl_trace_rank_12, nccl_trace_rank_12.json, comm_lib_trace_rank_0.pkl
_RANK = expression(r"(\d{1,7})(?:\.(?:json|pkl|pickle|bin))?$")
_HEAD = 4096


@dataclass
class DumpFiles:
    """`dumps` by rank, the `names` of their files, and `unread`: files that should be dumps and cannot be read."""

    dumps: dict[int, Dump] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    unread: dict[int, Unreadable] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)  # as the user named them: they are no logs


def dump_files(paths: Sequence[str], refusal: Refusal = not_refused) -> DumpFiles:
    """Read the dumps that these paths name, or that lie in these folders; of two of one rank the newer one."""
    found = DumpFiles()
    newest: dict[int, float] = {}
    for path in paths:
        for name in islice(_files(path), MOST_FILES):
            match = _RANK.search(name)
            opened = _dump(name, refusal) if match else None
            if match is None or opened is None:
                continue
            found.paths.add(name)
            rank, (dump, time) = int(match[1]), opened
            if time < newest.get(rank, 0.0):
                continue
            newest[rank] = time
            found.names[rank] = name
            found.dumps.pop(rank, None)
            found.unread.pop(rank, None)
            if isinstance(dump, Dump):
                found.dumps[rank] = dump
            else:
                found.unread[rank] = Unreadable(name, dump.reason)
    return found


def _files(path: str) -> Iterator[str]:
    if path == "-":
        return
    if not os.path.isdir(path):  # noqa: PTH112  it does not raise where a folder above cannot be read
        yield path
        return
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(place, name) for name in sorted(names))  # noqa: PTH118  as the user wrote the folder


def _dump(name: str, refusal: Refusal) -> tuple[Dump | Unread, float] | None:
    """Read a dump and its time; None if the file is none, or cannot be opened: the reader of logs says why."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123  a descriptor
            if refusal(opened_path(file.fileno())):
                return None
            found = os.fstat(file.fileno())
            head = file.read(_HEAD) if stat.S_ISREG(found.st_mode) else b""
            return (read(head + file.read(MOST + 1 - len(head))), found.st_mtime) if is_dump(head) else None
    except OSError:
        return None
