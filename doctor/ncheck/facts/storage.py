"""The file systems of the job's folders, and the network file systems of a node: do they answer, and what are they."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import OPTIONAL, AtMost, Count, Null, Path, Shown, absolute_path, not_empty
from ncheck.expression import expression
from ncheck.facts.definition import Fact
from ncheck.facts.environment import is_variable
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.text import LONGEST_MESSAGE, printable

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings

# What names a folder, besides variables.
DATA, WORKDIR, CURRENT_FOLDER, HOME = "--data", "--workdir", "current folder", "home"


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system. `source` is "server:/export" or a device; `options` are those that matter to a job.

    `network`: another machine serves it, or another process.
    """

    point: str
    kind: str
    source: str
    options: tuple[str, ...] = ()
    network: bool = False

    @property
    def label(self) -> str:
        """Return "/data (nfs4 from fs01:/export/data)"."""
        return f"{self.point} ({self.kind} from {self.source})"


@dataclass(frozen=True)
class JobFolder:
    """A folder or file of the job as its user sees it. `named_by`: "--data", "--workdir", "current folder", "home"
    or a variable.

    `hangs`: its file system did not answer in time. `error`: the system's words for a look that failed; `code`: the
    error's name, such as ESTALE. `size` and `free`: bytes; `files_free`: how many more files fit, None where the
    file system has no such limit. `inode`: its number, the same on all nodes that see the same folder; `changed`:
    seconds since 1970, the same too.

    Of one that does not exist, all else is that of the nearest folder above.
    """

    path: str
    named_by: str
    on: FileSystem | None = None
    hangs: bool = False
    error: str = ""
    code: str = ""
    exists: bool = True
    readable: bool = True
    writable: bool = True
    size: int = 0
    free: int = 0
    files_free: int | None = None
    inode: int = 0
    changed: int = 0

    @property
    def label(self) -> str:
        """Return "/data (--data)"."""
        return f"{self.path} ({self.named_by})"

    @property
    def seen(self) -> bool:
        """Whether it was looked at without trouble."""
        return not self.hangs and not self.error


@dataclass(frozen=True)
class MountState:
    """A network file system that is mounted. `hangs`: it did not answer in time; `error`: why a look failed;
    `code`: the error's name, such as ESTALE.
    """

    on: FileSystem
    hangs: bool = False
    error: str = ""
    code: str = ""


@dataclass(frozen=True)
class StorageFacts:
    """`folders`: those of the job. `mounts`: network file systems, of each server one at least, 32 at most.

    `forced`: file systems of disks that are mounted for writing and read-only all the same. `root`: root looked, whom
    an NFS server may treat as nobody.
    """

    folders: Annotated[tuple[Annotated[JobFolder, _folder], ...], AtMost(_MOST), not_empty]
    mounts: Annotated[tuple[Annotated[MountState, _mount_state], ...], AtMost(_MOST)] = ()
    forced: Annotated[tuple[Annotated[FileSystem, file_system], ...], AtMost(_MOST)] = ()
    root: bool = False


@dataclass(frozen=True)
class MountAnswer:
    """One mount of the kernel's table."""

    point: Annotated[str, _shown_path]
    type: str
    source: str
    root: str
    options: str
    super_options: str
    network: bool


@dataclass(frozen=True)
class Failed:
    """The system's words for a look that failed; "" for none."""

    error: Shown
    code: Annotated[str, OPTIONAL, Null(""), _code] = ""


@dataclass(frozen=True)
class FolderState:
    """A folder that was looked at."""

    exists: bool
    readable: bool
    writable: bool
    size: Count
    free: Count
    files_free: Count | None
    inode: Count
    changed: int


@dataclass(frozen=True)
class FolderAnswer:
    """One folder of the job; without a state it hangs."""

    path: Path
    named_by: Annotated[str, _name]
    on: Annotated[FileSystem, file_system] | None
    state: FolderState | Annotated[Failed, _failed] | None


@dataclass(frozen=True)
class MountStateAnswer(MountAnswer):
    """One network file system; without a state it hangs."""

    state: Failed | None


STORAGE = Answer("storage", shape=StorageFacts)

_MOST = 64  # folders, and mounts: an agent sends half as many of each


def _name(text: str) -> str:
    if text not in (DATA, WORKDIR, CURRENT_FOLDER, HOME) and not is_variable(text):
        raise ValueError(f"{quoted(text)} names no folder")
    return text


def _code(text: str) -> str:
    return printable(text, 20)


def _failed(state: Failed) -> Failed:
    if not state.error:
        raise ValueError("neither a folder nor an error")
    return state


def _folder(answer: FolderAnswer) -> JobFolder:
    state, folder = answer.state, JobFolder(answer.path, answer.named_by, answer.on)
    if state is None:
        return replace(folder, hangs=True)
    return replace(folder, **vars(state))


def _mount_state(answer: MountStateAnswer) -> MountState:
    state = answer.state
    return (
        MountState(file_system(answer), hangs=True) if state is None else MountState(file_system(answer), **vars(state))
    )


# What a file system says whose server, or whose own program, is gone; refusals of this user are not among them.
_DEAD = frozenset({
    "ESTALE", "EIO", "ENOTCONN", "EHOSTDOWN", "EHOSTUNREACH", "ETIMEDOUT", "ESHUTDOWN", "EREMOTEIO", "ENXIO", "ENODEV",
})  # fmt: skip


def dead(state: JobFolder | MountState) -> str:
    """Return why a file system cannot be used by anybody, such as "does not answer"; "" if nothing says so."""
    if state.hangs:
        return "does not answer"
    return f"fails: {state.error}" if state.code in _DEAD else ""


Folders = dict[tuple[str, str], dict[str, JobFolder]]  # by path and what names it, then by node


def shared_folders(facts: Mapping[str, StorageFacts]) -> Folders:
    """Return the folders that must be the same for all ranks: --data, and --workdir or else the current folder.

    The current folder is among them only if more than half of the nodes have it: this machine may be no part of the
    cluster.
    """
    found: Folders = {}
    for node, own in facts.items():
        for folder in own.folders:
            if folder.named_by in (DATA, WORKDIR, CURRENT_FOLDER):
                found.setdefault((folder.path, folder.named_by), {})[node] = folder
    return {
        (path, named_by): nodes
        for (path, named_by), nodes in found.items()
        if named_by != CURRENT_FOLDER or 2 * sum(one.seen and one.exists for one in nodes.values()) > len(facts)
    }


# What changes a job, by option: whether it waits or fails, how fast it is, and what it sees of other nodes' changes.
# rsize and wsize are agreed with the server; addresses of server and client, and timeouts, say nothing by themselves.
_OPTION = expression(
    r"ro|rw|sync|soft|softerr|softreval|hard|noac|nolock|flock|localflock|noflock|nconnect=\d+|vers=[\d.]+"
    r"|local_lock=\w+|lookupcache=\w+|proto=\w+|sec=[\w:]+|cache=\w+"
)


def file_system(answer: MountAnswer) -> FileSystem:
    """Return a mount of the table. One that either the mount or the file system makes read-only is "ro"."""
    words = [*answer.options.split(","), *answer.super_options.split(",")]
    kept = {word for word in words if len(word) <= _LONGEST_OPTION and _OPTION.fullmatch(word)}
    if "ro" in kept:
        kept.discard("rw")
    source = answer.source + answer.root.rstrip("/") if answer.network else answer.source
    return FileSystem(
        answer.point,
        printable(answer.type, 40),
        printable(source, LONGEST_MESSAGE),
        tuple(sorted(kept)),
        answer.network,
    )


def _shown_path(point: str) -> str:
    return absolute_path(printable(point, LONGEST_MESSAGE))


_LONGEST_OPTION = 80


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    named = [(DATA, path) for path in settings.data]
    if settings.workdir:
        named.append((WORKDIR, settings.workdir))
    elif settings.run.started_in:
        named.append((CURRENT_FOLDER, settings.run.started_in))
    folders: list[JsonValue] = [[named_by, path] for named_by, path in named]
    return dict.fromkeys(cluster.names, (replace(STORAGE, arguments={"folders": folders}),))


FACTS = (Fact(StorageFacts, (STORAGE,), questions=_questions),)
