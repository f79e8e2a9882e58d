"""Reading files and the small trees of sysfs: bounded, and each failure in words."""

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Optional, Union

    from ncheck.agent.commands import Reply

    Leaf = Union[str, Dict[str, str], None]  # of a file, why it cannot be read, a folder

LARGEST_FILE = 1024 * 1024
LARGEST_LEAF = 64 * 1024  # one file of a tree
LARGEST_TREE = 4 * 1024 * 1024  # and all of a tree
MOST_PATHS = 20000


def read_file(path: str) -> "Reply":
    """Return the reply for one file; its value is the text."""
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        return failed(error)
    return {"status": "ok", "value": _decoded(data[:LARGEST_FILE]), "truncated": len(data) > LARGEST_FILE}


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def failed(error: OSError) -> "Reply":
    """Return the reply for a reading that the system refused."""
    status = {errno.ENOENT: "missing", errno.ENOTDIR: "missing", errno.EACCES: "denied", errno.EPERM: "denied"}
    return {"status": status.get(error.errno or 0, "failed"), "reason": error.strerror or str(error)}


def open_regular(path: str, *, dir_fd: "Optional[int]" = None, follow: bool = True) -> int:
    """Return a descriptor to read a regular file with; OSError for all else, of which a pipe or a device is not opened.

    `follow`: whether it may be a symbolic link to one.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        return os.open("/proc/self/fd/{}".format(place), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(place)


def need_sysfs(folder: str = "/sys/class") -> None:
    """Raise OSError where /sys is not there, as in some containers: what it does not show is not absent."""
    if not os.path.isdir(folder):
        raise OSError("/sys is not mounted: hardware cannot be seen")


def read_tree(patterns: "Iterable[str]") -> "Reply":
    """Return the reply for a tree: each path that matches, with its text, its target, None, or why not.

    No match at all is an empty mapping: whether that means absent is for the parser to say. OSError without /sys.
    """
    if any(pattern.startswith("/sys/") for pattern in patterns):
        need_sysfs()
    paths = sorted({path for pattern in patterns for path in matching(pattern)})
    values, size, cut = {}, 0, len(paths) > MOST_PATHS
    for path in paths[:MOST_PATHS]:
        values[path] = leaf(path)
        size += len(path) + len(str(values[path]))
        if size > LARGEST_TREE:
            cut = True
            break
    return {"status": "ok", "value": values, "truncated": cut}


def matching(pattern: str, folder: str = "") -> "List[str]":
    """Return the paths beneath a folder that a pattern matches, sorted, as sorted(glob.glob(...)) does.

    That module makes a regular expression of each name with a `*`, which takes longer than to look.
    """
    marks = [place for place in (pattern.find("*"), pattern.find("[")) if place >= 0]
    if not marks:
        return [folder + pattern] if os.path.lexists(folder + pattern) else []
    begin = pattern.rfind("/", 0, min(marks)) + 1
    above, (part, slash, rest) = folder + pattern[:begin], pattern[begin:].partition("/")
    first, last = part.partition("*")[0].partition("[")[0], part.rpartition("*")[2].rpartition("]")[2]
    try:
        near = [name for name in os.listdir(above or ".") if name.startswith(first) and name.endswith(last)]
    except OSError:
        return []
    found = [above + name for name in near if name[0] != "." and fits(name, part)]
    return sorted([path for one in found for path in matching(slash + rest, one)] if slash else found)


def fits(name: str, pattern: str) -> bool:
    """Tell whether a name is like a pattern, as fnmatch.fnmatchcase does."""
    if "[" in pattern:
        import fnmatch

        return fnmatch.fnmatchcase(name, pattern)
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    if not name.startswith(first):
        return False
    at, last = len(first), others.pop()
    for word in others:
        at = name.find(word, at) + len(word)
        if at < len(word):
            return False
    return len(name) >= at + len(last) and name.endswith(last)


def leaf(path: str) -> "Leaf":
    """Return a link's real path, None for a folder, a file's text, or {"error": why} (EINVAL is common in sysfs)."""
    if os.path.islink(path):
        return os.path.realpath(path)
    try:
        with open(path, "rb") as file:
            return _decoded(file.read(LARGEST_LEAF))
    except OSError as error:
        return None if error.errno == errno.EISDIR else {"error": error.strerror or str(error)}


def line_of(path: str) -> "Optional[str]":
    """Return a small file's text without the newline at its end, None where it cannot be read."""
    text = leaf(path) if not os.path.islink(path) else None
    return text.strip() if isinstance(text, str) else None


def number_in(path: str, text_base: int = 10) -> "Optional[int]":
    """Return a small file's number, None where there is none to be read."""
    try:
        return int(line_of(path) or "", text_base)
    except ValueError:
        return None
