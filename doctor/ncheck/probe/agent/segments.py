"""What ncheck's ranks left in /dev/shm: NCCL's segments outlive the processes that made them.

Their names show no owner, and a job in another container may have the same folder while its processes are invisible
here. So only segments that our own ranks were seen to use are removed.
"""

import glob
import os
import threading

from ncheck.agent import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Mapping, Set, Tuple, Union

SHM = "/dev/shm"  # noqa: S108  where NCCL and CUDA put theirs
NAMES = ("nccl-", "cuda.shm.")
_TO_LOOK = 3.0  # seconds


def here(folder: str = SHM) -> "Dict[str, int]":
    """Return {path: inode} of this user's NCCL and CUDA segments."""
    found = {}
    for path in [path for name in NAMES for path in glob.glob(folder + "/" + name + "*")]:
        try:
            about = os.lstat(path)
        except OSError:
            continue
        if about.st_uid == os.geteuid():
            found[path] = about.st_ino
    return found


def used_by(pid: "Union[int, str]" = "self", folder: str = SHM) -> "Dict[str, int]":
    """Return {path: inode} of the segments that a process has mapped or open: it opens one before it maps it."""
    found = proc.mapped(pid, folder) or {}
    wanted = tuple(folder + "/" + name for name in NAMES)
    for number, path in (proc.descriptors(pid) or {}).items():
        try:
            if path.startswith(wanted):
                found[path] = os.stat(proc.path(pid, "fd", str(number))).st_ino
        except OSError:
            pass  # closed meanwhile
    return {path: inode for path, inode in found.items() if path.startswith(wanted)}


def seen(
    pids: "Iterable[Union[int, str]]", folder: str = SHM, seconds: float = _TO_LOOK
) -> "Tuple[Dict[str, int], bool]":
    """Return the segments of these processes, and whether all could be read: one that hangs may lock its maps."""
    found: "Dict[str, int]" = {}

    def look() -> None:
        for pid in pids:
            found.update(used_by(pid, folder))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(seconds)
    return dict(found), not thread.is_alive()


def removed(before: "Mapping[str, int]", ours: "Mapping[str, int]", folder: str = SHM) -> "List[str]":
    """Remove what is there now, was not before, and is `ours`, {path: inode}; return a line for each."""
    lines = []
    for path, inode in sorted(here(folder).items()):
        if before.get(path) != inode and ours.get(path) == inode:
            try:
                size = os.stat(path).st_size
                os.unlink(path)
            except OSError:
                continue  # a rank has removed it meanwhile
            lines.append("{} ({} bytes) was removed".format(path, size))
    return lines


def still(segments: "Mapping[str, int]", folder: str = SHM) -> "List[str]":
    """Return the paths of those that still exist."""
    present = here(folder)
    return [path for path, inode in segments.items() if present.get(path) == inode]


def of_others(folder: str = SHM, seconds: float = _TO_LOOK) -> "Tuple[Set[str], bool]":
    """Return the paths of other visible processes, and whether all could be read."""
    found, whole = seen([pid for pid in proc.pids() if pid != os.getpid()], folder, seconds)
    return set(found), whole


def unused(segments: "Mapping[str, int]", seconds: float = _TO_LOOK, folder: str = SHM) -> "Dict[str, int]":
    """Return those of {path: inode} that no other process has; none if not all processes could be read."""
    others, whole = of_others(folder, seconds)
    return {path: inode for path, inode in segments.items() if path not in others} if whole else {}


def doubtful(before: "Mapping[str, int]", folder: str = SHM, seconds: float = _TO_LOOK) -> "List[str]":
    """Return a line for each new segment that no visible process has."""
    new = [path for path, inode in sorted(here(folder).items()) if before.get(path) != inode]
    used = of_others(folder, seconds)[0] if new else set()
    line = "{} appeared meanwhile and its owner is unknown: it was not removed"
    return [line.format(path) for path in new if path not in used]
