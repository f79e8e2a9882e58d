"""The folders that every job writes to: for temporary files, home, shared memory; and the root of the file systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.shapes import items, mapping, truth, whole, words
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read, Unread


@dataclass(frozen=True)
class Folder:
    """One folder, as the job's user sees it. `named_by`: the variable that names it, "" for a fixed path.

    `free` is in bytes, `files_free` how many more files fit, None where the file system does not count them. For one
    that does not exist, `writable` and what follows are those of the nearest folder above it: it can be made there.
    """

    path: str
    named_by: str = ""
    exists: bool = True
    writable: bool = True
    read_only: bool = False
    free: int = 0
    files_free: int | None = None

    @property
    def label(self) -> str:
        """Return "/scratch/tmp (TMPDIR)"."""
        return f"{self.path} ({self.named_by})" if self.named_by else self.path


@dataclass(frozen=True)
class FolderFacts:
    """`temporary`: /tmp, and the folders that TMPDIR and Open MPI's variables name."""

    temporary: tuple[Folder | Unread, ...]
    home: Folder | Unread
    shm: Folder | Unread
    root: Folder | Unread


FOLDERS = Answer("folders")


_MOST = 16  # folders for temporary files: the variables that may name one are five


_LONGEST_PATH = 4096


def folders(evidence: Evidence) -> Read[FolderFacts]:
    """Read the answer."""
    reply = evidence.reply(FOLDERS)
    if why := no_answer(FOLDERS, reply):
        return why
    answer = mapping(reply.value)
    temporary = tuple(_folder(mapping(one)) for one in items(answer["temporary"], _MOST))
    if not temporary:
        raise ValueError("no folder for temporary files")
    home, shm, root = (_folder(mapping(answer[name])) for name in ("home", "shm", "root"))
    return FolderFacts(temporary, home, shm, root)


def _folder(answer: Mapping[str, JsonValue]) -> Folder | Unread:
    path = _path(answer["path"])
    if "error" in answer:
        return Unread(f"{path}: {words(answer['error'])[:LONGEST]}")
    files_free = answer["files_free"]
    return Folder(
        path=path,
        named_by=_variable(answer["named_by"]),
        exists=truth(answer["exists"]),
        writable=truth(answer["writable"]),
        read_only=truth(answer["read_only"]),
        free=whole(answer["free"]),
        files_free=None if files_free is None else whole(files_free),
    )


def _path(value: JsonValue) -> str:
    """Return an absolute path. Raises ValueError for one that cannot be part of a command."""
    path = words(value)
    if not path.startswith("/") or not path.isprintable() or len(path) > _LONGEST_PATH:
        raise ValueError(f"{path[:80]!r} is not an absolute path")
    return path


def _variable(value: JsonValue) -> str:
    name = words(value)
    if name and not (name.isascii() and name.isidentifier()):
        raise ValueError(f"{name[:80]!r} is not a variable")
    return name


FACTS = (Fact(FolderFacts, (FOLDERS,), folders),)
