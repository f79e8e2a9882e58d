from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.clock import ClockFacts
from ncheck.model.job import Job
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.facts.activity import ActivityFacts
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.live.differences import signs

from .jobs import cluster, job, process, rank, spread
from .watching import facts, watched

LOOKED_AT = ProcessesFacts((), {})


def clues(job: Job, *nodes: str, unread: tuple[str, ...] = (), **activity: Any) -> list[tuple[Any, ...]]:
    known: dict[str, Any] = {name: {ProcessesFacts: LOOKED_AT} for name in nodes or job.nodes}
    known |= {name: {} for name in unread}
    known = {name: {**held, **activity.get(name, {})} for name, held in known.items()}
    found = [one for one in signs(job, cluster(known)) if isinstance(one, Clue)]
    return [(one.cause, one.grade, one.text, one.ranks, one.nodes) for one in found]


def test_a_whole_job_whose_ranks_are_alike_is_no_clue() -> None:
    assert clues(spread(4)) == []


def _rank(number: int, node: str, local_rank: int | None, variables: dict[str, str]) -> Any:
    one = rank(number, node, local_rank=local_rank)
    return replace(one, process=process(one.pid, variables=variables))


def test_a_rank_that_its_node_should_have_is_missing() -> None:
    per_node = {"LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2"}
    ranks = [_rank(number, f"node{number // 2}", number % 2, per_node) for number in (0, 1, 2)]
    assert clues(job(*ranks, size=4)) == [
        ("rank_missing", Grade.CERTAIN, "node1 has 1 of its 2 ranks: no process for local rank 1", (3,), ("node1",)),
    ]


def test_a_node_without_any_rank_is_missing_only_if_every_node_was_looked_at() -> None:
    per_node = {"LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2"}
    half = job(*(_rank(number, "node0", number, per_node) for number in (0, 1)), size=4)
    assert clues(half, "node0", "node1") == [
        (
            "rank_missing",
            Grade.LIKELY,
            "ranks 2, 3 of 4: no process on node0, node1; node1 has no rank",
            (2, 3),
            ("node1",),
        )
    ]
    assert clues(half, "node0") == []  # the job has a node that was not asked for
    assert clues(half, "node0", unread=("node1",)) == []  # not reached: unknown


def test_nodes_that_have_all_of_their_ranks_say_nothing_of_others_that_were_not_named() -> None:
    bare = (_rank(number, f"node{number}", 0, {"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}) for number in range(2))
    assert clues(job(*bare, size=4), "node0", "node1") == []


def test_on_one_node_alone_missing_ranks_may_run_elsewhere() -> None:
    assert clues(job(rank(0, "node0"), size=2))[0][:2] == ("rank_missing", Grade.POSSIBLE)


def with_variables(*values: dict[str, str]) -> Job:
    return job(*(_rank(number, f"node{number // 2}", None, value) for number, value in enumerate(values)))


def test_a_variable_that_must_agree_names_the_ranks_in_the_minority() -> None:
    ring: dict[str, str] = {"NCCL_ALGO": "Ring"}
    assert clues(with_variables(ring, ring, ring, {"NCCL_ALGO": "Tree"})) == [
        (
            "collective_mismatch",
            Grade.LIKELY,
            "NCCL_ALGO differs: Ring on ranks 0, 1, 2; Tree on rank 3",
            (3,),
            ("node1",),
        ),
    ]
    assert clues(with_variables(ring, {})) == [
        ("collective_mismatch", Grade.LIKELY, "NCCL_ALGO differs: Ring on rank 0; not set on rank 1", (), ()),
    ]


@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_DEBUG", "RANK", "LOCAL_RANK"])
def test_a_variable_that_may_differ_by_node_is_no_clue(name: str) -> None:
    assert clues(with_variables({name: "0"}, {name: "1"}, {name: "2"})) == []


def test_a_rendezvous_that_differs_is_named() -> None:
    usual = {"MASTER_ADDR": "gpu01", "MASTER_PORT": "29500"}
    assert clues(with_variables(usual, usual, usual, {**usual, "MASTER_PORT": "29501"})) == [
        ("rendezvous_misconfig", Grade.LIKELY, "MASTER_PORT differs: 29500 on ranks 0, 1, 2; 29501 on rank 3", (3,),
         ("node1",)),
    ]  # fmt: skip
    other = {**usual, "MASTER_ADDR": "10.0.0.9"}
    assert clues(with_variables(usual, usual, usual, other))[0][:2] == ("rendezvous_misconfig", Grade.POSSIBLE)


def test_a_master_on_loopback_is_wrong_on_other_nodes_than_its_own() -> None:
    here = {"MASTER_ADDR": "localhost"}
    assert clues(with_variables(here, here)) == []
    assert clues(with_variables(here, here, here, here)) == [
        ("rendezvous_misconfig", Grade.LIKELY, "MASTER_ADDR is localhost on node1, and rank 0 runs on node0", (2, 3),
         ("node1",)),
    ]  # fmt: skip


def test_another_nccl_in_one_rank_is_named_and_another_place_of_the_same_is_not() -> None:
    def loaded(*libraries: dict[str, str]) -> list[tuple[Any, ...]]:
        known: dict[str, Any] = {
            f"node{at}": {ActivityFacts: facts([watched(4000 + at, libraries=one)]),
                          ProcessesFacts: ProcessesFacts((), {4000 + at: ("nvidia0",)})}
            for at, one in enumerate(libraries)
        }  # fmt: skip
        return clues(spread(len(libraries), len(libraries)), **known)

    wheel, system = {"/venv/nvidia/nccl/lib/libnccl.so.2": "2.21.5"}, {"/usr/lib/libnccl.so.2.21.5": ""}
    assert loaded(wheel, system, {"/opt/libnccl.so.2": ""}) == []
    assert loaded(wheel, wheel, {"/usr/lib/libnccl.so.2.18.3": ""}) == [
        ("version_mismatch", Grade.LIKELY, "NCCL differs: 2.21.5 on ranks 0, 1; 2.18.3 on rank 2", (2,), ("node2",)),
    ]


def test_clocks_far_apart_are_a_lead() -> None:
    def apart(*offsets: float) -> list[tuple[Any, ...]]:
        known: dict[str, Any] = {
            f"node{at}": {ClockFacts: ClockFacts(offset, 0.01)} for at, offset in enumerate(offsets)
        }
        return clues(spread(len(offsets), len(offsets)), **known)

    assert apart(0.0, 2.0, 5.0) == []
    assert apart(0.0, 400.0) == [
        ("clock_skew", Grade.POSSIBLE, "the clock of node1 is 400 s ahead of that of node0", (), ())
    ]
    assert apart(0.0, 1.0, -3600.0)[0][3:] == ((), ("node2",))
