"""What HCA ports and network cards count of errors and congestion, read at the beginning and at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import LOOKING_AGAIN, Fact, no_answer
from ncheck.facts.shapes import device_name
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read
from ncheck.model.phase import NotAsked, Questions

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Counted:
    """What a port or card has counted since it was started: errors by counter, without those that are 0, and bytes.

    `counters` is how many of its error counters could be read: a port that has none can show no error.
    """

    counters: int
    errors: Mapping[str, int]
    sent: int | None = None
    received: int | None = None


@dataclass(frozen=True)
class ErrorCountersFacts:
    """The counters of each HCA port ("mlx5_0:1") and network card ("eth0") when the run began.

    `at` is in seconds, by a clock of the node that is good for differences only.
    """

    at: float
    ports: Mapping[str, Counted]


@dataclass(frozen=True)
class LaterErrorCountersFacts:
    """The same at the end of the run."""

    at: float
    ports: Mapping[str, Counted]


class CountedAnswer(TypedDict):
    read: int
    errors: dict[str, int]
    sent: int | None
    received: int | None


class ErrorCountersAnswer(TypedDict):
    at: float
    ports: dict[str, CountedAnswer]


FIRST = Answer("error-counters", shape=ErrorCountersAnswer)
LATER = Answer("later-error-counters", shape=ErrorCountersAnswer)


def first_look(evidence: Evidence) -> Read[ErrorCountersFacts]:
    """Read the first look."""
    reply = evidence.reply(FIRST)
    return no_answer(FIRST, reply) or ErrorCountersFacts(*_look(reply.value))


def later_look(evidence: Evidence) -> Read[LaterErrorCountersFacts]:
    """Read the second look."""
    reply = evidence.reply(LATER)
    return no_answer(LATER, reply) or LaterErrorCountersFacts(*_look(reply.value))


def _look(value: object) -> tuple[float, dict[str, Counted]]:
    answer = cast("ErrorCountersAnswer", value)
    ports = {
        _name(name): Counted(one["read"], dict(one["errors"]), one["sent"], one["received"])
        for name, one in answer["ports"].items()
    }
    return answer["at"], ports


def _name(name: str) -> str:
    """Return the name of a port or card. Raises ValueError for one that cannot be part of a command."""
    device, _, port = name.partition(":")
    if port and not port.isdecimal():
        raise ValueError("no port of an HCA")
    return device_name(device) + (f":{port}" if port else "")


def ask_again(cluster: Cluster, _settings: Settings, _left: float) -> Questions:
    """Ask each node that answered at the beginning."""
    first = cluster.connected_facts(ErrorCountersFacts)
    counting = {name for name, facts in first.items() if facts.ports}
    nothing = NotAsked(LATER, "no InfiniBand or RoCE port, and no network card")
    return {node.name: (LATER if node.name in counting else nothing,) for node in cluster.connected}


FACTS = (
    Fact(ErrorCountersFacts, (FIRST,), first_look),
    Fact(
        LaterErrorCountersFacts, (LATER,), later_look,
        phase=LOOKING_AGAIN, needs=(ErrorCountersFacts,), questions=ask_again,
    ),
)  # fmt: skip
