"""Real agents on this machine, each a process of its own: what one opens, another can connect to over loopback."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ncheck.agent.answers import module_of
from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.session import Known, Request, Session, SessionTerms
from ncheck.model.evidence import Answer, JsonValue, Reply
from ncheck.model.node import Node


class Agent:
    """A real agent on this machine."""

    def __init__(self, **environment: JsonValue) -> None:
        self.known = Known(Node("here"))
        wanted = SessionTerms(
            os.urandom(8).hex(), time.monotonic() + 900, connect_timeout=60.0, command_timeout=60.0,
            environment=environment,
        )  # fmt: skip
        self.session = Session(LocalEngine().connect(self.known.node, 60.0), self.known, wanted, module_text)
        self.session.greet(time.monotonic())
        self.session.start()

    def ask(self, source: Answer) -> Reply:
        assert module_of(source.name).answer
        self.session.collect(Request((source,)))
        return self.known.replies[source.key]

    def bye(self) -> None:
        self.session.bye()


def at_once(agents: Sequence[Agent], sources: Sequence[Answer]) -> list[Reply]:
    """Ask each agent its question, all at the same time."""
    with ThreadPoolExecutor(len(agents)) as pool:
        return list(pool.map(Agent.ask, agents, sources))
