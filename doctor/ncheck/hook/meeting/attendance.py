"""Who came to the meeting, and how it ended: what the hub, the ranks, and those who examine and report share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable

if TYPE_CHECKING:
    from typing import Any

    from ncheck.rank_variables import Rank

_LONGEST = 255  # characters of a name


@dataclass(frozen=True)
class Member:
    """One rank that came. Ranks with the same `machine` (boot id and network namespace) are on one node."""

    rank: int
    size: int  # its own WORLD_SIZE
    local_rank: int | None
    host_name: str
    node_name: str
    machine: str
    pid: int
    address: str  # as the hub sees it
    version: str  # of its ncheck

    @property
    def shown(self) -> str:
        """As a message names it: rank 3 (pid 4711 on gpu02)."""
        return f"rank {self.rank} (pid {self.pid} on {self.place})"

    @property
    def place(self) -> str:
        return self.node_name or self.host_name


@dataclass(frozen=True)
class Trouble:
    """What is wrong with the ranks themselves. `kind`: "duplicate-rank", "world-size", "misuse", "lost", "port-taken",
    or "doubted": one of the first two, by the word of somebody who may be a stranger.
    """

    kind: str
    ranks: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Attendance:
    """What the hub knows when the examination begins."""

    members: tuple[Member, ...]  # by rank; those that ended are among them
    missing: tuple[int, ...]
    ended: tuple[int, ...]  # came, and their process ended
    problems: tuple[Trouble, ...]
    remote_came: bool  # a rank of another machine came: the port can be reached
    ports: tuple[int, ...]  # ports that were open; the job's own MASTER_PORT among them or not
    evidence: str  # why the missing could have come: "one-machine", "remote-came", "master-port-open"; "" is none
    strangers: tuple[str, ...] = ()  # addresses from which ranks with another token came: perhaps the missing ones

    @property
    def missing_is_error(self) -> bool:
        """Whether a missing rank is an error: without evidence that it could have come, it is a warning."""
        return bool(self.evidence)

    def host_of(self, own: Rank, number: int) -> str:
        """Return the host of a rank by what its launcher told `own`, or by the ranks that came; "" unknown.

        Where each node has as many ranks as this one, and those that came are so many in a row on each node, the rest
        are too.
        """
        if host := own.host_of(number):
            return host
        size = own.size if self.evidence == "one-machine" else own.local_size
        machines: dict[int, set[str]] = {}
        for member in self.members:
            if size and member.local_rank in {None, member.rank % size}:
                machines.setdefault(member.rank // size, set()).add(member.machine)
        known = [next(iter(names)) for names in machines.values() if len(names) == 1]
        if not size or len(set(known)) < len(machines) or number // size not in machines:
            return ""
        (machine,) = machines[number // size]
        return next(one.node_name or one.host_name for one in self.members if one.machine == machine)


@dataclass(frozen=True)
class Told:
    """The examiner's verdict, as every rank gets it. `ended`: the ranks whose process ended while it examined."""

    verdict: dict[str, Any]
    ended: tuple[Member, ...] = ()


@dataclass(frozen=True)
class NotMet:
    """There is no verdict. `kind` is one of KINDS; `is_error`: the job could not run either."""

    kind: str
    text: str
    is_error: bool = False


KINDS = (
    "no-master",  # the launcher's variables do not say where rank 0 is
    "ports",  # rank 0 could open no port
    "files",  # rank 0 may not open enough files for so many ranks
    "unresolved",  # the master's name has no address
    "loopback",  # the master's name is this machine, and rank 0 is on another
    "refused",  # nobody listens
    "filtered",  # no answer: a firewall, or the host is off
    "unreachable",  # no route
    "foreign",  # somebody else holds the ports
    "lost",  # the connection to rank 0 broke
    "ended",  # the process of rank 0 ended
    "crashed",  # the examiner ended without a verdict
    "overran",  # no verdict in time
    "ranks",  # crashed or overran, and ranks have ended or are missing
    "doubted",  # two processes are one rank, and one of them may be a stranger
    "late",  # the last ranks came when the others were examined
)

Outcome = Told | NotMet


def member_from(value: object, address: str) -> Member:
    """Return the member that a rank says it is. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError("no member")  # noqa: TRY004  one error for all that comes from outside
    local = value.get("local_rank")
    return Member(
        rank=_number(value.get("rank")),
        size=_number(value.get("size")),
        local_rank=None if local is None else _number(local),
        host_name=_text(value.get("host_name")),
        node_name=_text(value.get("node_name")),
        machine=_text(value.get("machine")),
        pid=_number(value.get("pid")),
        address=address,
        version=_text(value.get("version")),
    )


def not_met_from(value: Mapping[str, object]) -> NotMet:
    """Return what the hub said. Raises ValueError."""
    kind = _text(value.get("kind"))
    if kind not in KINDS or not isinstance(text := value.get("text"), str):
        raise ValueError("not an outcome")
    return NotMet(kind, printable(text, 2000), value.get("is_error") is True)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
        raise ValueError("no number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")  # noqa: TRY004
    return printable(value, _LONGEST)
