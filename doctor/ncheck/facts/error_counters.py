"""What HCA ports and network cards count of errors and congestion, read at the beginning and at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import Key, device_name, hca_port
from ncheck.facts.definition import LOOKING_AGAIN, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.phase import NotAsked, Questions

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Counted:
    """What a port or card has counted since it was started. `errors` by counter, without those that are 0; `sent`
    and `received` in bytes.

    `counters` is how many of its error counters could be read: a port that has none can show no error.
    """

    counters: Annotated[int, Key("read")]
    errors: Mapping[str, int]
    sent: int | None = None
    received: int | None = None


def _port_or_card(name: str) -> str:
    return hca_port(name) if ":" in name else device_name(name)


@dataclass(frozen=True)
class ErrorCountersFacts:
    """The counters of each HCA port ("mlx5_0:1") and network card ("eth0") when the run began.

    `at`: seconds since the node was started, without those in which it was suspended.
    """

    at: float
    ports: Mapping[Annotated[str, _port_or_card], Counted]

    @property
    def days(self) -> float:
        """Days since the node was started"""
        return self.at / 86400


@dataclass(frozen=True)
class LaterErrorCountersFacts:
    """The same at the end of the run."""

    at: float  # seconds since the node was started
    ports: Mapping[Annotated[str, _port_or_card], Counted]


FIRST = Answer("error-counters", shape=ErrorCountersFacts)
LATER = Answer("later-error-counters", shape=LaterErrorCountersFacts)


def ask_again(cluster: Cluster, _settings: Settings, _left: float) -> Questions:
    """Ask each node that answered at the beginning."""
    first = cluster.connected_facts(ErrorCountersFacts)
    counting = {name for name, facts in first.items() if facts.ports}
    nothing = NotAsked(LATER, "no InfiniBand or RoCE port, and no network card")
    return {node.name: (LATER if node.name in counting else nothing,) for node in cluster.connected}


FACTS = (
    Fact(ErrorCountersFacts, (FIRST,)),
    Fact(
        LaterErrorCountersFacts, (LATER,), phase=LOOKING_AGAIN, needs=(ErrorCountersFacts,), questions=ask_again
    ),
)  # fmt: skip
