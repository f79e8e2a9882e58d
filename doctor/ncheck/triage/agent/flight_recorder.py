"""The dumps of PyTorch's flight recorder that the ranks of a job have written, raw.

A dump is asked for only with "dump", and only where torch listens for it: through the pipe that it made for that rank.
"""

import base64
import errno
import os
import re
import stat
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from ncheck.agent import proc
from ncheck.agent.files import open_regular
from ncheck.agent.sources import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, Iterator, List, Mapping, Optional, Tuple

    Mark = Optional[Tuple[int, int, float]]  # of a dump: inode, size and when it was written

READS = (
    "/proc/PID/{stat,environ,status} of each rank, and the dump of the flight recorder where its variables say it is",
    "with --dump: one line is written to the pipe that torch made for this, TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
)

_MOST = 16 << 20  # bytes of one dump that are read
_BLOCK = 1 << 20  # of them at a time: many ranks are read at once
_MOST_PACKED = 6 << 20  # bytes of all dumps of this node, packed
_LONGEST = 4000  # characters of a path
_PREFIX = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "NCCL_DEBUG_INFO_TEMP_FILE")
_PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_LINE = b"1\n"  # torch takes any byte
_MARGIN, _POLL, _QUIET = 2.0, 0.1, 0.5  # seconds
_PATIENCE = 6.0  # seconds for the files of one rank, where torch is not asked
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_SILENT = "its file system does not answer"
_BEGINNING = re.compile(rb"\x80|\s*\{|\0*\Z")  # of a pickle or of JSON; or it was never written, or not to the disk


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return each rank's dump, packed by zlib, as base64, or why there is none.

    Asked as {"ranks": [{"rank", "pid", "started", ...}], "dump": bool}.
    """
    asked, dump = arguments["ranks"], bool(arguments.get("dump"))
    end = time.monotonic() + max(timeout - _MARGIN, 0.0)
    seconds = timeout if dump else min(timeout, _PATIENCE)
    ranks = [_Rank(one, dump=dump) for one in asked]
    with ThreadPoolExecutor(max(1, len(ranks))) as pool:
        answers = list(pool.map(lambda one: _answer_of(one, seconds, end), ranks))
    room = _MOST_PACKED
    for entry in (one["dump"] for one in answers if one["dump"]):
        size = len(entry["data"] or "")
        if size > room:
            entry.update(data=None, read=0, error="left out: the dumps of this node are too large")
        else:
            room -= size
    return {"ranks": answers}


def _answer_of(one: "_Rank", seconds: float, end: float) -> "Dict[str, Any]":
    """Let one rank's work be done, which may hang, and return what there is to say."""
    if within(seconds, one.work, end):
        return one.answer
    return dict(
        one.answer, tried=list(one.answer["tried"]), dump=None, error=_SILENT
    )  # it may still go on with its own


class _Rank:
    """One rank, and where its dump is."""

    def __init__(self, asked: "Mapping[str, Any]", *, dump: bool) -> None:
        self.dump = dump  # whether torch is asked for one
        self.pid: int = asked["pid"]
        self.number: "Optional[int]" = asked["rank"]
        self.started: int = asked["started"]
        self.answer: "Dict[str, Any]" = {
            "pid": self.pid, "error": "", "asked": "", "tried": [], "began": None, "dump": None,
        }  # fmt: skip
        self.paths: "List[str]" = []
        self.user: "Optional[int]" = None
        self.pipe, self.refused = "", ""

    def work(self, end: float) -> None:
        """Look where its dump is, ask for one with "dump", wait for it until then, and read it."""
        self.look()
        if self.answer["error"]:
            return
        if self.dump:
            before = _mark(self.newest())
            if self.ask():
                self.wait(before, end)
        self.read()

    def look(self) -> None:
        """Find out from the process itself where its dump would be."""
        variables = proc.environment(self.pid, errors="surrogateescape")
        user = proc.status(self.pid).get("Uid", "").split()
        now = proc.stat(self.pid)  # the last of them: what was read before is this process's own
        if now is None or now.started != self.started or not user:
            self.answer["error"] = "gone"
            return
        self.answer["began"] = _booted() + now.started / float(os.sysconf("SC_CLK_TCK"))
        self.user = int(user[1])
        if variables is None:
            self.answer["error"] = _REFUSED
        else:
            self._look(variables)

    def _look(self, variables: "Mapping[str, str]") -> None:
        if self.number is None:
            self.answer["error"] = "the number of the rank is not known"
            return
        named = [variables[name] for name in _PREFIX if variables.get(name)]
        for prefix in named[:1] or _defaults(variables):
            path = "{}{}".format(prefix, self.number)
            self.answer["tried"].append(path[:_LONGEST])
            self.paths.append(path)
        if variables.get(_PIPE):
            self.pipe = "{}{}.pipe".format(variables[_PIPE], self.number)

    def newest(self) -> "Optional[Tuple[str, os.stat_result]]":
        """Return the path and state of the newest dump; None if there is none."""
        best: "Optional[Tuple[str, os.stat_result]]" = None
        self.refused = ""
        for path in self.paths:
            try:
                with _folder(self.pid, path) as folder:
                    state = os.stat(os.path.basename(path), dir_fd=folder, follow_symlinks=False)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    self.refused = self.refused or _why(error)
                continue
            if best is None or state.st_mtime > best[1].st_mtime:
                best = (path, state)
        return best

    def ask(self) -> bool:
        """Write to the pipe that torch made for this rank; return whether it was asked."""
        if not self.pipe:
            self.answer["asked"] = "torch does not listen: {} is not set".format(_PIPE)
            return False
        try:
            with _folder(self.pid, self.pipe) as folder:
                self.answer["asked"] = self._asked(folder, os.path.basename(self.pipe))
        except OSError as error:
            self.answer["asked"] = _why(error)
        return bool(self.answer["asked"] == "asked")

    def _asked(self, folder: int, name: str) -> str:
        """Write to the pipe in this folder. Return "asked", or why not."""
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISFIFO(state.st_mode) or state.st_uid != self.user:
            return "torch does not listen: its pipe is not there"
        if not _holds(self.pid, name, state):
            return "torch does not listen: the rank does not have its pipe open"
        pipe = os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            if not _same(os.fstat(pipe), state):
                return "torch does not listen: its pipe was replaced"
            os.write(pipe, _LINE)
        finally:
            os.close(pipe)
        return "asked"

    def wait(self, before: "Mark", end: float) -> None:
        """Wait until a new dump is written."""
        last: "Mark" = None
        since = 0.0
        while time.monotonic() < end:
            time.sleep(_POLL)
            newest = self.newest()
            now = _mark(newest)
            if now == before:
                continue
            if now != last:
                last, since = now, time.monotonic()
            elif newest and time.monotonic() - since >= _QUIET and newest[1].st_size and self._is_whole(newest[0]):
                self.answer["asked"] = "written"
                return

    def read(self) -> None:
        """Read the newest dump."""
        newest = self.newest()
        if newest is None:
            self.answer["error"] = self.refused
            return
        path, state = newest
        entry: "Dict[str, Any]" = {
            "path": path[:_LONGEST], "size": state.st_size, "mtime": state.st_mtime, "owner": state.st_uid,
            "data": None, "read": 0, "error": "",
        }  # fmt: skip
        self.answer["dump"] = entry
        if not stat.S_ISREG(state.st_mode):
            entry["error"] = "no regular file"
        elif state.st_uid != self.user:
            entry["error"] = "it belongs to another user"
        else:
            try:
                packed, entry["read"] = self._packed(path, state)
            except OSError as error:
                entry["error"] = _why(error)
            else:
                entry["data"] = base64.b64encode(packed).decode()

    def _opened(self, path: str) -> "IO[bytes]":
        with _folder(self.pid, path) as folder:
            return open(open_regular(os.path.basename(path), dir_fd=folder, follow=False), "rb")

    def _is_whole(self, path: str) -> bool:
        """Return whether a dump has its end: a pickle's last opcode, or the brace of JSON."""
        try:
            with self._opened(path) as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) in (b".", b"}")
        except OSError:
            return False

    def _packed(self, path: str, state: os.stat_result) -> "Tuple[bytes, int]":
        """Return a dump, packed, and how many bytes of it; OSError for what nobody should be sent."""
        with self._opened(path) as file:
            if not _same(os.fstat(file.fileno()), state):
                raise OSError(errno.ESTALE, "it was replaced while it was read")
            block = file.read(min(_BLOCK, _MOST))
            if not _BEGINNING.match(block):
                raise OSError(errno.EINVAL, "it is no dump: it begins neither as a pickle nor as JSON")
            packed: "List[bytes]" = []
            packer, size = zlib.compressobj(1), 0
            while block:
                packed.append(packer.compress(block))
                size += len(block)
                block = file.read(min(_BLOCK, _MOST - size))
            return b"".join([*packed, packer.flush()]), size


@contextmanager
def _folder(pid: int, path: str) -> "Iterator[int]":
    """Give the folder of a path as a process sees it, which may be in a container, as a descriptor.

    In another mount namespace no symbolic link is followed: the kernel would follow it into our own files.
    """
    way = os.path.dirname(path).strip("/") or "."
    folder = os.open(proc.path(pid, "root" if os.path.isabs(path) else "cwd"), _FOLDER)
    try:
        if _sees_ours(pid):
            steps, more = [way], 0
        else:
            steps, more = [step for step in way.split("/") if step], os.O_NOFOLLOW
            if ".." in steps:
                raise OSError(errno.ELOOP, ".. is not followed in another mount namespace")
        for step in steps:
            above = folder
            try:
                folder = os.open(step, _FOLDER | more, dir_fd=above)
            except OSError:
                if more and stat.S_ISLNK(os.stat(step, dir_fd=above, follow_symlinks=False).st_mode):
                    why = "a symbolic link is not followed in another mount namespace: {}".format(step)
                    raise OSError(errno.ELOOP, why) from None
                raise
            os.close(above)
        yield folder
    finally:
        os.close(folder)


def _sees_ours(pid: int) -> bool:
    """Return whether a process sees the files that we see."""
    mounts = proc.link(pid, "ns/mnt")
    return mounts == proc.link("self", "ns/mnt") != "" and _same(os.stat(proc.path(pid, "root")), os.stat("/"))


def _mark(newest: "Optional[Tuple[str, os.stat_result]]") -> "Mark":
    return None if newest is None else (newest[1].st_ino, newest[1].st_size, newest[1].st_mtime)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _holds(pid: int, name: str, state: os.stat_result) -> bool:
    """Return whether a process has this file open. No other file of it is touched: its file system may hang."""
    for number, path in (proc.descriptors(pid) or {}).items():
        try:
            if os.path.basename(path) == name and _same(os.stat(proc.path(pid, "fd", str(number))), state):
                return True
        except OSError:
            continue
    return False


def _defaults(variables: "Mapping[str, str]") -> "List[str]":
    """Return where torch writes if no variable says it: today in the cache folder, older versions in /tmp."""
    home = variables.get("HOME") or "/tmp"  # noqa: S108
    folders = [variables.get("XDG_CACHE_HOME") or home + "/.cache", home + "/.cache"]
    new = [folder + "/torch/comm_lib_trace_rank_" for folder in sorted(set(folders), key=folders.index)]
    new.append("/tmp/nccl_trace_rank_")  # noqa: S108
    return new


def _booted() -> int:
    """Return when this node began, in seconds since 1970."""
    with open("/proc/stat", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"btime"))


def _why(error: OSError) -> str:
    return _REFUSED if error.errno in (errno.EACCES, errno.EPERM) else error.strerror or str(error)


_REFUSED = "permission denied"
