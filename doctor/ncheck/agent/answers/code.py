"""The job's code in one folder: its git commit, the files changed since, and a digest of its source files.

The commit is read from .git itself, so no program and no hook runs for it. `git status` only names what was changed: it
takes no lock, and is not started in another user's repository, whose settings could run programs. What is compared
between nodes is the content of source files; times and owners do not matter.
"""

import hashlib
import os
import re
import time

from ncheck.agent.commands import run
from ncheck.agent.files import leaf, open_regular

SOURCES = (
    ".py", ".pyi", ".pyx", ".sh", ".bash", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu", ".cuh", ".yaml", ".yml",
    ".toml", ".cfg", ".ini",
)  # fmt: skip
# What programs write, and what is no part of the code. Hidden folders are passed over, too.
PASSED_OVER = re.compile(
    r"\..*|__pycache__|node_modules|venv|env|site-packages|build|dist|.*\.egg-info|data|datasets?|logs?|outputs?|multirun"
    r"|results?|runs|wandb|mlruns|lightning_logs|tensorboard|tb_logs|ckpts?|checkpoints?([-_].*)?"
)
MOST_FILES = 5000
LARGEST = 2 * 1024 * 1024  # bytes of one file: more is no source file
LISTED = 200  # files whose own digests are sent, of
_SHORT = 12  # digits
_FOLDERS = 20000
_UPWARD = 64  # folders above this one in which .git may lie
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_STATUS = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "filter.lfs.clean=", "-c",
    "filter.lfs.process=", "-c", "filter.lfs.required=false", "status", "--porcelain", "-z", "--ignore-submodules",
)  # fmt: skip

READS = (
    "the folder of --workdir: .git/HEAD and the ref that it names",
    "in a repository of this user's own: git status --porcelain, without locks and hooks",
    "its source files (*{}), at most {}".format(" *".join(SOURCES), MOST_FILES),
)


def answer(sources, arguments, timeout):
    """Return {"folder", "exists", "git", "tree"}: see the package. OSError where the folder cannot be read."""
    ends = time.monotonic() + timeout
    folder = os.path.realpath(os.path.expanduser(arguments["folder"]))
    if not os.path.isdir(folder):
        return {"folder": folder, "exists": False, "git": None, "tree": None}
    os.listdir(folder)  # raises where it may not be read
    git = _git(folder, sources.job.login_environment, timeout / 3)
    return {"folder": folder, "exists": True, "git": git, "tree": _tree(folder, ends - timeout / 3)}


def _git(folder, environment, timeout):
    """Return {"top", "commit", "branch", "changed": {path: digest}, "error"}, None where there is no repository."""
    top = folder
    for _ in range(_UPWARD):
        if os.path.lexists(os.path.join(top, ".git")):
            commit, branch = _head(os.path.join(top, ".git"))
            changed, error = _changed(top, environment, timeout)
            return {"top": top, "commit": commit, "branch": branch, "changed": changed, "error": error}
        if top == os.path.dirname(top):
            break
        top = os.path.dirname(top)
    return None


def _head(place):
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


def _line(path):
    text = leaf(path) if os.path.isfile(path) else None
    return text.strip() if isinstance(text, str) else ""


def _packed(common, ref):
    try:
        with os.fdopen(open_regular(os.path.join(common, "packed-refs")), encoding="utf-8", errors="replace") as file:
            # 97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d refs/heads/main
            rows = (line.split() for line in file)
            return next((row[0] for row in rows if len(row) == 2 and row[1] == ref), "")
    except OSError:
        return ""


def _changed(top, environment, timeout):
    """Return the paths that git calls changed, of those without a commit only source files; and why there are none."""
    if os.stat(top).st_uid != os.geteuid():
        return {}, "the repository belongs to another user, so git was not started in it"
    plain = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    reply = run(["git", "-C", top, *_STATUS], timeout, plain)
    if reply["status"] != "ok" or reply.get("exit_status") or reply.get("truncated"):
        words = reply.get("stderr", "").strip().splitlines()
        return {}, "git status: " + (words[0] if words else reply.get("reason") or "it failed")
    changed, rows = [], iter(reply["stdout"].split("\0"))
    for row in rows:
        #  M train.py     |     ?? new.py     |     R  new.py<NUL>old.py
        kind, path = row[:2], row[3:]
        if "R" in kind or "C" in kind:
            next(rows, None)
        if path and (kind != "??" or path.endswith(SOURCES)):
            changed.append(path)
    return {_clean(path): _digest(os.path.join(top, path))[:_SHORT] for path in sorted(changed)[:LISTED]}, ""


def _tree(folder, ends):
    """Return {"digest", "cut": why it does not cover all|"", "listed": {path: digest}}."""
    found, cut = {}, ""
    for path in _files(folder, ends):
        if path is None or len(found) >= MOST_FILES or time.monotonic() > ends:
            cut = "the folder has more than {} source files, or is too slow to read".format(MOST_FILES)
            break
        found[os.path.relpath(path, folder)] = _digest(path)
    names = sorted(found)
    digest = hashlib.sha256("".join("{}\0{}\n".format(n, found[n]) for n in names).encode("utf-8", "surrogateescape"))
    listed = {_clean(name): found[name][:_SHORT] for name in names} if len(names) <= LISTED else {}
    return {"digest": digest.hexdigest(), "cut": cut, "listed": listed}


def _files(folder, ends):
    """Yield all source files; None where it takes too long to find more."""
    left = _FOLDERS
    for here, folders, names in os.walk(folder):
        left -= 1
        if not left or time.monotonic() > ends:
            yield None
        folders[:] = sorted(name for name in folders if _holds_code(here, name))
        for name in sorted(names):
            path = os.path.join(here, name)
            if name.endswith(SOURCES) and not name.startswith(".") and os.path.isfile(path):
                yield path


def _holds_code(here, name):
    """Tell whether a folder may hold code. A package of Python does, whatever it is called."""
    return not PASSED_OVER.fullmatch(name) or os.path.exists(os.path.join(here, name, "__init__.py"))


def _digest(path):
    """Return a file's digest; "" for one that is gone or may not be read. A link counts as what it leads to."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return hashlib.sha256(file.read(LARGEST)).hexdigest()
    except OSError:
        return ""


def _clean(name):
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
