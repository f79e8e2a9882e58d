"""Where RAS is asked, and what its answers become."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.model.job import Process, Target
from ncheck.settings import RunContext, Settings
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.ras import FACTS, RAS, SPARED, LoadedNccl, RasFacts, RasNamesFacts
from ncheck.triage.parse.nccl_ras import RasStatus

from tests.standins.nccl_ras import answer, comm

WORLD = comm(0xFA93, 2, ("10.0.0.1",))
TEXT = answer([WORLD], "2.30.7")
RANK = {"pid": 4000, "path": "/opt/libnccl.so.2", "version": "2.30.7+cuda13.0", "error": ""}


def said(**words: Any) -> dict[str, Any]:
    return {"at": 0.0, "text": TEXT, "whole": True, "silent": 0, "error": "", **words}


def evidence(*asked: dict[str, Any], ranks: tuple[dict[str, Any], ...] = (RANK,)) -> Evidence:
    value: Any = {"ranks": list(ranks), "addresses": ["10.0.0.1", "127.0.0.1"], "asked": list(asked)}
    return Evidence("gpu01", Login(reached=True), replies={RAS.key: Reply(Status.OK, value=value)})


def read(*asked: dict[str, Any], **words: Any) -> object:
    return facts_of(evidence(*asked, **words), (RasFacts,))[RasFacts]


def test_both_answers_are_kept_in_their_order() -> None:
    facts = read(said(), said(at=10.0, silent=2))
    assert isinstance(facts, RasFacts)
    assert [(one.seconds, one.silent) for one in facts.asked] == [(0.0, 0), (10.0, 2)]
    assert all(isinstance(one.status, RasStatus) for one in facts.asked)


def test_one_answer_of_two_is_better_than_none() -> None:
    facts = read(said(error="Connection refused"), said(at=10.0))
    assert isinstance(facts, RasFacts)
    assert facts.asked[0].status == Unread("Connection refused")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (said(error="Connection refused"), "Connection refused"),
        (said(text="hello"), "not an answer of NCCL's RAS"),
        (said(text="", whole=False), "not an answer of NCCL's RAS"),
    ],
)
def test_no_answer_says_why(asked: dict[str, Any], reason: str) -> None:
    assert read(asked, asked) == Unread(reason)


def test_a_node_that_was_not_asked_and_one_without_nccl_have_none() -> None:
    assert isinstance(read(), Absent)
    gone = {"pid": 4000, "path": "", "version": "", "error": ""}
    assert read(said(error="no rank here has loaded NCCL"), ranks=(gone,)) == Absent("no rank here has loaded NCCL")
    denied = {**gone, "error": "Permission denied"}
    why = "the libraries of the ranks cannot be read: Permission denied"
    assert read(said(error=why, text=""), ranks=(denied,)) == Unread(why)


def test_text_whose_end_did_not_come_is_not_whole() -> None:
    facts = read(said(text=answer([WORLD], "2.26.2"), whole=False))
    assert isinstance(facts, RasFacts)
    assert isinstance(facts.asked[0].status, RasStatus)
    assert not facts.asked[0].status.whole


def test_what_the_names_mean_here() -> None:
    other = {"pid": 4001, "path": "", "version": "", "error": "gone"}
    facts = facts_of(evidence(ranks=(RANK, other)), (RasNamesFacts,))[RasNamesFacts]
    assert isinstance(facts, RasNamesFacts)
    assert facts.addresses == ("10.0.0.1", "127.0.0.1")
    assert facts.of(4000) == LoadedNccl("/opt/libnccl.so.2", "2.30.7+cuda13.0")
    assert (facts.of(4001), facts.of(1)) == (Unread("gone"), None)


def running(nodes: int, **variables: str) -> Cluster:
    """Return nodes with two ranks each."""
    known: dict[str, Any] = {}
    for node in range(nodes):
        processes = tuple(
            Process(
                4000 + rank, 1, 70000 + rank, name="python3", argv=("python3", "train.py"), inner_pid=4000 + rank,
                variables={"RANK": str(rank), "WORLD_SIZE": str(2 * nodes), "LOCAL_RANK": str(rank % 2),
                           "MASTER_ADDR": "gpu0", "MASTER_PORT": "29500", **variables},
            )
            for rank in (2 * node, 2 * node + 1)
        )  # fmt: skip
        known[f"gpu{node}"] = {ProcessesFacts: ProcessesFacts(processes, {})}
    return Cluster.of(known)


def asked_at(cluster: Cluster, target: Target | None = None) -> dict[str, Any]:
    make = FACTS[0].questions
    assert make
    questions = make(cluster, Settings(run=RunContext(target=target)), 30.0)
    found: dict[str, Any] = {name: sources[0].arguments for name, sources in questions.items()}  # type: ignore[union-attr]
    return found


def test_three_nodes_are_asked_and_all_name_their_addresses() -> None:
    questions = asked_at(running(7))
    assert {name: one["at"] for name, one in questions.items() if one["at"]} == dict.fromkeys(
        ("gpu0", "gpu3", "gpu6"), "localhost:28028"
    )
    assert len(questions) == 7
    assert [one["rank"] for one in questions["gpu3"]["ranks"]] == [6, 7]
    assert questions["gpu0"]["spare"] == SPARED


def test_the_address_is_that_of_the_ranks() -> None:
    assert asked_at(running(1, NCCL_RAS_ADDR="[::1]:4711"))["gpu0"]["at"] == "[::1]:4711"
    assert asked_at(running(1, NCCL_RAS_ADDR="nonsense"))["gpu0"]["at"] == "localhost:28028"


def test_ranks_without_ras_are_not_asked() -> None:
    assert asked_at(running(2, NCCL_RAS_ENABLE="0"))["gpu0"]["at"] is None


def test_no_release_is_spared_on_request() -> None:
    assert asked_at(running(1), Target(ras=True))["gpu0"]["spare"] is None
