"""The TCP sockets of a job's processes, seen twice, and the addresses of the network namespaces that they are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, cast

from ncheck.decode import Device, DeviceOrEmpty, Key, Maybe, Words
from ncheck.facts.definition import LOOKING, Fact
from ncheck.facts.names import Resolved, resolved
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Absent, Read, Unread
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts, is_launcher

if TYPE_CHECKING:
    from ncheck.model.job import Job
    from ncheck.settings import Settings

# As the kernel numbers them in /proc/net/tcp, and as ss names them.
STATES = {
    "01": "ESTABLISHED", "02": "SYN-SENT", "03": "SYN-RECEIVED", "04": "FIN-WAIT-1", "05": "FIN-WAIT-2",
    "06": "TIME-WAIT", "07": "CLOSED", "08": "CLOSE-WAIT", "09": "LAST-ACK", "0A": "LISTEN", "0B": "CLOSING",
}  # fmt: skip


@dataclass(frozen=True)
class SocketLook:
    """One look at a socket. `sent`: bytes that the other side has not acknowledged; `unread`: bytes that the process
    has not read, or connections that it has not accepted; `retransmits`: in a row without an answer.

    Of the kernel's counts, which only show in the agent's own namespace: bytes `acknowledged` and `received` and
    segments `resent` since the connection began. None: unknown.
    """

    state: str
    sent: int = 0
    unread: int = 0
    timer: int = 0
    retransmits: int = 0
    acknowledged: int | None = None
    received: int | None = None
    resent: int | None = None


@dataclass(frozen=True)
class Socket:
    """A socket as it was at the first look and at the last; None where it was not there. `pid` has it open."""

    pid: int
    namespace: str
    local: str
    local_port: int
    remote: str
    remote_port: int
    first: SocketLook | None
    last: SocketLook | None

    def stayed(self, state: str) -> bool:
        """Return whether it was in this state at both looks."""
        return bool(self.first and self.last and self.first.state == self.last.state == state)

    @property
    def moved(self) -> int | None:
        """Bytes that arrived at either side between the looks; None if that is not known."""
        if not (self.first and self.last):
            return None
        numbers = (self.first.acknowledged, self.last.acknowledged, self.first.received, self.last.received)
        if None in numbers:
            return None
        first_sent, last_sent, first_got, last_got = cast("tuple[int, int, int, int]", numbers)
        return max(0, last_sent - first_sent) + max(0, last_got - first_got)

    @property
    def stuck(self) -> bool:
        """Whether what it sent waits for an acknowledgement at both looks, and none came in between."""
        if not (self.first and self.last and self.first.sent):
            return False
        if self.first.acknowledged is not None and self.last.acknowledged is not None:
            return self.last.sent > 0 and self.last.acknowledged == self.first.acknowledged
        return self.last.sent >= self.first.sent

    @property
    def unread(self) -> int:
        """Bytes that lie unread since the first look; 0 if the process read some."""
        if not (self.first and self.last):
            return 0
        more = self.last.unread - self.first.unread
        if self.first.received is not None and self.last.received is not None:
            more -= self.last.received - self.first.received
        return self.first.unread if more >= 0 else 0


@dataclass(frozen=True)
class Listener:
    """A socket that listens on a port of the rendezvous. It is `asked` where a process that was asked about has it;
    else `by` says who has it, and `pid` which process, None if this user may not see that.
    """

    ip: Annotated[str, _ip]
    port: int
    asked: bool
    pid: int | None = None
    by: Words = ""


@dataclass(frozen=True)
class Connection:
    """A connection of a process that triage did not look into; `state` as ss names it."""

    local: str
    local_port: int
    remote: str
    remote_port: int
    state: str


@dataclass(frozen=True)
class NetworkPlace:
    """A network namespace. `addresses` map each ip to its interface ("" unknown). `others` is not `complete` where more
    connections than an answer holds were there.
    """

    addresses: Annotated[Mapping[str, str], _addresses]
    interfaces: tuple[Device, ...] = ()
    listeners: tuple[Listener, ...] = ()
    others: tuple[Annotated[Connection, _connection], ...] = ()
    complete: Annotated[bool, Key("others_left_out"), _whole] = True


@dataclass(frozen=True)
class SocketsFacts:
    """Sockets by process, with those of the processes beneath it; a process that could not be read says why.

    `own` is the agent's namespace: `names`, what the ranks' MASTER_ADDR resolve to, is true for processes in it.
    """

    processes: Annotated[Mapping[int, Read[tuple[Socket, ...]]], _by_pid]
    places: Mapping[str, NetworkPlace] = field(default_factory=dict)
    own: str = ""
    names: Mapping[str, Annotated[Resolved, resolved]] = field(default_factory=dict)
    complete: Annotated[bool, Key("left_out"), _whole] = True

    def of(self, pid: int) -> Read[tuple[Socket, ...]]:
        """Return the sockets of one process."""
        return self.processes.get(pid, Unread("it was not asked about"))


@dataclass(frozen=True)
class Counts:
    acknowledged: Maybe[int] = None
    received: Maybe[int] = None
    resent: Maybe[int] = None


@dataclass(frozen=True)
class SeenAnswer:
    """`counts`: see triage/agent/tcp_info.py."""

    state: str
    sent: int
    unread: int
    timer: int
    retransmits: int
    counts: Counts | None


@dataclass(frozen=True)
class SocketAnswer:
    held_by: int
    namespace: str
    local: Annotated[str, _ip]
    local_port: int
    remote: Annotated[str, _ip]
    remote_port: int
    seen: tuple[Annotated[SocketLook, _seen] | None, Annotated[SocketLook, _seen] | None]


@dataclass(frozen=True)
class ProcessSockets:
    pid: int
    error: Words | None
    sockets: tuple[Annotated[Socket, _socket], ...]


_PATIENCE = 12.0  # seconds: two looks two seconds apart, and names that do not resolve
SOCKETS = Answer("sockets", timeout=_PATIENCE, shape=SocketsFacts)


def _by_pid(processes: tuple[ProcessSockets, ...]) -> dict[int, Read[tuple[Socket, ...]]]:
    return {one.pid: _of_process(one) for one in processes}


def _of_process(one: ProcessSockets) -> Read[tuple[Socket, ...]]:
    if one.error == "gone":
        return Absent("the process has ended")
    return Unread(one.error, needs_root=True) if one.error else one.sockets


def _socket(one: SocketAnswer) -> Socket:
    return Socket(one.held_by, one.namespace, one.local, one.local_port, one.remote, one.remote_port, *one.seen)


def _seen(one: SeenAnswer) -> SocketLook:
    counts = one.counts or Counts()
    return SocketLook(
        _state(one.state), one.sent, one.unread, one.timer, one.retransmits,
        counts.acknowledged, counts.received, counts.resent,
    )  # fmt: skip


def _state(number: str) -> str:
    return STATES.get(number, "unknown")


def _connection(row: tuple[Annotated[str, _ip], int, Annotated[str, _ip], int, Annotated[str, _state]]) -> Connection:
    return Connection(*row)


def _addresses(rows: tuple[tuple[Annotated[str, _ip], DeviceOrEmpty], ...]) -> dict[str, str]:
    return dict(rows)


def _whole(left_out: int) -> bool:
    return left_out == 0


def _ip(text: str) -> str:
    """Return an address as ipaddress writes it, without a zone; ::ffff:10.1.0.2 is 10.1.0.2."""
    address = ip_address(text.partition("%")[0])
    return str((address.version == 6 and address.ipv4_mapped) or address)  # noqa: PLR2004


def _more(job: Job, node: str, _: Settings) -> Mapping[str, JsonValue]:
    masters: list[JsonValue] = [
        *sorted({name for one in job.on(node) if (name := one.variables.get("MASTER_ADDR", "").strip())})
    ]
    ports: list[JsonValue] = [*sorted({port for one in job.ranks if (port := master_port(one.variables))})]
    above = job.launchers.get(node, ())
    launchers: list[JsonValue] = [
        {"pid": one.pid, "started": one.started, "namespace": one.namespace,
         "children": [it.pid for it in above if it.parent == one.pid and not is_launcher(it)]}
        for one in above if is_launcher(one)
    ]  # fmt: skip
    return {"names": masters[:_MOST_NAMES], "ports": ports[:_MOST_NAMES], "launchers": launchers}


_MOST_NAMES = 16


def master_port(variables: Mapping[str, str]) -> int:
    """Return MASTER_PORT of a rank; 0 if it is not set, or is no port."""
    text = variables.get("MASTER_PORT", "").strip()
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < len("100000") else 0
    return number if number <= _LAST_PORT else 0


_LAST_PORT = 65535

FACTS = (
    Fact(
        SocketsFacts, (SOCKETS,), phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(SOCKETS, _more),
    ),
)  # fmt: skip
