"""The folders that every job writes to: for temporary files, home, shared memory; and the root of the file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, cast, final

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.environment import is_variable
from ncheck.facts.shapes import absolute_path, whole
from ncheck.hostlist import quoted
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read, Unread


@dataclass(frozen=True)
class Folder:
    """One folder, as the job's user sees it. `named_by`: the variable that names it, "" for a fixed path.

    `size` and `kind` ("ext4", "nfs4") are those of its file system, None where they are not known. `free` is in bytes,
    `files_free` how many more files fit, None where the file system does not count them. For a folder that does not
    exist, `writable` and what follows are those of the nearest folder above it: it can be made there.
    """

    path: str
    named_by: str = ""
    exists: bool = True
    writable: bool = True
    read_only: bool = False
    free: int = 0
    files_free: int | None = None
    size: int | None = None
    kind: str | None = None

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


@final
class FolderAnswer(TypedDict):
    """One folder; bytes and numbers of files."""

    path: str
    named_by: str
    exists: bool
    writable: bool
    read_only: bool
    free: int
    files_free: int | None
    size: int | None
    kind: str | None


@final
class NotRead(TypedDict):
    """Why a folder could not be asked."""

    path: str
    error: str


class FoldersAnswer(TypedDict):
    """The folders of FolderFacts."""

    temporary: list[FolderAnswer | NotRead]
    home: FolderAnswer | NotRead
    shm: FolderAnswer | NotRead
    root: FolderAnswer | NotRead


FOLDERS = Answer("folders", shape=FoldersAnswer)


_MOST = 16  # folders for temporary files: the variables that may name one are five


def folders(evidence: Evidence) -> Read[FolderFacts]:
    """Read the answer."""
    reply = evidence.reply(FOLDERS)
    if why := no_answer(FOLDERS, reply):
        return why
    answer = cast("FoldersAnswer", reply.value)
    temporary = tuple(_folder(one) for one in answer["temporary"][:_MOST])
    if not temporary:
        raise ValueError("no folder for temporary files")
    return FolderFacts(temporary, _folder(answer["home"]), _folder(answer["shm"]), _folder(answer["root"]))


def _folder(answer: FolderAnswer | NotRead) -> Folder | Unread:
    path = absolute_path(answer["path"])
    if "error" in answer:
        return Unread(f"{path}: {answer['error'][:LONGEST]}")
    files_free = answer["files_free"]
    return Folder(
        path=path,
        named_by=_variable(answer["named_by"]),
        exists=answer["exists"],
        writable=answer["writable"],
        read_only=answer["read_only"],
        free=whole(answer["free"]),
        files_free=None if files_free is None else whole(files_free),
        size=answer.get("size"),
        kind=answer.get("kind"),
    )


def _variable(name: str) -> str:
    if name and not is_variable(name):
        raise ValueError(f"{quoted(name)} is not a variable")
    return name


FACTS = (Fact(FolderFacts, (FOLDERS,), folders),)
