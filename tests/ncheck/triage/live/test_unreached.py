"""Nodes that do not answer, and ranks that are nowhere else."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.evidence import Login
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.live.unreached import signs

from tests.ncheck.triage.live.jobs import cluster, job, rank

UP, DOWN = LoginFacts(Login(reached=True)), LoginFacts(Login(reached=False, detail="port 22 did not answer"))


def test_a_node_that_does_not_answer_is_where_the_missing_rank_is() -> None:
    nodes = cluster({"node0": {LoginFacts: UP}, "node1": {LoginFacts: DOWN}})
    text = "rank 1 can only be on nodes that do not answer: node1: port 22 did not answer"
    assert list(signs(job(rank(0, "node0"), size=2), nodes)) == [
        Clue("processes", "node_failed", Grade.LIKELY, text, (1,), ("node1",),
             meaning="a node of the job does not answer", others=("rank_missing", "firewall")),
    ]  # fmt: skip


def test_a_silent_node_that_the_job_does_not_need_is_not_accused() -> None:
    nodes = cluster({"node0": {LoginFacts: UP}, "node1": {LoginFacts: DOWN}})
    assert list(signs(job(rank(0, "node0")), nodes)) == []


def test_a_missing_rank_where_all_nodes_answer_is_for_others_to_say() -> None:
    nodes = cluster({"node0": {LoginFacts: UP}, "node1": {LoginFacts: UP}})
    assert list(signs(job(rank(0, "node0"), size=2), nodes)) == []
