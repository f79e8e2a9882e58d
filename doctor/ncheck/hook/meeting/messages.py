"""What the ranks of a meeting send each other: JSON on the wire (wire.py), and here a record for each kind of message.

A rank sends Came, and gets Welcome. Rank 0 may then send Look, whose answer is Alive; Open, after which the rank
connects the agent of its node, with Channel; and Wait. Told or NotMet is the outcome; a rank that continues without it
sends Leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from ncheck.decode import OPTIONAL, Flag, Maybe, MisfitError, Null, Text, Within, decoded
from ncheck.lazy_dataclass import dataclass

# Why a connection is over: the other side closed it or its process ended; nobody listens; no answer; no route; the
# other side is not of this job; it sends what ncheck does not send; or the network broke.
ENDED, REFUSED, FILTERED, UNREACHABLE, FOREIGN, MISUSE, LOST = (
    "ended", "refused", "filtered", "unreachable", "foreign", "misuse", "lost",
)  # fmt: skip

_Number = Annotated[int, Within(0, (1 << 32) - 1)]
_Name = Annotated[str, Text(255)]
_Address = Annotated[str, OPTIONAL, Null(""), Text(255)]
_Seconds = Annotated[float, Within(0, 1e9)]


@dataclass(frozen=True)
class Member:
    """One rank that came. Ranks with the same `machine` (boot id and network namespace) are on one node."""

    rank: _Number
    size: _Number  # its own WORLD_SIZE
    local_rank: Maybe[_Number]
    host_name: _Name
    node_name: _Name
    machine: _Name
    pid: _Number
    address: _Address  # as rank 0 sees it, whatever the rank says
    version: _Name  # of its ncheck

    @property
    def shown(self) -> str:
        """As a message names it: rank 3 (pid 4711 on gpu02)."""
        return f"rank {self.rank} (pid {self.pid} on {self.place})"

    @property
    def place(self) -> str:
        return self.node_name or self.host_name


# From a rank


@dataclass(frozen=True)
class Came:
    """A rank is here, and has so many seconds left."""

    member: Member
    seconds: _Seconds


@dataclass(frozen=True)
class Channel:
    """This connection leads to the agent of a node, by the ticket of Open."""

    ticket: str


@dataclass(frozen=True)
class Alive:
    """These ranks have a process on this node."""

    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Leave:
    """This rank lives, and continues without a verdict. `kind`: as that of its NotMet."""

    kind: str


# From rank 0


@dataclass(frozen=True)
class Welcome:
    """Rank 0 of the job."""

    member: Member


@dataclass(frozen=True)
class Look:
    """Which of these ranks have a process on your node?"""

    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Wait:
    """There are ranks on their way: wait longer."""


@dataclass(frozen=True)
class Open:
    """Connect the agent of your node."""

    ticket: str


def _whole(verdict: Mapping[str, object]) -> dict[str, Any]:
    return dict(verdict)


@dataclass(frozen=True)
class Told:
    """The examiner's verdict, as every rank gets it. `ended`: the ranks whose process ended while it examined."""

    verdict: Annotated[dict[str, Any], _whole]
    ended: tuple[Member, ...] = ()


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


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError("not an outcome")
    return kind


@dataclass(frozen=True)
class NotMet:
    """There is no verdict. `kind` is one of KINDS; `is_error`: the job could not run either."""

    kind: Annotated[str, _known]
    text: Annotated[str, Text(2000)]
    is_error: Flag = False


Outcome = Told | NotMet
FromRank = Came | Channel | Alive | Leave
FromHub = Welcome | Look | Wait | Open | Told | NotMet
Message = FromRank | FromHub

_NAMES: Mapping[type[Message], str] = {
    Came: "rank", Channel: "channel", Alive: "alive", Leave: "leave",
    Welcome: "welcome", Look: "look", Wait: "wait", Open: "open", Told: "verdict", NotMet: "no verdict",
}  # fmt: skip
_KINDS = {name: kind for kind, name in _NAMES.items()}


def written(message: Message) -> dict[str, Any]:
    """Return a message as JSON has it."""
    return {"what": _NAMES[type(message)], **asdict(message)}


def read(value: object) -> Message | None:
    """Return a message that came; None for a kind that this ncheck does not know. Raises MisfitError."""
    what = value.get("what") if isinstance(value, dict) else None
    if not isinstance(what, str):
        raise MisfitError("no message")
    return decoded(value, _KINDS[what]) if what in _KINDS else None
