"""The folders that every job writes to: for temporary files, home, shared memory; and the root of the file systems."""

from __future__ import annotations

from typing import Annotated

from ncheck.decode import OPTIONAL, AtMost, Count, Maybe, Path, PathOrEmpty, not_empty
from ncheck.facts.definition import Fact
from ncheck.facts.environment import variable_or_empty
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Unread


@dataclass(frozen=True)
class Folder:
    """One folder, as the job's user sees it. `named_by`: the variable that names it, "" for a fixed path.

    `free`: bytes; `size`: bytes of its file system, None where they are not known; `kind`: "ext4", "nfs4", None
    where it is not known. `files_free`: how many more files fit, None where the file system does not count them.

    For a folder that does not exist, writable and what follows are those of the nearest folder above it: it can be
    made there. `target`: where a symbolic link leads that leads nowhere, else "". `no_exec`: no program or library can
    be loaded from its file system.
    """

    path: Path
    named_by: Annotated[str, variable_or_empty] = ""
    exists: bool = True
    writable: bool = True
    read_only: bool = False
    free: Count = 0
    files_free: Count | None = None
    size: Maybe[int] = None
    kind: Maybe[str] = None
    target: Annotated[PathOrEmpty, OPTIONAL] = ""
    no_exec: Annotated[bool, OPTIONAL] = False

    @property
    def missing(self) -> str:
        """Return what is missing: "/tmp does not exist", "/tmp is a link to /scratch/tmp, which does not exist"."""
        leads = f" is a link to {self.target}, which" if self.target else ""
        return f"{self.label}{leads} does not exist"

    @property
    def label(self) -> str:
        """Return "/scratch/tmp (TMPDIR)"."""
        return f"{self.path} ({self.named_by})" if self.named_by else self.path


_MOST = 16  # folders for temporary files: the variables that may name one are five


@dataclass(frozen=True)
class FolderFacts:
    """`temporary`: /tmp, and the folders that TMPDIR and Open MPI's variables name."""

    temporary: Annotated[tuple[Folder | Unread, ...], AtMost(_MOST), not_empty]
    home: Folder | Unread
    shm: Folder | Unread
    root: Folder | Unread


FOLDERS = Answer("folders", shape=FolderFacts)
FACTS = (Fact(FolderFacts, (FOLDERS,)),)
