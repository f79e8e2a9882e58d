"""How each RoCE port treats its traffic: flow control (PFC), trust, ECN, traffic class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.facts.shapes import device_name
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class RocePort:
    """One Ethernet port of an HCA; None is what its driver does not show.

    `pfc`: priorities with flow control. `dscp`: (DSCP, priority) where DSCP is trusted, empty where the VLAN's priority
    is. `ecn_np`, `ecn_rp`: priorities for which it notifies of congestion, and reacts to that. `traffic_class` and
    `tos` are what administrators set for all connections, "" if nothing is.
    """

    interface: str
    pfc: tuple[int, ...] | None = None
    dscp: tuple[tuple[int, int], ...] | None = None
    ecn_np: tuple[int, ...] | None = None
    ecn_rp: tuple[int, ...] | None = None
    traffic_class: str | None = None
    tos: str | None = None


@dataclass(frozen=True)
class RoceFacts:
    """The ports by name: mlx5_0:1."""

    ports: Mapping[str, RocePort]


class RocePortAnswer(TypedDict):
    """Whatever the node does not show is null."""

    interface: str
    pfc: list[int] | None
    dscp: list[list[int]] | None
    ecn_np: list[int] | None
    ecn_rp: list[int] | None
    traffic_class: str | None
    tos: str | None


class RoceAnswer(TypedDict):
    ports: dict[str, RocePortAnswer]


ROCE = Answer("roce", shape=RoceAnswer)
_LONGEST = 80  # characters of what a driver prints: Global tclass=106


def roce(evidence: Evidence) -> Read[RoceFacts]:
    """Read the ports. Raises ValueError for a name that is none."""
    reply = evidence.reply(ROCE)
    if why := no_answer(ROCE, reply):
        return why
    ports = {_name(name): _port(one) for name, one in cast("RoceAnswer", reply.value)["ports"].items()}
    return RoceFacts(ports) if ports else Absent("no RoCE port")


def _name(name: str) -> str:
    device, _, port = name.partition(":")
    if not port.isdecimal():
        raise ValueError("no port of an HCA")
    return f"{device_name(device)}:{port}"


def _port(one: RocePortAnswer) -> RocePort:
    dscp, traffic_class, tos = one["dscp"], one["traffic_class"], one["tos"]
    return RocePort(
        device_name(one["interface"]) if one["interface"] else "",
        _priorities(one["pfc"]),
        None if dscp is None else tuple((code, priority) for code, priority in dscp),
        _priorities(one["ecn_np"]),
        _priorities(one["ecn_rp"]),
        None if traffic_class is None else " ".join(traffic_class.split())[:_LONGEST],
        None if tos is None else tos[:_LONGEST],
    )


def _priorities(found: list[int] | None) -> tuple[int, ...] | None:
    return None if found is None else tuple(found)


FACTS = (Fact(RoceFacts, (ROCE,), roce),)
