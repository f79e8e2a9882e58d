"""The rates of reading, from the answer to the fact; and who is asked, when, and what for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.login import LoginFacts
from ncheck.facts.storage_probe import FACTS, STORAGE_PROBE, DataRates, Rates, StorageProbeFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.settings import RunContext, Settings

Answered = Callable[[Mapping[Any, Reply]], Evidence]

READING: dict[str, JsonValue] = {
    "error": "", "entries": 100, "listed": 0.5, "small_files": 30, "small_seconds": 2.0, "large_bytes": 1 << 30,
    "large_seconds": 2.0, "direct": True,
}  # fmt: skip


def read(answered: Answered, alone: JsonValue, together: JsonValue) -> object:
    value: JsonValue = {"readings": [{"path": "/data", "alone": alone, "together": together}]}
    reply = Reply(Status.OK, value=value)
    return facts_of(answered({STORAGE_PROBE: reply}), [StorageProbeFacts])[StorageProbeFacts]


def test_amounts_become_rates_and_too_little_becomes_none(answered: Answered) -> None:
    few = {**READING, "entries": 3, "small_files": 0, "large_bytes": 1 << 20, "large_seconds": 0.0, "direct": False}
    assert read(answered, READING, few) == StorageProbeFacts(
        (DataRates("/data", Rates(2**29, 15.0, 200.0, direct=True), Rates()),)
    )


def test_what_did_not_end_or_failed_is_unread(answered: Answered) -> None:
    assert read(answered, None, {"error": "No such file or directory"}) == StorageProbeFacts(
        (DataRates("/data", Unread("reading did not end in time"), Unread("No such file or directory")),)
    )


@pytest.mark.parametrize("wrong", [{"entries": -1}, {"large_bytes": "x"}, {"listed": -0.5}, {"direct": 1}])
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, {**READING, **wrong}, READING), Unread)


def test_where_nobody_asked_it_is_absent(answered: Answered) -> None:
    reply = Reply(Status.NOT_ASKED, "no --storage-probe")
    assert isinstance(facts_of(answered({STORAGE_PROBE: reply}), [StorageProbeFacts])[StorageProbeFacts], Absent)


(FACT,) = FACTS
LOGIN: Facts = {LoginFacts: LoginFacts(Login(reached=True))}


def test_only_who_asks_for_it_gets_it() -> None:
    assert FACT.exempt
    cluster = Cluster((Node("n1"),), {"n1": {}})
    assert FACT.exempt(cluster, Settings(data=("/data",))) == {"n1": "no --storage-probe"}
    assert FACT.exempt(cluster, Settings(storage_probe=True)) == {"n1": "there is nothing to read: name it with --data"}
    assert FACT.exempt(cluster, Settings(storage_probe=True, run=RunContext(started_in="/home/me"))) == {}


def test_each_node_has_a_turn_and_all_begin_the_second_reading_together() -> None:
    assert FACT.questions
    names = [f"n{number:02}" for number in range(20)]
    cluster = Cluster(tuple(map(Node, names)), dict.fromkeys(names, LOGIN))
    asked = FACT.questions(cluster, Settings(storage_probe=True, data=("/data",)), 30.0)
    arguments = [asked[name][0].arguments for name in names]  # type: ignore[union-attr]
    assert [one["turn"] for one in arguments] == [number % 8 for number in range(20)]  # type: ignore[call-overload, index]
    assert {(one["turns"], one["unit"]) for one in arguments} == {(8, 1.0)}  # type: ignore[call-overload, index]
    assert {asked[name][0].timeout for name in names} == {13.0}  # type: ignore[union-attr]


def test_without_time_it_is_a_failure_that_says_what_to_type() -> None:
    assert FACT.questions
    cluster = Cluster((Node("n1"),), {"n1": LOGIN})
    (question,) = FACT.questions(cluster, Settings(storage_probe=True, data=("/data",)), 4.2)["n1"]
    assert question == NotAsked(STORAGE_PROBE, "there was no time left for it: give a longer --deadline", failed=True)
