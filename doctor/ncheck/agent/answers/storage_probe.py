"""How fast this node reads the job's data: alone at its turn, then with all others. Existing files only, nothing kept.

Blocks of a large file are read past the page cache (O_DIRECT) where the file system allows it; otherwise the answer
says that the cache may have served them.
"""

import mmap
import os
import stat
import time
from collections import deque

from ncheck.agent.files import open_regular
from ncheck.agent.isolated_calls import each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Tuple

    from ncheck.agent.sources import Arguments

READS = (
    "of --data, or the current folder: its first 2000 entries, 256 MiB of their largest file, and 64 small files;",
    "for a second at the node's turn and for a second with all nodes; what is read is thrown away",
)

_MOST_ENTRIES, _MOST_SMALL, _MOST_BYTES = 2000, 64, 256 << 20
_SMALL, _BLOCK = 256 << 10, 1 << 20  # bytes
_PATIENCE = 2.0  # seconds beyond the time of a reading


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what was read of each path, in how many seconds; null where it did not end.

    Asked as {"paths", "place": of the node, "turn": when it reads alone, "turns": when all read, "unit": seconds}.
    """
    began, unit = time.monotonic(), arguments["unit"]
    looks = []
    for turn in (arguments["turn"], arguments["turns"]):
        time.sleep(max(0.0, began + turn * unit - time.monotonic()))
        share = 0.8 * unit / len(arguments["paths"])
        work = [(path, share, arguments["place"]) for path in arguments["paths"]]
        looks.append([reading for _, reading in each(_reading, work, unit + _PATIENCE)])
    alone, together = looks
    return {
        "readings": [
            {"path": path, "alone": alone[place], "together": together[place]}
            for place, path in enumerate(arguments["paths"])
        ]
    }


def _reading(work: "Tuple[str, float, int]") -> "Dict[str, object]":
    path, seconds, place = work
    try:
        return _read(path, seconds, place)
    except (OSError, ValueError) as error:
        return {"error": getattr(error, "strerror", None) or str(error)}


def _read(path: str, seconds: float, place: int) -> "Dict[str, object]":
    listed = time.monotonic()
    files, entries = _files(path, listed + 0.25 * seconds)
    listed = time.monotonic() - listed
    small = [name for size, name in files if 0 < size <= _SMALL][:_MOST_SMALL]
    size, largest = max(files, default=(0, ""))
    count, took = _read_small(small, time.monotonic() + 0.25 * seconds)
    read, long, direct = _read_large(largest, size, place, time.monotonic() + 0.5 * seconds)
    return {
        "error": "", "entries": entries, "listed": listed, "small_files": count, "small_seconds": took,
        "large_bytes": read, "large_seconds": long, "direct": direct,
    }  # fmt: skip


def _files(path: str, until: float) -> "Tuple[List[Tuple[int, str]], int]":
    """Return [(size, path)] of regular files, and how many entries were looked at: the nearest first."""
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode):
        return [(status.st_size, path)], 1
    files: "List[Tuple[int, str]]" = []
    entries, folders = 0, deque([path])
    while folders:
        try:
            names = os.scandir(folders.popleft())
        except OSError:
            continue  # one of many that this user may not see
        for one in names:
            if entries >= _MOST_ENTRIES or time.monotonic() > until:
                return files, entries
            entries += 1
            if one.is_dir(follow_symlinks=False):
                folders.append(one.path)
            elif one.is_file(follow_symlinks=False):
                files.append((one.stat(follow_symlinks=False).st_size, one.path))
    return files, entries


def _read_small(paths: "Iterable[str]", until: float) -> "Tuple[int, float]":
    began, count = time.monotonic(), 0
    for path in paths:
        if time.monotonic() > until:
            break
        try:
            number = open_regular(path, follow=False)
        except OSError:
            continue
        try:
            count += bool(os.read(number, _SMALL))
        finally:
            os.close(number)
    return count, time.monotonic() - began


def _read_large(path: str, size: int, place: int, until: float) -> "Tuple[int, float, bool]":
    """Return bytes, seconds, and whether the page cache was passed by. Each node begins elsewhere in the file."""
    if size < _BLOCK:
        return 0, 0.0, False
    number = open_regular(path, follow=False)
    try:
        try:
            direct = os.open("/proc/self/fd/{}".format(number), os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            direct = None
        try:
            began, blocks = time.monotonic(), size // _BLOCK
            read = _blocks(direct if direct is not None else number, blocks, place * 977, until)
            return read, time.monotonic() - began, direct is not None
        finally:
            if direct is not None:
                os.close(direct)
    finally:
        os.close(number)


def _blocks(number: int, blocks: int, first: int, until: float) -> int:
    memory, total = mmap.mmap(-1, _BLOCK), 0  # its address fits a direct read
    for step in range(min(blocks, _MOST_BYTES // _BLOCK)):
        if time.monotonic() > until:
            break
        os.lseek(number, (first + step) % blocks * _BLOCK, os.SEEK_SET)
        total += os.readv(number, [memory])
    return total
