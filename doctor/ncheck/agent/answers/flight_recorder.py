"""The dumps of PyTorch's flight recorder that the ranks of a job have written, raw.

A dump is asked for only with "dump", and only where torch listens for it: through the pipe that it made for that rank.
"""

import base64
import errno
import os
import stat
import time
import zlib

READS = (
    "/proc/PID/{stat,environ,status} of each rank, and the dump of the flight recorder where its variables say it is",
    "with --dump: one line is written to the pipe that torch made for this, TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
)

_MOST = 16 << 20  # bytes of one dump that are read
_MOST_PACKED = 6 << 20  # bytes of all dumps of this node, packed
_LONGEST = 4000  # characters of a path
_PREFIX = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "NCCL_DEBUG_INFO_TEMP_FILE")
_PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_LINE = b"1\n"  # torch takes any byte
_MARGIN, _POLL, _QUIET = 2.0, 0.1, 0.5  # seconds


def answer(sources, arguments, timeout):
    """Return each rank's dump, packed by zlib, as base64, or why there is none.

    Asked as {"ranks": [{"rank", "pid", "started", ...}], "dump": bool}.
    """
    end = time.monotonic() + max(timeout - _MARGIN, 0.0)
    found = [_Rank(one) for one in arguments["ranks"]]
    if arguments.get("dump"):
        _ask(found, end)
    room = _MOST_PACKED
    for one in found:
        room -= one.read(room)
    return {"ranks": [one.said for one in found]}


class _Rank:
    """One rank, and where its dump is."""

    def __init__(self, asked):
        self.pid, self.number = asked["pid"], asked["rank"]
        self.said = {"pid": self.pid, "error": "", "asked": "", "tried": [], "began": None, "dump": None}
        self.paths, self.pipe, self.user = [], "", None
        try:
            began = _began(self.pid)
            if began is None or began[0] != asked["started"]:
                self.said["error"] = "gone"
                return
            self.said["began"] = began[1]
            self.user = _user(self.pid)
            self._look(_environment(self.pid))
        except OSError as error:
            gone = error.errno in (errno.ENOENT, errno.ESRCH)
            self.said["error"] = "gone" if gone else _why(error)

    def _look(self, variables):
        if self.number is None:
            self.said["error"] = "the number of the rank is not known"
            return
        named = [variables[name] for name in _PREFIX if variables.get(name)]
        for prefix in named[:1] or _defaults(variables):
            path = "{}{}".format(prefix, self.number)
            self.said["tried"].append(path[:_LONGEST])
            self.paths.append(self._inside(path))
        if variables.get(_PIPE):
            self.pipe = self._inside("{}{}.pipe".format(variables[_PIPE], self.number))

    def _inside(self, path):
        """Return a path as the rank sees it, which may be in a container."""
        if os.path.isabs(path):
            return "/proc/{}/root{}".format(self.pid, path)
        return "/proc/{}/cwd/{}".format(self.pid, path)

    def newest(self):
        """Return the path and state of the newest dump; (None, None) if there is none."""
        best = (None, None)
        for path in self.paths:
            try:
                state = os.lstat(path)
            except OSError:
                continue
            if best[1] is None or state.st_mtime > best[1].st_mtime:
                best = (path, state)
        return best

    def ask(self):
        """Write to the pipe that torch made for this rank; return whether it was asked."""
        if self.said["error"]:
            return False
        if not self.pipe:
            self.said["asked"] = "torch does not listen: {} is not set".format(_PIPE)
            return False
        try:
            state = os.lstat(self.pipe)
            if not stat.S_ISFIFO(state.st_mode) or state.st_uid != self.user:
                self.said["asked"] = "torch does not listen: its pipe is not there"
                return False
            if not _holds(self.pid, state):
                self.said["asked"] = "torch does not listen: the rank does not have its pipe open"
                return False
            pipe = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if _same(os.fstat(pipe), state):
                    os.write(pipe, _LINE)
                    self.said["asked"] = "asked"
                    return True
            finally:
                os.close(pipe)
            self.said["asked"] = "torch does not listen: its pipe was replaced"
        except OSError as error:
            self.said["asked"] = _why(error)
        return False

    def read(self, room):
        """Read the newest dump, and return how much room it takes."""
        if self.said["error"]:
            return 0
        path, state = self.newest()
        if path is None:
            denied = [one for one in self.paths if _is_denied(one)]
            if denied:
                self.said["error"] = "permission denied"
            return 0
        entry = {
            "path": self.said["tried"][self.paths.index(path)], "size": state.st_size, "mtime": state.st_mtime,
            "owner": state.st_uid, "data": None, "read": 0, "error": "",
        }  # fmt: skip
        self.said["dump"] = entry
        if not stat.S_ISREG(state.st_mode):
            entry["error"] = "no regular file"
        elif state.st_uid != self.user and os.geteuid() != self.user:
            entry["error"] = "it belongs to another user"
        else:
            try:
                data = _content(path, state)
            except OSError as error:
                entry["error"] = _why(error)
                return 0
            packed = base64.b64encode(zlib.compress(data, 1))
            if len(packed) > room:
                entry["error"] = "left out: the dumps of this node are too large"
                return 0
            entry["data"], entry["read"] = packed.decode(), len(data)
            return len(packed)
        return 0


def _ask(ranks, end):
    """Ask for dumps, and wait until all are written."""
    waiting = []
    for one in ranks:
        before = _mark(one.newest()[1])
        if one.ask():
            waiting.append([one, before, None, 0.0])
    while waiting and time.monotonic() < end:
        time.sleep(_POLL)
        for entry in list(waiting):
            one, before, last, since = entry
            path, state = one.newest()
            now = _mark(state)
            if now == before:
                continue
            if now != last:
                entry[2:] = [now, time.monotonic()]
            elif time.monotonic() - since >= _QUIET and state.st_size and _is_whole(path):
                one.said["asked"] = "written"
                waiting.remove(entry)


def _mark(state):
    return state and (state.st_ino, state.st_size, state.st_mtime)


def _is_whole(path):
    """Return whether a dump has its end: a pickle's last opcode, or the brace of JSON."""
    try:
        with open(path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) in (b".", b"}")
    except OSError:
        return False


def _content(path, state):
    """Read a regular file that nobody has replaced since it was looked at."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(number, "rb") as file:
        if not _same(os.fstat(number), state):
            raise OSError(errno.ESTALE, "it was replaced while it was read")
        return file.read(_MOST)


def _same(one, other):
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _is_denied(path):
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    return False


def _holds(pid, state):
    """Return whether a process has this file open."""
    folder = "/proc/{}/fd".format(pid)
    for name in os.listdir(folder):
        try:
            if _same(os.stat(folder + "/" + name), state):
                return True
        except OSError:
            continue
    return False


def _defaults(variables):
    """Return where torch writes if no variable says it: today in the cache folder, older versions in /tmp."""
    home = variables.get("HOME") or "/tmp"  # noqa: S108
    folders = [variables.get("XDG_CACHE_HOME") or home + "/.cache", home + "/.cache"]
    new = [folder + "/torch/comm_lib_trace_rank_" for folder in sorted(set(folders), key=folders.index)]
    new.append("/tmp/nccl_trace_rank_")  # noqa: S108
    return new


def _began(pid):
    """Return when a process began: in ticks since boot, and in seconds since 1970; None if it is gone."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None
    with open("/proc/stat", "rb") as file:
        booted = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    return ticks, booted + ticks / float(os.sysconf("SC_CLK_TCK"))


def _environment(pid):
    with open("/proc/{}/environ".format(pid), "rb") as file:
        pairs = file.read().split(b"\0")
    return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if b"=" in pair)


def _user(pid):
    with open("/proc/{}/status".format(pid), "rb") as file:
        return next(int(line.split()[2]) for line in file if line.startswith(b"Uid:"))


def _why(error):
    return "permission denied" if error.errno in (errno.EACCES, errno.EPERM) else error.strerror or str(error)
