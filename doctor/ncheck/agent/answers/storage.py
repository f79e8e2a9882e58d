"""The file systems of the job's folders, and all network file systems: each is looked at by a child that may hang."""

import errno
import os
import stat

from ncheck.agent.answers.folders import home_of
from ncheck.agent.files import number_in
from ncheck.agent.isolated_calls import each
from ncheck.agent.mount_table import OWN, mount_of, own_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Sequence, Tuple, Union

    from ncheck.agent.mount_table import Mount
    from ncheck.agent.sources import Arguments, Sources

    Item = Union[Mount, Tuple[str, str]]  # or a folder, and what names it

# The folders where libraries keep what they download and compile.
CACHES = (
    "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME",
    "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH",
)  # fmt: skip

WRITE_PROTECTED = "/sys/dev/block/{}/ro"

READS = (
    OWN + ", " + WRITE_PROTECTED.format("*") + " of disks that are read-only",
    "stat, statvfs and access of the job's folders (--data, the current folder, the home folder, $"
    + ", $".join(CACHES) + ") or the nearest folder above, and statvfs of the network file systems that are mounted, "
    "by children that may hang",
)  # fmt: skip

_PATIENCE = 5.0  # seconds for all file systems together: a healthy one needs milliseconds
_MOST_FOLDERS, _MOST_MOUNTS, _MOST_FORCED = 32, 32, 16
_OF_DISKS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs")


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the folders, the network file systems and disks that became read-only.

    Asked as {"folders": [[what names it, path]]}.
    """
    table = own_mounts()
    folders = _job_folders(sources, arguments["folders"])[:_MOST_FOLDERS]
    mounts = _by_server({one["point"]: one for one in table if one["network"]}.values())[:_MOST_MOUNTS]
    items: "List[Item]" = [*folders, *mounts]
    looked = [state for _, state in each(_looked_at, items, min(_PATIENCE, timeout))]
    mounted = own_mounts()  # with what an automounter mounted for the look
    return {
        "folders": [
            {"path": path, "named_by": named_by, "on": mount_of((state or {}).get("real") or path, mounted),
             "state": state}
            for (path, named_by), state in zip(folders, looked)  # noqa: B905  strict needs Python 3.10
        ],
        "mounts": [dict(one, state=state) for one, state in zip(mounts, looked[len(folders) :])],  # noqa: B905
        "forced": _forced(table),
        "root": os.geteuid() == 0,
    }  # fmt: skip


def _job_folders(sources: "Sources", asked: "Iterable[Sequence[str]]") -> "List[Tuple[str, str]]":
    """Return [(path, what names it)], each path once."""
    home = home_of(sources.job.login_environment)
    named: "Dict[str, str]" = {}
    for named_by, path in asked:
        named.setdefault(os.path.normpath(path), named_by)
    named.setdefault(os.path.normpath(home), "home")
    for environment in (sources.job.environment, sources.job.login_environment):
        for name in CACHES:
            path = environment.get(name, "")
            if path.startswith(("/", "~/")) and path.isprintable():
                named.setdefault(os.path.normpath(path.replace("~", home, 1) if path[0] == "~" else path), name)
    return list(named.items())


def _by_server(mounts: "Iterable[Mount]") -> "List[Mount]":
    """Return the mounts, one of each server first: of ten thousand homes of one server, a few tell enough."""
    seen = set()
    first: "List[Mount]" = []
    others: "List[Mount]" = []
    for one in mounts:
        server = (one["type"], one["source"].partition(":/")[0])
        (others if server in seen else first).append(one)
        seen.add(server)
    return first + others


def _forced(table: "Iterable[Mount]") -> "List[Mount]":
    """Return the file systems of disks that are read-only although they were mounted for writing, one mount of each.

    One of a write-protected device (dm-verity) was not: a mount of a container alone says "rw" there.
    """
    found: "Dict[str, Mount]" = {}
    for one in table:
        inner = one["super_options"].split(",")
        read_only = "ro" in inner or "emergency_ro" in inner
        if one["type"] in _OF_DISKS and read_only and "rw" in one["options"].split(","):
            if number_in(WRITE_PROTECTED.format(one["device"])) != 1:
                found.setdefault(one["device"], one)
    return list(found.values())[:_MOST_FORCED]


def _looked_at(item: "Item") -> "Dict[str, object]":
    return _mount_state(item["point"]) if isinstance(item, dict) else _folder_state(item[0])


def _mount_state(point: str) -> "Dict[str, object]":
    try:
        os.statvfs(point)
    except (OSError, ValueError) as error:
        return _failed(error)
    return {"error": ""}


def _failed(error: Exception) -> "Dict[str, object]":
    number, words = getattr(error, "errno", None), getattr(error, "strerror", None)
    return {"error": words or str(error), "code": errno.errorcode.get(number or 0, "")}


def _folder_state(path: str) -> "Dict[str, object]":
    """Describe a folder or file; of one that does not exist, the nearest folder above it."""
    there = path
    while True:
        try:
            status, room = os.stat(there), os.statvfs(there)
            break
        except (OSError, ValueError) as error:
            if getattr(error, "errno", 0) not in (errno.ENOENT, errno.ENOTDIR) or there == "/":
                return _failed(error)
            there = os.path.dirname(there)
    search = os.X_OK if stat.S_ISDIR(status.st_mode) else 0
    return {
        "error": "",
        "real": os.path.realpath(there),
        "exists": there == path,
        "readable": os.access(there, os.R_OK | search),
        "writable": os.access(there, os.W_OK | search),
        "size": room.f_frsize * room.f_blocks,
        "free": room.f_frsize * room.f_bavail,
        "files_free": room.f_favail if room.f_files else None,
        "inode": status.st_ino,
        "changed": int(status.st_mtime),
    }
