"""What moved while a job was watched: bytes and errors of interfaces and HCA ports, and the segments of TCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, LOOKING, Fact, no_answer
from ncheck.facts.jobs import ask_of_ranks
from ncheck.facts.processes import ProcessesFacts
from ncheck.facts.shapes import device_name
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read


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


class NicCounts(TypedDict):
    received: int
    packets_received: int
    receive_errors: int
    receive_drops: int
    sent: int
    packets_sent: int
    send_errors: int
    send_drops: int


class TcpCounts(TypedDict):
    sent: int | None
    resent: int | None


class NamespaceCounts(TypedDict):
    interfaces: dict[str, NicCounts]
    tcp: TcpCounts


class PortCounts(TypedDict):
    state: str
    link_layer: str
    sent: int | None
    received: int | None
    errors: dict[str, int]


class Look(TypedDict):
    namespaces: dict[str, NamespaceCounts]
    ports: dict[str, PortCounts]


class CountersAnswer(TypedDict):
    looks: list[Look]


COUNTERS = Answer("counters", shape=CountersAnswer)


def counters(evidence: Evidence) -> Read[CountersFacts]:
    """Read what moved between the looks. Raises ValueError where there are not two."""
    reply = evidence.reply(COUNTERS)
    if why := no_answer(COUNTERS, reply):
        return why
    first, last = cast("CountersAnswer", reply.value)["looks"]
    interfaces, tcp = {}, {}
    for namespace, after in last["namespaces"].items():
        before = first["namespaces"].get(namespace)
        if before is None:
            continue
        pairs = [(name, before["interfaces"].get(name), one) for name, one in after["interfaces"].items()]
        interfaces[namespace] = {device_name(name): _nic(old, new) for name, old, new in pairs if old}
        numbers = before["tcp"]["sent"], before["tcp"]["resent"], after["tcp"]["sent"], after["tcp"]["resent"]
        if None not in numbers:
            sent, resent, sent_after, resent_after = cast("tuple[int, int, int, int]", numbers)
            tcp[namespace] = TcpTraffic(max(0, sent_after - sent), max(0, resent_after - resent))
    ports = {device_name(name): _port(first["ports"].get(name), one) for name, one in last["ports"].items()}
    return CountersFacts(interfaces, tcp, ports)


def _nic(old: NicCounts, new: NicCounts) -> NicTraffic:
    """Return the differences. A counter that was set back has moved nothing."""
    grown = {name: max(0, count - cast("Mapping[str, int]", old)[name]) for name, count in _counts(new).items()}
    return NicTraffic(
        grown["sent"], grown["received"], grown["packets_sent"] + grown["packets_received"],
        grown["send_errors"] + grown["receive_errors"], grown["send_drops"] + grown["receive_drops"],
    )  # fmt: skip


def _counts(one: NicCounts) -> Mapping[str, int]:
    return {name: count for name, count in one.items() if isinstance(count, int)}


def _port(old: PortCounts | None, new: PortCounts) -> PortTraffic:
    before = old or new
    errors = {name[:LONGEST]: count - before["errors"].get(name, count) for name, count in new["errors"].items()}
    return PortTraffic(
        new["state"].rpartition(":")[2].strip().upper(),  # 4: ACTIVE
        _grown(before["sent"], new["sent"]), _grown(before["received"], new["received"]), new["link_layer"],
        {name: count for name, count in errors.items() if count > 0},
    )  # fmt: skip


def _grown(old: int | None, new: int | None) -> int | None:
    return None if old is None or new is None else max(0, new - old)


FACTS = (
    Fact(
        CountersFacts, (COUNTERS,), counters, phase=LOOKING, needs=(ProcessesFacts,), questions=ask_of_ranks(COUNTERS)
    ),
)
