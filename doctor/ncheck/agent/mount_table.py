"""The kernel's table of mounts: which file system is where, without touching any of them."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional

    Mount = Dict[str, Any]

# Types of file systems whose server is another machine, or another process: they can hang while this node is well.
NETWORK = re.compile(
    r"^(?:nfs4?|lustre|gpfs|beegfs|ceph|glusterfs|cifs|smb3|wekafs|pvfs2|orangefs|panfs|afs|9p|virtiofs|fuse(?:\..*)?)$"
)

OWN = "/proc/self/mountinfo"
_LONGEST = 1 << 22  # bytes of the table: ten thousand mounts


def own_mounts() -> "List[Mount]":
    """Return the mounts that this process sees: see `read_mounts`. Raises OSError without /proc."""
    with open(OWN, "rb") as file:
        return read_mounts(file.read(_LONGEST).decode("utf-8", "backslashreplace"))


def read_mounts(text: str) -> "List[Mount]":
    """Return the mounts of a mountinfo file in its order: of those at one place, the last is the one that is seen.

    Each is {"device": "254:0", "point", "type", "source", "root": which folder of the source, "options": those of this
    mount, "super_options": those of the file system itself, "network": whether it can hang while this node is well}.
    """
    table = []
    for line in text.splitlines():
        # 36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 - ext3 /dev/root rw,errors=continue
        front, _, back = line.partition(" - ")
        fields, rest = front.split(), back.split()
        if len(fields) > 5 and len(rest) > 1:
            table.append({
                "device": fields[2], "point": _unescaped(fields[4]), "type": rest[0], "source": _unescaped(rest[1]),
                "root": _unescaped(fields[3]), "options": fields[5], "super_options": [*rest, ""][2],
                "network": bool(NETWORK.match(rest[0])),
            })  # fmt: skip
    return table


def mount_of(path: str, table: "Iterable[Mount]") -> "Optional[Mount]":
    """Return the mount that a path is on; None where the table has none."""
    on = None
    for one in table:
        if path == one["point"] or path.startswith(one["point"].rstrip("/") + "/"):
            if on is None or len(one["point"]) >= len(on["point"]):
                on = one
    return on


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), path)
