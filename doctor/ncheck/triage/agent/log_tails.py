"""Where the output of a job's ranks goes, and the ends of the files that it goes to.

The files are read by programs of their own, which are ended if their file system does not answer. What is no regular
file, such as a pipe or a terminal, is only named: to read it would take it from whom it is meant for.
"""

import re
import threading
import time

from ncheck.agent import commands, proc
from ncheck.agent.answers import WATCHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Tuple

READS = (
    "/proc/PID/{fd,fdinfo} of the job's ranks and of what started them",
    "tail -c: the last 256 KiB of regular files that they write their output and logs to",
)

_TAIL, _MOST_BYTES = 256 * 1024, 2 * 1024 * 1024  # of one file, and of all on this node
_MOST_FILES, _MOST_LOGS = 32, 4  # on this node; logs of one process besides its output
_MOST_OPEN = 1024  # files of one process that are looked at
_PATIENCE = 3.0  # seconds to read the end of one file

_LOG = re.compile(r"\.(?:log|out|err|txt)(?:\.\d+)?$|nccl", re.IGNORECASE)

# Prints the size, then the end. A pipe or a device is never opened.
_READ = 'test -f "$1" || exit 3; stat -L -c %s "$1" && exec tail -c "$2" "$1"'


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return where output goes, and the ends of files.

    Asked as all about a job, and "launchers": [pids above the ranks].
    """
    ranks = [rank["pid"] for rank in arguments["ranks"] if _started(rank["pid"]) == rank["started"]]
    pids = ranks + [pid for pid in arguments.get("launchers") or [] if pid not in ranks]
    began = {pid: _started(pid) for pid in pids}
    outputs: "Dict[str, List[Optional[str]]]" = {}
    files: "Dict[str, Dict[str, Any]]" = {}
    for pid in pids:
        outputs[str(pid)] = [proc.link(pid, "fd/{}".format(number)) or None for number in (1, 2)]
        for number, path in _written(pid, is_rank=pid in ranks):
            file = files.setdefault(path, {"path": path, "pids": [], "seen": []})
            file["seen"].append((pid, number, proc.position(pid, number)))
            if pid not in file["pids"]:
                file["pids"].append(pid)
    chosen = list(files.values())[:_MOST_FILES]
    time.sleep(WATCHED)
    each = min(_TAIL, _MOST_BYTES // max(1, len(chosen)))
    threads = [threading.Thread(target=_read, args=(file, began, each), daemon=True) for file in chosen]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _PATIENCE + 1.0
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return {
        "seconds": WATCHED,
        "outputs": outputs,
        "files": [
            {
                "path": file["path"], "pids": file["pids"], "grown": file.get("grown", 0), "size": file.get("size"),
                "text": file.get("text"), "error": file.get("error", "no answer"),
            }
            for file in chosen
        ],
        "left_out": max(0, len(files) - _MOST_FILES),
    }  # fmt: skip


def _written(pid: int, *, is_rank: bool) -> "List[Tuple[int, str]]":
    """Return the output of a process, and its other files that are named like logs: [descriptor, path]."""
    found: "List[Tuple[int, str]]" = []
    logs = 0
    for number, path in (proc.descriptors(pid, most=_MOST_OPEN) or {}).items():
        if not path.startswith("/") or path.startswith(("/dev/", "/proc/", "/sys/", "/memfd:")):
            continue
        if number in (1, 2):
            found.append((number, path))
        elif is_rank and logs < _MOST_LOGS and _LOG.search(path) and proc.position(pid, number) is not None:
            found.append((number, path))
            logs += 1
    return found


def _read(file: "Dict[str, Any]", began: "Mapping[int, Optional[int]]", most: int) -> None:
    """Add the end of a file, its size, and by how much its writers have moved on."""
    # The number of one that has ended since may be another process's by now.
    writers = [one for one in file["seen"] if began[one[0]] is not None and _started(one[0]) == began[one[0]]]
    if not writers:
        file["error"] = "what writes to it has ended"
        return
    file["grown"] = max(
        (now - then for now, then in ((proc.position(pid, number), then) for pid, number, then in writers)
         if now is not None and then is not None),
        default=0,
    )  # fmt: skip
    pid, number, _ = writers[0]
    reply = commands.run(["sh", "-c", _READ, "sh", proc.path(pid, "fd", str(number)), str(most)], _PATIENCE)
    size, newline, text = reply.get("stdout", "").partition("\n")
    if reply.get("exit_status") == 0 and newline and size.isdigit():
        file.update(size=int(size), text=text[-2 * most :], error="")
    elif reply["status"] == "timeout":
        file["error"] = "its file system gave no answer within {:.0f} s".format(_PATIENCE)
    else:
        lines = reply.get("stderr", "").strip().splitlines()
        file["error"] = "not a regular file" if reply.get("exit_status") == 3 else (lines or ["cannot be read"])[-1]


def _started(pid: int) -> "Optional[int]":
    now = proc.stat(pid)
    return None if now is None else now.started
