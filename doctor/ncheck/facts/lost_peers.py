"""Whether other nodes get an answer from those that this machine did not reach: else it may be cut off itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.facts.answers import answer_of
from ncheck.facts.definition import ASKING_PEERS, Fact, exempt_without_peers
from ncheck.facts.login import LoginFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Cause, Evidence, JsonValue, Login, Status
from ncheck.model.fact import Absent
from ncheck.model.phase import NotAsked, Questions

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings


@dataclass(frozen=True)
class LostPeerFacts:
    """For each node that this machine did not reach, whether its SSH server greeted this node."""

    greeted: Mapping[str, bool]


# Where nothing answers on the port of SSH, or nothing that speaks SSH: another machine may get further.
NOBODY_ANSWERS = (Cause.REFUSED, Cause.FILTERED, Cause.UNROUTABLE, Cause.SILENT)
LOST = Answer("lost-peers", shape=LostPeerFacts)
_ASKED, _MOST = 2, 32  # nodes that try, and nodes that are tried
WHY_NOT = "other nodes are asked, or every node was reached"


def ask_lost_peers(cluster: Cluster, settings: Settings, left: float) -> Questions:
    """Ask the first nodes that were reached to connect to those that were not."""
    logins = {name: held.login for name, held in cluster.facts(LoginFacts).items()}
    lost = [name for name, login in logins.items() if login.cause in NOBODY_ANSWERS and not login.reached][:_MOST]
    peers: list[JsonValue] = [
        [name, host, logins[name].port or settings.port or 22] for name in lost for host in _hosts(name, logins[name])
    ]
    connected = [node.name for node in cluster.connected]
    asked = replace(LOST, arguments={"peers": peers}, timeout=max(1.0, min(10.0, left - 1.0)))
    nothing = NotAsked(LOST, WHY_NOT)
    return {name: (asked if lost and name in connected[:_ASKED] else nothing,) for name in connected}


def _hosts(name: str, login: Login) -> list[str]:
    """Return what another node may call it: its name, and the address that was tried from here."""
    return list(dict.fromkeys(filter(None, (name, login.address))))


def lost_peers(evidence: Evidence) -> LostPeerFacts | Absent:
    """Read the answer. Where there is none, the node was not asked in vain: nothing is judged by it alone."""
    if evidence.reply(LOST).status is not Status.OK:
        return Absent("it did not try the nodes that were not reached")
    answer: LostPeerFacts = answer_of(LOST, evidence)
    return answer


def greeted_by_peers(cluster: Cluster) -> dict[str, bool]:
    """Return the nodes that other nodes were asked about, and whether one of these was greeted."""
    found: dict[str, bool] = {}
    for facts in cluster.facts(LostPeerFacts).values():
        for node, greeted in facts.greeted.items():
            found[node] = found.get(node, False) or greeted
    return found


FACTS = (
    Fact(
        LostPeerFacts, (LOST,), lost_peers, ASKING_PEERS,
        needs=(LoginFacts,), questions=ask_lost_peers, exempt=exempt_without_peers,
    ),
)  # fmt: skip
