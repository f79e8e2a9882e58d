"""Jobs whose sockets are made by hand: one network, node0 has 10.0.0.1, node1 10.0.0.2 and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign
from ncheck.triage.facts.sockets import NetworkPlace, Socket, SocketLook, SocketsFacts

SPACE = "net:[1]"


def ip(node: str) -> str:
    return f"10.0.0.{int(node.removeprefix('node')) + 1}"


def pair(job: Job) -> tuple[RankProcess, RankProcess]:
    """Return the first two ranks."""
    return job.ranks[0], job.ranks[1]


def place(node: str, **words: Any) -> NetworkPlace:
    return replace(NetworkPlace({"127.0.0.1": "lo", ip(node): "eth0"}, ("lo", "eth0")), **words)


def both(state: str, **words: Any) -> tuple[SocketLook, SocketLook]:
    """Return two looks that see the same."""
    return SocketLook(state, **words), SocketLook(state, **words)


def listens(one: RankProcess, port: int, at: str = "0.0.0.0", backlog: int = 0) -> tuple[RankProcess, Socket]:  # noqa: S104
    return one, Socket(one.pid, SPACE, at, port, "0.0.0.0", 0, *both("LISTEN", unread=backlog))  # noqa: S104


def dials(one: RankProcess, to: str, port: int, source: str = "") -> tuple[RankProcess, Socket]:
    """Return a socket that waits for an answer at both looks."""
    return one, Socket(one.pid, SPACE, source or ip(one.node), 40000, to, port, *both("SYN-SENT", sent=1))


COUNTED = {"acknowledged": 1000, "received": 1000, "resent": 0}


def connected(
    one: RankProcess, other: RankProcess, near: Mapping[str, Any] | None = None, far: Mapping[str, Any] | None = None,
    port: int = 30000,
) -> tuple[tuple[RankProcess, Socket], tuple[RankProcess, Socket]]:  # fmt: skip
    """Return both ends of a connection that carries nothing; `near` and `far` are what the last look saw."""
    own, to = (ip(one.node), 50000 + one.pid), (ip(other.node), port + other.pid)
    first = SocketLook("ESTABLISHED", **COUNTED)
    return (
        (one, Socket(one.pid, SPACE, *own, *to, first, replace(first, **(near or {})))),
        (other, Socket(other.pid, SPACE, *to, *own, first, replace(first, **(far or {})))),
    )


def cluster(job: Job, *sockets: tuple[RankProcess, Socket], **places: NetworkPlace) -> Cluster:
    """Return the cluster whose ranks have these sockets and no others."""
    return Cluster.of({node: {SocketsFacts: facts(job, node, *sockets, **places)} for node in job.nodes})


def facts(job: Job, node: str, *sockets: tuple[RankProcess, Socket], **places: NetworkPlace) -> SocketsFacts:
    held = {
        one.pid: tuple(it for who, it in sockets if who.pid == one.pid and who.node == node) for one in job.on(node)
    }
    return SocketsFacts(held, {SPACE: places.get(node, place(node))}, SPACE)


def named(signs: list[Sign]) -> list[tuple[str, Grade, tuple[int, ...], tuple[str, ...]]]:
    """Return what clues say, without those of a mere consequence."""
    clues = (one for one in signs if isinstance(one, Clue) and one.grade > Grade.ECHO)
    return [(one.cause, one.grade, one.ranks, one.nodes) for one in clues]
