"""Evidence by hand, for the readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from ncheck.model.evidence import Evidence, Login, Reply, Source

Answered = Callable[[Mapping[Source, Reply]], Evidence]


@pytest.fixture
def answered() -> Answered:
    """Return a function that makes a reached node's evidence of what each source answered; others were never asked."""

    def made(replies: Mapping[Source, Reply]) -> Evidence:
        return Evidence("node01", Login(reached=True), replies={source.key: reply for source, reply in replies.items()})

    return made
