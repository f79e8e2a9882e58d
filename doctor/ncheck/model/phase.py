"""One act of a run: which nodes are asked at once, what, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ncheck.model.evidence import Reply, Source


@dataclass(frozen=True)
class NotAsked:
    """A source that one node is spared, and why: there is nothing that it could tell."""

    source: Source
    reason: str


@dataclass(frozen=True)
class Told:
    """What the head itself found out about a source of one node: a program that ran here told it."""

    source: Source
    reply: Reply


Questions = dict[str, tuple[Source | NotAsked | Told, ...]]  # by the node's name


@dataclass(frozen=True)
class Act:
    """What nodes are asked at once, after all of them have answered what came before.

    `nodes` may be asked, by name: their connections stay open for it. `ask` is called when the act begins, with the
    seconds that are left for it, and returns the sources of each node that is asked; it sees what was yielded so far.
    `until` is the part of the run's deadline after which the next act waits no longer for nodes that are still busy:
    they go on with theirs, and have no part in what follows. An act with `seconds` has that long from its beginning,
    beyond the deadline, and waits for the nodes that it asks alone.
    """

    stage: str
    nodes: frozenset[str]
    ask: Callable[[float], Questions]
    until: float = 1.0
    seconds: float | None = None
