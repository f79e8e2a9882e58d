"""Whose a file is: what another user may have put there is not run as root, and not read with more than his rights."""

import json
import os
import select
import stat
import sys
import time
from collections import namedtuple

from ncheck.agent.isolated_calls import OPEN_FILES, Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Mapping, NamedTuple, Tuple

    Wanted = Mapping[str, Iterable[Tuple[int, int]]]  # path: lines, each with its key

_LARGEST = 4 * 1024 * 1024  # bytes of a source file

# Whose a process is. `root`: its root folder as seen from here, "" for our own.
if TYPE_CHECKING:

    class Owner(NamedTuple):
        root: str
        user: int
        group: int
else:
    Owner = namedtuple("Owner", "root user group")


def is_ours_alone(path: str) -> bool:
    """Whether only root and this user can change a file, or what its path means. Links in that must be resolved."""
    status = os.lstat(path)
    free = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX  # such as /tmp: each changes his own
    others = status.st_mode & (0o002 if status.st_gid in (0, os.getuid()) else 0o022)
    if status.st_uid not in (0, os.getuid()) or stat.S_ISLNK(status.st_mode) or (others and not free):
        return False
    return path == "/" or is_ours_alone(os.path.dirname(path))


class Reader:
    """A child that reads lines of source code, as root with the rights and the root folder of the files' owner.

    `files` is {path: [(line, key)]}: the paths are the owner's own word.
    """

    def __init__(self, owner: Owner, files: "Wanted") -> None:
        self.child = Child(lambda writing: _write_lines(writing, owner, files))

    def lines(self, ends: float) -> "List[Tuple[int, str]]":
        """Return [(key, text of the line)], as far as they came in time, and end the child."""
        child = self.child
        while child.writes and select.select([child.number], [], [], max(0.0, ends - time.monotonic()))[0]:
            child.read()
        child.end()
        return [(key, text) for key, text in map(json.loads, child.lines())]


def _write_lines(writing: int, owner: Owner, files: "Wanted") -> None:
    os.chdir(OPEN_FILES)
    root = owner.root
    if root and os.geteuid() == 0:
        del sys.meta_path[:]  # nothing is imported from there
        os.chroot(root)
        root = ""
    if owner.user and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(owner.group)
        os.setuid(owner.user)
    for path, wanted in files.items():
        text = source(root + path, owner.user, ".") if path.startswith("/") else []
        for line, key in wanted:
            if 0 < line <= len(text):
                os.write(writing, (json.dumps([key, text[line - 1].strip()[:1000]]) + "\n").encode("ascii"))


def source(path: str, user: int, descriptors: str = OPEN_FILES) -> "List[str]":
    """Return the lines of a Python file; none of what the user may not read. No device or pipe is ever opened.

    `descriptors` is where this process's open files are.
    """
    try:
        number = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC) if path.endswith(".py") else None
    except (OSError, ValueError):
        number = None
    if number is None:
        return []
    try:
        status = os.fstat(number)
        readable = status.st_uid == user or status.st_mode & stat.S_IROTH
        if not stat.S_ISREG(status.st_mode) or not readable or status.st_size > _LARGEST:
            return []
        with open(os.path.join(descriptors, str(number)), "rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    finally:
        os.close(number)
