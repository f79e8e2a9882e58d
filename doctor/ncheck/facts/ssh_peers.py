"""ssh from a node to other nodes, as a launcher would use it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import ASKING_PEERS, Fact, exempt_without_peers, trouble
from ncheck.facts.login import LoginFacts
from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.model.evidence import Answer, Cause, Evidence, JsonValue, Status
from ncheck.model.fact import Read, Unread
from ncheck.model.phase import NotAsked, Questions
from ncheck.network.ssh_edges import edges
from ncheck.ssh.failures import cause_of, main_line

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings


@dataclass(frozen=True)
class PeerSsh:
    """One connection: this node ran `ssh target true` in batch mode. `cause` is None if it worked."""

    target: str
    cause: Cause | None
    detail: str = ""


@dataclass(frozen=True)
class PeerSshFacts:
    """The connections that this node tried: to all others up to 16 nodes, else those of Open MPI's launch tree."""

    peers: tuple[PeerSsh, ...]

    def among(self, names: frozenset[str]) -> PeerSshFacts:
        """Return the edges to these nodes."""
        return PeerSshFacts(tuple(peer for peer in self.peers if peer.target in names))


class PeerAnswer(TypedDict):
    """One connection. `exit_status`: null if it did not end; `cut_short`: there was no time for it."""

    exit_status: int | None
    stderr: str
    seconds: float | None
    cut_short: bool | None


class PeersAnswer(TypedDict):
    """Each connection, by target."""

    peers: dict[str, PeerAnswer]


PEERS = Answer("ssh-peers", shape=PeersAnswer)


_OURS = 255  # ssh's own exit status; any other is that of the remote shell


def peers(evidence: Evidence) -> Read[PeerSshFacts]:
    """Read each connection. A node that was asked to try some and names none has told nothing."""
    reply = evidence.reply(PEERS)
    if reply.status is Status.MISSING:
        return Unread("no ssh program on this node")
    if why := trouble(PEERS, reply):
        return why
    said = cast("PeersAnswer", reply.value)["peers"]
    if not said:
        return Unread("it tried no ssh to other nodes, although it was asked to")
    return PeerSshFacts(tuple(_edge(target, answer) for target, answer in said.items()))


def _edge(target: str, answer: PeerAnswer) -> PeerSsh:
    """Read one connection. Raises ValueError for a target that is not a hostname: it becomes part of a command."""
    if not (is_name(target) or is_v6(target)):
        raise ValueError(f"{quoted(target)} is not a hostname")
    status, stderr = answer["exit_status"], answer["stderr"]
    if status == 0:
        return PeerSsh(target, None)
    if answer.get("cut_short"):
        return PeerSsh(target, Cause.DEADLINE, "no time left to try it")
    return PeerSsh(target, _cause(status, stderr), main_line(stderr) or _silent(status, answer.get("seconds")))


def _cause(status: int | None, stderr: str) -> Cause:
    named = cause_of(stderr)
    known = Cause(named.value) if named else None
    if status is None:
        return known or Cause.STALLED
    return known or (Cause.CLOSED if status == _OURS else Cause.NO_SHELL)


def _silent(status: int | None, seconds: float | None) -> str:
    if status is None:
        return "it was not tried" if seconds is None else f"ssh did not end within {seconds:.0f} s"
    return f"ssh ended with exit status {status} and no message"


_LEAST_FOR_A_PEER = 3.0  # seconds for one login from node to node, if there are many


def exempt_peers(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Return the nodes from which no launch opens ssh, each with the reason."""
    found = edges(len(cluster), settings.mesh)
    others = (node.name for number, node in enumerate(cluster.nodes) if number not in found)
    return exempt_without_peers(cluster, settings) or dict.fromkeys(others, "no launch opens ssh from here")


def ask_peers(cluster: Cluster, settings: Settings, left: float) -> Questions:
    """Ask each node to ssh to those nodes that a launch would start from it, if they are reachable."""
    standing = {node.name for node in cluster.connected}
    questions: Questions = {}
    for number, others in edges(len(cluster), settings.mesh).items():
        ends = [cluster.nodes[other] for other in others]
        targets = [_peer(end, settings) for end in ends if end.name in standing]
        questions[cluster.nodes[number].name] = (_question(targets, settings, left),)
    return questions


def _question(targets: list[JsonValue], settings: Settings, left: float) -> Answer | NotAsked:
    if not targets:
        return NotAsked(PEERS, "no ssh to other nodes to test from here: none of them is reachable")
    each = min(settings.connect_timeout, max(_LEAST_FOR_A_PEER, left / (1 + len(targets) // 6)))
    asked: JsonValue = {"peers": targets, "timeout": each}
    return replace(PEERS, arguments=asked, timeout=max(1.0, left - 1.0))


def _peer(node: Node, settings: Settings) -> JsonValue:
    """Return how to reach a node, as the inventory lists it."""
    return {"target": node.name, "host": node.name, "port": node.port or settings.port,
            "user": node.user or settings.user}  # fmt: skip


FACTS = (
    Fact(PeerSshFacts, (PEERS,), peers, ASKING_PEERS, needs=(LoginFacts,), questions=ask_peers, exempt=exempt_peers),
)
