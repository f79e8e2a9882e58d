"""What moved while a job was watched: bytes and errors of interfaces and HCA ports, and the segments of TCP."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.decode import Device, Words
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts


@dataclass(frozen=True)
class NicTraffic:
    """What an interface counted in the time between two looks: bytes, packets, and those that were lost."""

    sent: int
    received: int
    packets: int = 0
    errors: int = 0
    drops: int = 0


@dataclass(frozen=True)
class PortTraffic:
    """The same of an HCA port; None where it does not count bytes. `state`: ACTIVE, DOWN, INIT, ARMED; `errors` are the
    counters that grew.
    """

    state: str
    sent: int | None = None
    received: int | None = None
    link_layer: str = ""
    errors: Mapping[str, int] | None = None


@dataclass(frozen=True)
class TcpTraffic:
    """The segments that a namespace sent, and those of them that it sent again."""

    sent: int
    resent: int


@dataclass(frozen=True)
class CountersFacts:
    """The traffic of two seconds, by network namespace and interface, and by HCA port."""

    interfaces: Mapping[str, Mapping[str, NicTraffic]]
    tcp: Mapping[str, TcpTraffic]
    ports: Mapping[str, PortTraffic]


@dataclass(frozen=True)
class NicCounts:
    received: int
    packets_received: int
    receive_errors: int
    receive_drops: int
    sent: int
    packets_sent: int
    send_errors: int
    send_drops: int


@dataclass(frozen=True)
class TcpCounts:
    sent: int | None
    resent: int | None


@dataclass(frozen=True)
class NamespaceCounts:
    interfaces: Mapping[Device, NicCounts]
    tcp: TcpCounts


@dataclass(frozen=True)
class PortCounts:
    state: str
    link_layer: str
    sent: int | None
    received: int | None
    errors: Mapping[Words, int]


@dataclass(frozen=True)
class LookAnswer:
    namespaces: Mapping[str, NamespaceCounts]
    ports: Mapping[Device, PortCounts]


@dataclass(frozen=True)
class CountersAnswer:
    looks: tuple[LookAnswer, LookAnswer]


COUNTERS = Answer("counters", shape=CountersAnswer)


@reading(COUNTERS)
def counters(answer: CountersAnswer) -> CountersFacts:
    """Read what moved between the looks."""
    first, last = answer.looks
    interfaces, tcp = {}, {}
    for namespace, after in last.namespaces.items():
        before = first.namespaces.get(namespace)
        if before is None:
            continue
        pairs = [(name, before.interfaces.get(name), one) for name, one in after.interfaces.items()]
        interfaces[namespace] = {name: _nic(old, new) for name, old, new in pairs if old}
        sent, resent = _grown(before.tcp.sent, after.tcp.sent), _grown(before.tcp.resent, after.tcp.resent)
        if sent is not None and resent is not None:
            tcp[namespace] = TcpTraffic(sent, resent)
    return CountersFacts(interfaces, tcp, {name: _port(first.ports.get(name), one) for name, one in last.ports.items()})


def _nic(old: NicCounts, new: NicCounts) -> NicTraffic:
    """Return the differences. A counter that was set back has moved nothing."""
    grown = {name: max(0, count - getattr(old, name)) for name, count in vars(new).items()}
    return NicTraffic(
        grown["sent"], grown["received"], grown["packets_sent"] + grown["packets_received"],
        grown["send_errors"] + grown["receive_errors"], grown["send_drops"] + grown["receive_drops"],
    )  # fmt: skip


def _port(old: PortCounts | None, new: PortCounts) -> PortTraffic:
    before = old or new
    errors = {name: count - before.errors.get(name, count) for name, count in new.errors.items()}
    return PortTraffic(
        new.state.rpartition(":")[2].strip().upper(),  # 4: ACTIVE
        _grown(before.sent, new.sent), _grown(before.received, new.received), new.link_layer,
        {name: count for name, count in errors.items() if count > 0},
    )  # fmt: skip


def _grown(old: int | None, new: int | None) -> int | None:
    return None if old is None or new is None else max(0, new - old)


FACTS = (
    Fact(
        CountersFacts, (COUNTERS,), counters, phase=LOOKING, needs=(ProcessesFacts,), questions=ask_of_ranks(COUNTERS)
    ),
)
