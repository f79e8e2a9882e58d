"""The network file systems that are mounted, from the kernel's table."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.expression import expression
from ncheck.facts.definition import Fact, no_answer
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence
from ncheck.model.fact import Read
from ncheck.text import LONGEST_MESSAGE, printable


@dataclass(frozen=True)
class Mount:
    """One mounted file system. `kind`: nfs4, lustre; `read_only`: how it is mounted; `server`: its name or address,
    "" where the file system has not one server.
    """

    kind: str
    read_only: bool = False
    server: str = ""


@dataclass(frozen=True)
class MountFacts:
    """`shared`: the network file systems by mount point, without those that a pod or a user's session has for itself.

    `automatic`: where an automounter mounts what is asked for.
    """

    shared: Mapping[str, Mount]
    automatic: tuple[str, ...] = ()

    def may_come(self, path: str) -> bool:
        """Whether the automounter may mount this path when somebody asks for it."""
        return any(path == place or path.startswith(f"{place}/") for place in self.automatic)


# A test holds them to the list of the agent, which also knows file systems of one node alone (9p, FUSE).
NETWORK = (
    "nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "cifs", "smb3", "wekafs", "pvfs2", "orangefs",
    "panfs", "afs", "virtiofs", "fuse.glusterfs", "fuse.ceph", "fuse.juicefs",
)  # fmt: skip

_AUTOMATIC = "autofs"

# Where container engines and users' sessions mount what one of them asks for: other nodes need not have it.
_OF_ONE = ("/var/lib/kubelet/", "/var/lib/docker/", "/run/")

# Only these lines: the table of a host of containers has thousands of others. No such line is no failure.
MOUNTS = Command(("sh", "-c", f"grep -E ' ({'|'.join((*NETWORK, _AUTOMATIC))}) ' /proc/self/mounts || test $? -eq 1"))
_MOST = 10_000  # mount points: one for each user's home

# server:/export/home /home nfs4 rw,relatime,vers=4.2 0 0
_LINE = expression(r"(?:\[?(?P<server>[\w.:-]{1,255}?)\]?:/)?\S* (?P<path>/\S*) (?P<kind>\S+) (?P<options>\S+) \d+ \d+")

# /mnt/my\040data
_ESCAPED = expression(r"\\([0-7]{3})")


def mounts(evidence: Evidence) -> Read[MountFacts]:
    """Read the table. Raises ValueError for a line of another form."""
    reply = evidence.reply(MOUNTS)
    if why := no_answer(MOUNTS, reply):
        return why
    shared: dict[str, Mount] = {}
    automatic: list[str] = []
    for line in reply.stdout.splitlines()[:_MOST]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"not a line of a mount table: {line[:80]}")
        path = printable(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), match["path"]), LONGEST_MESSAGE)
        if match["kind"] == _AUTOMATIC:
            automatic.append(path)
        elif not path.startswith(_OF_ONE):
            shared[path] = Mount(match["kind"], "ro" in match["options"].split(","), match["server"] or "")
    return MountFacts(shared, tuple(automatic))


FACTS = (Fact(MountFacts, (MOUNTS,), mounts),)
