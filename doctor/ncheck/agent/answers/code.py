"""The job's code in one folder: its git commit, the files changed since, and a digest of its source files.

The commit is read from .git itself, so no program and no hook runs for it. `git status` only names what was changed: it
takes no lock, fetches nothing, and is not started in another user's repository, whose settings could run programs. What
is compared between nodes is the content of source files; times, owners and permissions do not matter.
"""

import hashlib
import os
import re
import time

from ncheck.agent.commands import run
from ncheck.agent.files import leaf, open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Arguments, Sources

SOURCES = (
    ".py", ".pyi", ".pyx", ".sh", ".bash", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu", ".cuh", ".yaml", ".yml",
    ".toml", ".cfg", ".ini",
)  # fmt: skip
# ds_config.json, ds_z3_config.json, deepspeed.json, zero3.json: other JSON is more often data, or written by a job
_DEEPSPEED = re.compile(r"(?:.*/)?(?:ds[_-]|deepspeed|zero)[^/]*\.json")
# What programs write, and what is no part of the code. Hidden folders are passed over, too.
PASSED_OVER = re.compile(
    r"\..*|__pycache__|node_modules|venv|env|site-packages|build|dist|.*\.egg-info|data|datasets?|logs?|outputs?|multirun"
    r"|results?|runs|wandb|mlruns|lightning_logs|tensorboard|tb_logs|ckpts?|checkpoints?([-_].*)?"
)
MOST_FILES = 5000
LARGEST = 2 * 1024 * 1024  # bytes of one file: more is no source file
LISTED = 200  # files whose own digests are sent, of
_SHORT = 12  # digits
MOST_ENTRIES = 200000  # of all folders: files and folders of whatever kind
_OF_AN_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")  # where one of them is, there is a venv or one of conda's
_UPWARD = 64  # folders above this one in which .git may lie
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_STATUS = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.fileMode=false",
    "-c", "filter.lfs.clean=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
    # A partial clone would fetch what it lacks.
    "-c", "protocol.allow=never", "-c", "status.renames=false", "-c", "diff.renames=false",
    "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty",
)  # fmt: skip
_LFS = ": filter: lfs"  # behind a path, in what git check-attr prints

READS = (
    "the folder of --workdir: .git/HEAD and the ref that it names",
    "in a repository of this user's own: git status --porcelain, without locks and hooks, and git check-attr filter",
    "its source files (*{}, and DeepSpeed's *.json), at most {}".format(" *".join(SOURCES), MOST_FILES),
)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what git and the files say of {"folder": path}; OSError where it cannot be read.

    The digest of a submodule is its commit.
    """
    ends = time.monotonic() + timeout
    folder = os.path.realpath(os.path.expanduser(arguments["folder"]))
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError):
        return {"folder": folder, "exists": False, "git": None, "tree": None}
    except OSError as error:
        raise OSError("{}: {}".format(folder, error.strerror)) from error
    git = _git(folder, sources.job.login_environment, timeout / 3)
    return {"folder": folder, "exists": True, "git": git, "tree": _tree(folder, ends - timeout / 3)}


def _git(folder: str, environment: "Environment", timeout: float) -> "Optional[Dict[str, object]]":
    """Return {"top", "commit", "branch", "changed": {path: digest}, "error"}, None where there is no repository."""
    top = folder
    for _ in range(_UPWARD):
        if os.path.lexists(os.path.join(top, ".git")):
            commit, branch = _head(os.path.join(top, ".git"))
            changed, error = _changed(top, environment, timeout)
            error = error or ("" if commit else "no commit can be read from .git")
            return {"top": top, "commit": commit, "branch": branch, "changed": changed, "error": error}
        if top == os.path.dirname(top):
            break
        top = os.path.dirname(top)
    return None


def _head(place: str) -> "Tuple[str, str]":
    """Return the commit, "" where it cannot be read, and the branch, "" for none."""
    own = place
    if os.path.isfile(place):
        # gitdir: /home/ann/code/.git/worktrees/try     (of a worktree or a submodule)
        own = os.path.join(os.path.dirname(place), _line(place).partition("gitdir:")[2].strip())
    common = os.path.join(own, _line(os.path.join(own, "commondir")) or ".")
    head = _line(os.path.join(own, "HEAD"))
    if not head.startswith("ref:"):
        return (head if _COMMIT.fullmatch(head) else ""), ""
    ref = head.partition("ref:")[2].strip()
    if ".." in ref or not ref.startswith("refs/"):
        return "", ""
    found = _line(os.path.join(own, ref)) or _line(os.path.join(common, ref)) or _packed(common, ref)
    return (found if _COMMIT.fullmatch(found) else ""), ref.replace("refs/heads/", "", 1)


def _line(path: str) -> str:
    text = leaf(os.path.realpath(path)) if os.path.isfile(path) else None
    return text.strip() if isinstance(text, str) else ""


def _packed(common: str, ref: str) -> str:
    try:
        with os.fdopen(open_regular(os.path.join(common, "packed-refs")), encoding="utf-8", errors="replace") as file:
            # 97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d refs/heads/main
            rows = (line.split() for line in file)
            return next((row[0] for row in rows if len(row) == 2 and row[1] == ref), "")
    except OSError:
        return ""


def _changed(top: str, environment: "Environment", timeout: float) -> "Tuple[Dict[str, str], str]":
    """Return the paths that git calls changed, of those without a commit only source files; and why there are none."""
    if any(os.stat(path).st_uid != os.geteuid() for path in (top, os.path.join(top, ".git"))):
        return {}, "the repository belongs to another user, so git was not started in it"
    plain = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    reply = run(["git", "-C", top, *_STATUS], timeout, plain)
    if reply["status"] != "ok" or reply.get("exit_status") or reply.get("truncated"):
        words = reply.get("stderr", "").strip().splitlines()
        return {}, "git status: " + (words[0] if words else reply.get("reason") or "it failed")
    #  M train.py     |     ?? new.py     |     ?? folder/
    rows = [(row[:2], row[3:]) for row in reply["stdout"].split("\0")]
    changed = sorted(path for kind, path in rows if path and (kind != "??" or _is_source(path)))[:LISTED]
    large = _kept_by_lfs(top, [path for path in changed if not _is_source(path)], plain, timeout / 4)
    return {_clean(path): _content(os.path.join(top, path))[:_SHORT] for path in changed if path not in large}, ""


def _kept_by_lfs(top: str, paths: "Sequence[str]", environment: "Environment", timeout: float) -> "Set[str]":
    """Return those of the paths that git-lfs keeps: without it, git takes every one that it looks into for changed."""
    reply = run(["git", "-C", top, "check-attr", "filter", "--", *paths], timeout, environment) if paths else {}
    return {line[: -len(_LFS)] for line in reply.get("stdout", "").splitlines() if line.endswith(_LFS)}


def _content(path: str) -> str:
    """Return what stands for a file's content; for a submodule its commit."""
    return _head(os.path.join(path, ".git"))[0] if os.path.isdir(path) else _digest(path)


def _tree(folder: str, ends: float) -> "Dict[str, object]":
    """Return {"digest", "cut": why it does not cover all|"", "listed": {path: digest}}."""
    found: "Dict[str, str]" = {}
    cut = ""
    for path in _files(folder, ends):
        if path is None or len(found) >= MOST_FILES or time.monotonic() > ends:
            cut = "the folder has more than {} source files, or is too slow to read".format(MOST_FILES)
            break
        found[os.path.relpath(path, folder)] = _digest(path)
    names = sorted(found)
    digest = hashlib.sha256("".join("{}\0{}\n".format(n, found[n]) for n in names).encode("utf-8", "surrogateescape"))
    listed = {_clean(name): found[name][:_SHORT] for name in names} if len(names) <= LISTED else {}
    return {"digest": digest.hexdigest(), "cut": cut, "listed": listed}


def _files(folder: str, ends: float) -> "Iterator[Optional[str]]":
    """Yield all source files; None where it takes too long to find more."""
    folders, left = [folder], MOST_ENTRIES
    while folders:
        found: "List[str]" = []
        inner: "List[str]" = []
        for entry in _entries(folders.pop()):
            left -= 1
            if left < 0 or time.monotonic() > ends:
                yield None
            elif entry.name in _OF_AN_ENVIRONMENT and os.path.dirname(entry.path) != folder:
                found, inner = [], []
                break
            elif entry.is_dir(follow_symlinks=False):
                inner += [entry.path] if _holds_code(entry) else []
            elif _is_source(entry.name) and not entry.name.startswith(".") and os.path.isfile(entry.path):
                found.append(entry.path)
        folders += inner
        yield from found


def _entries(folder: str) -> "Iterator[os.DirEntry[str]]":
    """Yield what is in a folder, nothing where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _is_source(path: str) -> bool:
    return path.endswith(SOURCES) or _DEEPSPEED.fullmatch(path) is not None


def _holds_code(folder: "os.DirEntry[str]") -> bool:
    """Tell whether a folder may hold code. A package of Python does, whatever it is called."""
    return not PASSED_OVER.fullmatch(folder.name) or os.path.exists(os.path.join(folder.path, "__init__.py"))


def _digest(path: str) -> str:
    """Return the digest of a file's beginning and size, "" if it is gone or may not be read. Links are followed."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            digest = hashlib.sha256(file.read(LARGEST))
            digest.update(str(os.fstat(file.fileno()).st_size).encode())
            return digest.hexdigest()
    except OSError:
        return ""


def _clean(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
