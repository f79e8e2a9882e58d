"""What nodes say of their links: read as it is, and refused where no agent of ours can have said it."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.links import (
    CONNECT,
    LISTEN,
    Burst,
    Link,
    LinkCause,
    LinkFacts,
    ListenFacts,
    Loss,
    PortState,
    Reach,
    Sample,
)
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent, Unread

PORT = {"port": 29500, "assumed": True, "free": False, "taken_by": "python3 (pid 4711) of ada", "error": ""}
LISTENING: dict[str, Any] = {"ports": {"10.0.0.1": 41000}, "failed": {"fd00::1": "gone"}, "needed": [PORT]}
REACH = {"subnet": "10.0.0.0/24", "source": "10.0.0.1", "tried": 3, "reached": 2}
BROKEN = {
    "source": "10.0.0.1", "target": "gpu03", "address": "10.0.0.3", "subnet": "", "cause": "large-lost",
    "detail": "words", "port": 0,
}  # fmt: skip
LINKS: dict[str, Any] = {
    "reaches": [REACH], "broken": [BROKEN], "tried": ["gpu02", "gpu03"], "lossy": [], "late": [], "counted": True,
}  # fmt: skip


def read(fact: type, reply: Reply) -> object:
    replies = {(LISTEN if fact is ListenFacts else CONNECT).key: reply}
    return facts_of(Evidence("gpu01", Login(reached=True), replies=replies), [fact])[fact]


def said(fact: type, value: Any) -> object:
    return read(fact, Reply(Status.OK, value=value))


def test_where_a_node_listens_is_read_with_the_ports_of_the_job() -> None:
    assert said(ListenFacts, LISTENING) == ListenFacts(
        {"10.0.0.1": 41000},
        {"fd00::1": "gone"},
        (PortState(29500, free=False, taken_by="python3 (pid 4711) of ada", assumed=True),),
    )


def test_links_are_read_with_what_is_wrong_with_them() -> None:
    assert said(LinkFacts, LINKS) == LinkFacts(
        (Reach("10.0.0.0/24", "10.0.0.1", 3, 2),),
        (Link("10.0.0.1", "gpu03", "10.0.0.3", "", LinkCause.LARGE_LOST, "words"),),
        frozenset({"gpu02", "gpu03"}),
    )


def test_what_a_node_of_many_was_to_dial_is_what_this_machine_keeps_and_not_what_the_node_says() -> None:
    kept: dict[str, Any] = {"10.0.0.0/24": ["gpu02", "gpu03"], "": ["gpu09"]}
    found = read(LinkFacts, Reply(Status.OK, value=LINKS, asked=kept))
    assert isinstance(found, LinkFacts)
    assert found.samples == (
        Sample("10.0.0.0/24", frozenset({"gpu02", "gpu03"})), Sample("", frozenset({"gpu09"})),
    )  # fmt: skip
    assert (found.sample(""), found.sample("10.9.0.0/24")) == (frozenset({"gpu09"}), None)
    assert found.among(frozenset({"gpu03"})).samples == (
        Sample("10.0.0.0/24", frozenset({"gpu03"})), Sample("", frozenset()),
    )  # fmt: skip


def test_lost_packets_and_late_connections_are_read() -> None:
    ends = {"source": "10.0.0.1", "target": "gpu03", "address": "10.0.0.3", "subnet": "10.0.0.0/24"}
    lossy, late = (
        {**ends, "there": [9, 181], "back": [0, 190], "alone": True},
        {**ends, "begun": 10, "late": 8, "lost": 7},
    )
    found = said(LinkFacts, {**LINKS, "lossy": [lossy], "late": [late]})
    assert isinstance(found, LinkFacts)
    assert found.losses == (Loss("10.0.0.1", "gpu03", "10.0.0.3", "10.0.0.0/24", 9, 181, 0, 190, alone=True),)
    assert found.bursts == (Burst("10.0.0.1", "gpu03", "10.0.0.3", "10.0.0.0/24", 10, 8, 7),)
    without = found.among(frozenset({"gpu02"}))
    assert (without.losses, without.bursts) == ((), ())
    wrongs: tuple[dict[str, Any], ...] = (
        {"lossy": [{**lossy, "there": [182, 181]}]}, {"lossy": [{**lossy, "back": [1]}]}, {"lossy": {}},
        {"lossy": [{**lossy, "target": "$(reboot)"}]}, {"late": [{**late, "late": 11}]},
        {"late": [{**late, "lost": 9}]},
    )  # fmt: skip
    for wrong in wrongs:
        assert isinstance(said(LinkFacts, {**LINKS, **wrong}), Unread)


@pytest.mark.parametrize("wrong", [
    None, [], "x", 7, {},
    {**LISTENING, "ports": {"10.0.0.1; rm -rf /": 4}}, {**LISTENING, "ports": {"10.0.0.1": 65536}},
    {**LISTENING, "ports": {"10.0.0.1": "22"}}, {**LISTENING, "ports": {"10.0.0.1": 0}},
    {**LISTENING, "failed": []}, {**LISTENING, "failed": {"10.0.0.1": 7}},
    {**LISTENING, "needed": [{**PORT, "free": 1}]}, {**LISTENING, "needed": [{**PORT, "port": -1}]},
    {**LISTENING, "needed": [{**PORT, "taken_by": None}]}, {**LISTENING, "needed": [PORT] * 2000},
    {**LISTENING, "ports": {"fe80::1%$(reboot)": 4}},
])  # fmt: skip
def test_what_no_listener_says_is_no_fact(wrong: object) -> None:
    assert isinstance(said(ListenFacts, wrong), Unread)


@pytest.mark.parametrize("wrong", [
    None, [], "x", 7, {},
    {**LINKS, "reaches": [{**REACH, "reached": 4}]}, {**LINKS, "reaches": [{**REACH, "tried": True}]},
    {**LINKS, "reaches": [{**REACH, "source": "$(id)"}]}, {**LINKS, "reaches": [{**REACH, "subnet": "all"}]},
    {**LINKS, "broken": [{**BROKEN, "cause": "tired"}]}, {**LINKS, "broken": [{**BROKEN, "target": "-oLog=x"}]},
    {**LINKS, "broken": [{**BROKEN, "address": "fe80::1%;x"}]},
    {**LINKS, "broken": [{**BROKEN, "source": "gpu01"}]}, {**LINKS, "broken": [{**BROKEN, "port": 70000}]},
    {**LINKS, "broken": [BROKEN] * 4097}, {**LINKS, "reaches": [REACH] * 4097},
    {**LINKS, "tried": "gpu02"}, {**LINKS, "tried": ["a b"]},
])  # fmt: skip
def test_what_no_agent_says_of_its_links_is_no_fact(wrong: object) -> None:
    assert isinstance(said(LinkFacts, wrong), Unread)


def test_long_words_are_cut() -> None:
    found = said(LinkFacts, {**LINKS, "broken": [{**BROKEN, "detail": "x" * 5000}]})
    assert isinstance(found, LinkFacts)
    assert len(found.broken[0].detail) == 400


@pytest.mark.parametrize("fact", [ListenFacts, LinkFacts])
def test_only_what_was_not_asked_is_absent(fact: type) -> None:
    assert read(fact, Reply(Status.NOT_ASKED, "one node alone has no peers")) == Absent("one node alone has no peers")
    for status in (Status.MISSING, Status.FAILED, Status.TIMEOUT, Status.DENIED, Status.UNANSWERED):
        assert isinstance(read(fact, Reply(status)), Unread)
