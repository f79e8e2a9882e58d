"""Both looks at the error counters, who is asked for the second one, and what is no port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.error_counters import (
    FIRST,
    LATER,
    Counted,
    ErrorCountersFacts,
    LaterErrorCountersFacts,
    ask_again,
)
from ncheck.facts.learning import facts_of
from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Unread
from ncheck.model.phase import NotAsked
from ncheck.settings import Settings

Answered = Callable[[Mapping[Any, Reply]], Evidence]

LINK: JsonValue = {"read": 18, "errors": {"link_downed": 1}, "sent": 4, "received": None}


def read(answered: Answered, name: str) -> tuple[object, object]:
    value: JsonValue = {"at": 10.5, "ports": {name: LINK}}
    reply = Reply(Status.OK, value=value)
    facts = facts_of(answered({FIRST: reply, LATER: reply}), [ErrorCountersFacts, LaterErrorCountersFacts])
    return facts[ErrorCountersFacts], facts[LaterErrorCountersFacts]


@pytest.mark.parametrize("name", ["mlx5_0:1", "eth0"])
def test_both_looks_are_read_alike(answered: Answered, name: str) -> None:
    counted = {name: Counted(18, {"link_downed": 1}, 4, None)}
    assert read(answered, name) == (ErrorCountersFacts(10.5, counted), LaterErrorCountersFacts(10.5, counted))


@pytest.mark.parametrize("name", ["-x", "mlx5_0:$(id)", "a/b", "mlx5_0:1:2", ""])
def test_what_is_no_port_is_unread(answered: Answered, name: str) -> None:
    assert [type(one) for one in read(answered, name)] == [Unread, Unread]


def test_who_answered_at_the_beginning_is_asked_again_and_the_others_are_not() -> None:
    login = LoginFacts(Login(reached=True))
    first = ErrorCountersFacts(1.0, {"eth0": Counted(3, {})})
    cluster = Cluster.of(
        {
            "a": {LoginFacts: login, ErrorCountersFacts: first},
            "b": {LoginFacts: login, ErrorCountersFacts: ErrorCountersFacts(1.0, {})},
            "c": {LoginFacts: LoginFacts(Login(reached=False)), ErrorCountersFacts: Unread("not reached")},
        }
    )
    assert ask_again(cluster, Settings(), 1.0) == {
        "a": (LATER,),
        "b": (NotAsked(LATER, "no InfiniBand or RoCE port, and no network card"),),
    }
