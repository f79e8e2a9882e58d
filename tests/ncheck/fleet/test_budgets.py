"""What a node may be sent, and start, in counts that a busy machine does not change. Who needs more says why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from ncheck.agent import commands, long_lived_child, warm_interpreter
from ncheck.agent.commands import start
from ncheck.agent.sources import Sources
from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.engine import Engine
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.framing import on_the_wire
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer, Command, File, Source, Tree
from ncheck.model.node import Node
from ncheck.observer import Silent
from ncheck.pipeline import examine
from ncheck.settings import Settings
from ncheck.steps.phases import collection_phases, wanted_facts
from ncheck.steps.registry import load_checks

MORE = 1.05  # what a count may grow by unnoticed

# Bytes to a node in a whole run: nearly all of them are the agent, packed.
SENT, SENT_FOR_LOGINS = 86_000, 436

# For what every node is asked first: programs that the agent starts, or would where they exist, and forks of its own.
PROGRAMS, FORKS = 26, 2


class Counting(LocalEngine):
    """This machine, as a node that another one reaches; the bytes that are sent to it are counted."""

    name = "counting"

    def __init__(self) -> None:
        self.sent = 0

    def connect(self, node: Node, timeout: float) -> Any:
        stream: Any = super().connect(node, timeout)
        send = stream.send

        def counted(data: bytes, timeout: float) -> None:
            self.sent += len(data)
            send(data, timeout)

        stream.send = counted
        return stream


def sent(*select: str) -> int:
    """Return the bytes that one node is sent in a whole run."""
    engine = Counting()
    nodes = (Node("here"),)

    def engine_for(_: Node) -> Engine:
        return engine

    examine(Settings(select=select, probe="none"), Silent(), listed=nodes, engine_for=engine_for)
    return engine.sent


@pytest.mark.slow
def test_a_node_is_sent_no_more_bytes_than_before() -> None:
    assert sent("NC1") <= SENT_FOR_LOGINS * MORE
    assert sent() <= SENT * MORE


def first_questions() -> list[Source]:
    """Return what every node is asked first, in a whole run of two nodes."""
    settings = Settings()
    cluster = Cluster((Node("a"), Node("b")), {})
    registry = load_checks()
    wanted = wanted_facts(registry.facts(registry.listed), settings)
    phase = collection_phases(cluster, wanted, settings)[0]
    assert phase.questions
    asked = phase.questions(cluster, 60.0)["b"]
    return [one for one in asked if isinstance(one, (Answer, Command, File, Tree)) and one != Answer("clock")]


def test_a_node_starts_no_more_processes_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Counter[str]()

    def counted(name: str, real: Callable[..., Any], *words: Any, **more: Any) -> Any:
        started[name] += 1
        return real(*words, **more)

    sources = Sources()
    sources.start({"environment": {}})
    for module in (commands, long_lived_child, warm_interpreter):
        monkeypatch.setattr(module, "start", partial(counted, "programs", start))
    monkeypatch.setattr(os, "fork", partial(counted, "forks", os.fork))
    for source in first_questions():
        sources.respond(on_the_wire(source), module_text)
    sources.end()
    assert started["programs"] <= PROGRAMS * MORE
    assert started["forks"] <= FORKS * MORE
