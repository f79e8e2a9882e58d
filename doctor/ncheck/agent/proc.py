"""What a process is, has and does, as /proc shows it to this user. Nothing else reads /proc/PID.

A process that has ended has nothing: no figures (None), and an empty text, link, list or mapping. Where another user's
process hides its variables or open files, these are None. A name may have spaces and parentheses, and any bytes.
Each reading is one moment: `is_still` shows whether the number is still that of the same process.
"""

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Union

    Pid = Union[int, str]  # a number, or "self"

ROOT = "/proc"
_PAGE = 1 << 16  # bytes of a small file
_LARGEST = 1 << 22  # bytes of the variables, or of the words of a command
_LARGEST_MAP = 1 << 24
_MOST_ABOVE = 32
_KERNEL_THREAD = 0x200000  # PF_KTHREAD


class Stat:
    """The figures of a process, or of one of its threads.

    `started`: in clock ticks since boot; `user`, `system`: CPU time in clock ticks; `minor`, `major`: page faults;
    `rss`: bytes.
    """

    def __init__(self, text: str) -> None:
        # 4711 (tmux: server) S 1 4711 4711 0 -1 4194304 ...
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        self.name, self.state, self.parent = name, fields[0], int(fields[1])
        self.minor, self.major, self.user, self.system = (int(fields[at]) for at in (7, 9, 11, 12))
        self.started, self.rss = int(fields[19]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        self.exit_code = int(fields[49]) if len(fields) > 49 else 0  # since Linux 3.5
        self.of_kernel = bool(int(fields[6]) & _KERNEL_THREAD)

    @property
    def ended(self) -> bool:
        """Whether it has ended, and its parent has not noticed yet."""
        return self.state in "ZX"


def path(pid: "Pid", *names: str, root: str = ROOT) -> str:
    """Return where a process's own files are: /proc/4711, or one beneath it."""
    return "/".join((root, str(pid), *names))


def pids(root: str = ROOT) -> "List[int]":
    """Return the processes that this user is shown. OSError without /proc."""
    return [int(name) for name in os.listdir(root) if name.isdigit()]


def stat(pid: "Pid", root: str = ROOT, thread: "Optional[int]" = None) -> "Optional[Stat]":
    """Return the figures of a process, or of one of its threads; None if it is gone."""
    try:
        return Stat(text(pid, "stat" if thread is None else "task/{}/stat".format(thread), root=root))
    except (IndexError, ValueError):
        return None


def table(root: str = ROOT) -> "Dict[int, Stat]":
    """Return the figures of all processes that this user is shown. OSError without /proc."""
    return {pid: now for pid, now in ((pid, stat(pid, root)) for pid in pids(root)) if now}


def is_still(pid: int, started: int) -> bool:
    """Return whether this process is the one that began then, and goes on: numbers are used again."""
    now = stat(pid)
    return now is not None and now.started == started and not now.ended


def threads(pid: int, root: str = ROOT) -> "List[int]":
    """Return the numbers of the threads, sorted."""
    return sorted(map(int, _names(path(pid, "task", root=root)) or ()))


def above(pid: int) -> "Iterator[int]":
    """Yield the processes above one, the nearest first."""
    for _ in range(_MOST_ABOVE):
        now = stat(pid)
        if now is None or now.parent <= 0:
            return
        pid = now.parent
        yield pid


def beneath(roots: "Collection[int]", parents: "Mapping[int, int]") -> "List[int]":
    """Return the processes beneath these, the nearest first, by the parent of each process."""
    children: "Dict[int, List[int]]" = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, seen = list(roots), set(roots)
    for pid in found:  # which grows
        new = [child for child in children.get(pid, ()) if child not in seen]
        seen.update(new)
        found.extend(new)
    return found[len(roots) :]


def text(pid: "Pid", name: str, most: int = _PAGE, root: str = ROOT) -> str:
    """Return one of its files as text, or its beginning; "" also where it may not be read."""
    return (_data(path(pid, name, root=root), most) or b"").decode("utf-8", "backslashreplace")


def link(pid: "Pid", name: str, root: str = ROOT) -> str:
    """Return what a link leads to, such as cwd, exe, fd/3 or ns/net; "" also where it may not be read."""
    try:
        return os.readlink(path(pid, name, root=root))
    except OSError:
        return ""


def status(pid: "Pid", root: str = ROOT, thread: "Optional[int]" = None) -> "Dict[str, str]":
    """Return the lines of its status by their names: {"Uid": "1000 1000 1000 1000", "VmSwap": "0 kB", ...}."""
    name = "status" if thread is None else "task/{}/status".format(thread)
    pairs = (line.partition(":") for line in text(pid, name, root=root).splitlines())
    return {key: " ".join(value.split()) for key, _, value in pairs}


def environment(pid: "Pid", root: str = ROOT, errors: str = "backslashreplace") -> "Optional[Dict[str, str]]":
    """Return the variables with which it began; None where they may not be read.

    `errors`: how bytes that are not UTF-8 are decoded; "surrogateescape" for values that are used as paths.
    """
    data = _data(path(pid, "environ", root=root), _LARGEST)
    if data is None:
        return None
    pairs = (pair.decode("utf-8", errors).partition("=") for pair in data.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def command(pid: "Pid", root: str = ROOT) -> "List[str]":
    """Return its words: the program and its arguments. A kernel thread has none."""
    words = text(pid, "cmdline", _LARGEST, root).rstrip("\0").split("\0")
    return words if words != [""] else []


def descriptors(pid: "Pid", root: str = ROOT, most: "Optional[int]" = None) -> "Optional[Dict[int, str]]":
    """Return what it has open, by descriptor, such as "/dev/null" or "socket:[31337]"; None where it may not be read.

    What may be listed but not looked at is "". What is closed meanwhile is left out. `most`: of so many, the first.
    """
    folder = path(pid, "fd", root=root)
    names = _names(folder)
    if names is None:
        return None
    found = {}
    for number in sorted(map(int, names))[:most]:
        try:
            found[number] = os.readlink("{}/{}".format(folder, number))
        except PermissionError:
            found[number] = ""
        except OSError:
            pass
    return found


def position(pid: int, number: int) -> "Optional[int]":
    """Return the position of a descriptor that is open for writing, else None."""
    # pos:	4096 | flags:	0100001
    found = re.match(r"pos:\s+(\d+)\s+flags:\s+([0-7]+)", text(pid, "fdinfo/{}".format(number)))
    return int(found.group(1)) if found and int(found.group(2), 8) & os.O_ACCMODE != os.O_RDONLY else None


def sockets(pid: "Pid", root: str = ROOT) -> "Optional[Set[str]]":
    """Return the inodes of its sockets; None where they may not be read."""
    opened = descriptors(pid, root)
    if opened is None:
        return None
    return {target[len("socket:[") : -1] for target in opened.values() if target.startswith("socket:[")}


def holders(inode: str, root: str = ROOT) -> "Iterator[int]":
    """Yield the processes that have a socket open, as far as this user may see it."""
    for pid in pids(root):
        if inode in (sockets(pid, root) or ()):
            yield pid


def moved(pid: int) -> "Optional[List[int]]":
    """Return the bytes that it has read and written, and of these from and to disks; None where it is not known."""
    # rchar: 3248 | wchar: 512 | ...
    found = dict(line.split(": ") for line in text(pid, "io").splitlines() if ": " in line)
    try:
        return [int(found[name]) for name in ("rchar", "wchar", "read_bytes", "write_bytes")]
    except (KeyError, ValueError):
        return None


def mapped(pid: "Pid", part: str) -> "Optional[Dict[str, int]]":
    """Return the files that it has mapped, {path: inode}, of those with this part in their path; None if hidden."""
    data = _data(path(pid, "maps"), _LARGEST_MAP)
    if data is None:
        return None
    # 7f0c4e000000-7f0c4e001000 rw-s 00000000 00:1b 42      /dev/shm/nccl-Xy12Zq
    rows = (line.split(None, 5) for line in data.splitlines() if part.encode() in line)
    return {row[5].decode("utf-8", "backslashreplace"): int(row[4]) for row in rows if len(row) == 6}


def _names(folder: str) -> "Optional[Iterable[str]]":
    try:
        return os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        return ()
    except OSError:
        return None


def _data(name: str, most: int) -> "Optional[bytes]":
    """Return a file, or its beginning; b"" of a process that is gone, None where it may not be read."""
    try:
        with open(name, "rb") as file:
            return file.read(most)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    except OSError:
        return None
