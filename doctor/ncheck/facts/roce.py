"""How each RoCE port treats its traffic: flow control (PFC), trust, ECN, traffic class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import DeviceOrEmpty, hca_port
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent, Read

_LONGEST = 80  # characters of what a driver prints: Global tclass=106


def _cut(text: str) -> str:
    return text[:_LONGEST]


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()))


@dataclass(frozen=True)
class RocePort:
    """One Ethernet port of an HCA; None is what its driver does not show. `pfc`: priorities with flow control.
    `dscp`: (DSCP, priority) where DSCP is trusted, empty where the VLAN's priority is. `ecn_np`: priorities for
    which it notifies of congestion; `ecn_rp`: priorities for which it reacts to that. `traffic_class` and `tos`:
    what administrators set for all connections, "" if nothing is.
    """

    interface: DeviceOrEmpty
    pfc: tuple[int, ...] | None = None
    dscp: tuple[tuple[int, int], ...] | None = None
    ecn_np: tuple[int, ...] | None = None
    ecn_rp: tuple[int, ...] | None = None
    traffic_class: Annotated[str, _one_line] | None = None
    tos: Annotated[str, _cut] | None = None


@dataclass(frozen=True)
class RoceFacts:
    """The ports by name: mlx5_0:1."""

    ports: Mapping[Annotated[str, hca_port], RocePort]


ROCE = Answer("roce", shape=RoceFacts)


@reading(ROCE)
def roce(answer: RoceFacts) -> Read[RoceFacts]:
    """Read the ports."""
    return answer if answer.ports else Absent("no RoCE port")


FACTS = (Fact(RoceFacts, (ROCE,), roce),)
