"""A node to talk to: this machine under /bin/sh, by the real transport, session and agent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import pytest

from doctor.model.evidence import Evidence, JsonValue, Source
from doctor.model.node import Node
from doctor.transport.local import LocalTransport
from doctor.transport.modules import module_text
from doctor.transport.session import Known, Session, SessionEndedError, Wanted

Ask = Callable[..., Evidence]


@pytest.fixture
def ask() -> Ask:
    """Return a function that asks this machine for sources, and returns all that came of it."""

    def asked(
        *sources: Source,
        seconds: float = 20.0,
        enter: str | None = None,
        environment: dict[str, JsonValue] | None = None,
    ) -> Evidence:
        return talk(sources, Wanted(
            sources, os.urandom(8).hex(), time.monotonic() + seconds,
            connect_timeout=min(10.0, seconds), enter=enter, environment=environment or {},
        ))  # fmt: skip

    return asked


def talk(sources: Sequence[Source], wanted: Wanted) -> Evidence:
    """Go through one session from beginning to end."""
    known = Known(Node("here"))
    session = Session(LocalTransport().connect(known.node, 5.0), known, wanted, module_text)
    try:
        session.greet(time.monotonic())
        if wanted.agent:
            session.start()
            session.collect(sources)
    except SessionEndedError as error:
        known.fail(error.cause, error.detail)
    finally:
        session.bye()
    return known.evidence()
