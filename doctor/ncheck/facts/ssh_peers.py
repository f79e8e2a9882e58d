"""ssh as a launcher would use it: from a node to other nodes, and from this machine to the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ncheck.decode import Maybe
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import ASKING_PEERS, ON_THIS_MACHINE, Fact, exempt_in_job, exempt_without_peers, trouble
from ncheck.facts.login import LoginFacts
from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Cause, Evidence, JsonValue, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.model.phase import NotAsked, Questions
from ncheck.network.ssh_edges import edges
from ncheck.ssh.failures import cause_of, main_line

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings


@dataclass(frozen=True)
class PeerSsh:
    """One connection: a command was run by ssh in batch mode. `target`: the other node; `cause`: None if the
    command ran there. `port`: that of ssh's -p, None without that option.
    """

    target: str
    cause: Cause | None
    detail: str = ""
    port: int | None = None


@dataclass(frozen=True)
class PeerSshFacts:
    """The connections that this node tried: to all others up to 16 nodes, else those that a launch may use."""

    peers: tuple[PeerSsh, ...]

    def among(self, names: frozenset[str]) -> PeerSshFacts:
        """Return the edges to these nodes."""
        return PeerSshFacts(tuple(peer for peer in self.peers if peer.target in names))


@dataclass(frozen=True)
class SshFromHereFacts:
    """How the ssh program of the machine that runs ncheck, on which the launch line is typed, logs in to this node.

    `tried` stands for all nodes with the same ssh configuration there: its target may be another of them. It is
    None where this node is that machine.
    """

    tried: PeerSsh | None


@dataclass(frozen=True)
class PeerAnswer:
    """One connection. `exit_status`: null if it did not end; `cut_short`: there was no time for it; `ran`: the command
    itself ran there (recordings of earlier releases do not say); `port`: what was asked.
    """

    exit_status: int | None
    stderr: str
    seconds: Maybe[float] = None
    cut_short: Maybe[bool] = None
    ran: Maybe[bool] = None
    port: Maybe[int] = None


@dataclass(frozen=True)
class PeersAnswer:
    """Each connection, by target."""

    peers: Mapping[str, PeerAnswer]


PEERS = Answer("ssh-peers", shape=PeersAnswer)
FROM_HERE = Answer("ssh-from-here", shape=PeersAnswer)  # this machine answers it
_OURS = 255  # ssh's own exit status; any other is that of the remote shell


def peers(evidence: Evidence) -> Read[PeerSshFacts]:
    """Read each connection. A node that was asked to try some and names none has told nothing."""
    reply = evidence.reply(PEERS)
    if reply.status is Status.MISSING:
        return Unread("no ssh program on this node")
    if why := trouble(PEERS, reply):
        return why
    edges = _edges(PEERS, evidence)
    return PeerSshFacts(edges) if edges else Unread("it tried no ssh to other nodes, although it was asked to")


def from_here(evidence: Evidence) -> Read[SshFromHereFacts]:
    """Read the connection from this machine. Absent if the launch line is typed elsewhere, or in an old recording."""
    reply = evidence.reply(FROM_HERE)
    if reply.status is Status.UNANSWERED and evidence.recorded:
        return Absent("the recording does not say how ssh works on the machine that ran ncheck")
    if reply.status is Status.MISSING:
        return Absent("no ssh program on this machine")
    if why := trouble(FROM_HERE, reply):
        return why
    return SshFromHereFacts(next(iter(_edges(FROM_HERE, evidence)), None))


def _edges(source: Answer, evidence: Evidence) -> tuple[PeerSsh, ...]:
    answer: PeersAnswer = answer_of(source, evidence, lambda *_: None)
    return tuple(_edge(target, one) for target, one in answer.peers.items())


def _edge(target: str, answer: PeerAnswer) -> PeerSsh:
    """Read one connection. Raises ValueError for a target that is not a hostname: it becomes part of a command."""
    status, stderr = answer.exit_status, answer.stderr
    edge = _success(target, answer.port)
    if status == 0 and answer.ran is not False:
        return edge
    if status == 0:
        return replace(edge, cause=Cause.NO_SHELL, detail=_NOT_RUN)
    if answer.cut_short:
        return replace(edge, cause=Cause.DEADLINE, detail="no time left to try it")
    detail = main_line(stderr) or _silent(status, answer.seconds)
    return replace(edge, cause=_cause(status, stderr), detail=detail)


@lru_cache(maxsize=4096)  # many nodes reach the same ones
def _success(target: str, port: int | None) -> PeerSsh:
    if not (is_name(target) or is_v6(target)):
        raise ValueError(f"{quoted(target)} is not a hostname")
    return PeerSsh(target, None, port=port)


_NOT_RUN = (
    "ssh ended with exit status 0 but ran no command there: a start-up file (exec, newgrp) or ForceCommand replaces it"
)


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


def launch_origin(cluster: Cluster) -> int | None:
    """Return the position of the node where a launch line is typed; None if it is typed on another machine, this one.

    Where nothing is known of that, it is assumed to be the first node.
    """
    here = cluster.facts(SshFromHereFacts)
    own = (number for number, name in enumerate(cluster.names) if name in here and here[name].tried is None)
    return next(own, None if here else 0)


def exempt_peers(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Return the nodes from which no launch opens ssh, wherever it begins, each with the reason."""
    found = edges(len(cluster), settings.mesh, 0).keys() | edges(len(cluster), settings.mesh, None).keys()
    others = (node.name for number, node in enumerate(cluster.nodes) if number not in found)
    all_exempt = exempt_in_job(cluster, settings) or exempt_without_peers(cluster, settings)
    return all_exempt or dict.fromkeys(others, "no launch opens ssh from here")


def ask_peers(cluster: Cluster, settings: Settings, left: float) -> Questions:
    """Ask each node to ssh to those nodes that a launch would start from it, if they are reachable."""
    standing = {node.name for node in cluster.connected}
    questions: Questions = {}
    for number, others in edges(len(cluster), settings.mesh, launch_origin(cluster)).items():
        ends = [cluster.nodes[other] for other in others]
        targets = [_peer(end, settings) for end in ends if end.name in standing]
        questions[cluster.nodes[number].name] = (_question(targets, settings.connect_timeout, left),)
    return questions


def _question(targets: list[JsonValue], connect_timeout: float, left: float) -> Answer | NotAsked:
    if not targets:
        return NotAsked(PEERS, "no ssh to other nodes to test from here: none of them is reachable")
    each = min(connect_timeout, max(_LEAST_FOR_A_PEER, left / (1 + len(targets) // 6)))
    asked: JsonValue = {"peers": targets, "timeout": each}
    return replace(PEERS, arguments=asked, timeout=max(1.0, left - 1.0))


def _peer(node: Node, settings: Settings) -> JsonValue:
    """Return how to reach a node, as the inventory lists it."""
    return {"target": node.name, "host": node.name, "port": node.port or settings.port,
            "user": node.user or settings.user}  # fmt: skip


FACTS = (
    Fact(PeerSshFacts, (PEERS,), peers, ASKING_PEERS, needs=(LoginFacts,), questions=ask_peers, exempt=exempt_peers),
    Fact(SshFromHereFacts, (FROM_HERE,), from_here, ON_THIS_MACHINE),
)
