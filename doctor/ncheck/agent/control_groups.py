"""Where the kernel shows the limits of a process's control groups, version 1 and 2, in a container too."""

import os

from ncheck.agent import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, List

_ROOT = "/sys/fs/cgroup"
_MOST = 24


def folders(pid: int, controllers: "Collection[str]") -> "List[str]":
    """Return the folders of the control groups of a process, for these controllers, from the inside outwards."""
    found: "List[str]" = []
    for line in proc.text(pid, "cgroup").splitlines():
        # 0::/user.slice/user-1000.slice    |    5:memory:/slurm/uid_1000/job_7
        number, names, path = [*line.split(":", 2), "", ""][:3]
        bases = [_ROOT] if number == "0" and not names else [
            _ROOT + "/" + name for name in (names, names.split(",")[0]) if set(controllers) & set(names.split(","))
        ]  # fmt: skip
        base = next((name for name in bases if os.path.isdir(name)), None)
        while base and path.strip("/") and ".." not in path:
            if os.path.isdir(base + path):
                found.append(base + path)
            path = os.path.dirname(path)
        if base:
            found.append(base)
    return list(dict.fromkeys(found))[:_MOST]
