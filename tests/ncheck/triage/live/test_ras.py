"""What RAS's answers say of a job: who is behind, gone, stopped or elsewhere, and when they say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.live.ras import signs

from tests.standins.nccl_ras import RELEASES, TEXT_RELEASES, Comm, answer, change

from . import jobs
from .jobs import spread
from .ras_answers import asked, evidence, seen, world

WORLD = world()
MOVED = change(WORLD, range(8), counts=(0, 0, 0, 0, 6700))
JOB = spread(8)


def clues(job: Job, cluster: Cluster) -> list[Clue]:
    return [one for one in signs(job, cluster) if isinstance(one, Clue)]


def motions(job: Job, cluster: Cluster) -> list[Motion]:
    return [one for one in signs(job, cluster) if isinstance(one, Motion)]


def briefly(job: Job, cluster: Cluster) -> list[tuple[str, Grade, tuple[int, ...]]]:
    return [(one.cause, one.grade, one.ranks) for one in clues(job, cluster)]


# Healthy


def test_a_job_whose_ranks_all_launched_more_moves_and_is_not_accused() -> None:
    assert list(signs(JOB, asked([WORLD], [MOVED]))) == [
        Motion("ras", None, "node0", moves=True, text="all 8 ranks of a communicator finished collectives in 10 s")
    ]


def test_counts_that_differ_by_one_while_the_job_moves_are_normal() -> None:
    one = change(WORLD, [1, 2, 5], counts=(0, 0, 0, 0, 6649))
    two = change(MOVED, [0, 5], counts=(0, 0, 0, 0, 6699))
    assert clues(JOB, asked([one], [two])) == []
    assert [each.moves for each in motions(JOB, asked([one], [two]))] == [True]


def test_communicators_of_groups_may_idle_with_other_counts() -> None:
    idle = replace(change(WORLD, range(8), counts=(3, 0, 0, 0, 0)), key=0xBEEF)
    assert clues(JOB, asked([WORLD, idle], [MOVED, idle])) == []


@pytest.mark.parametrize("release", TEXT_RELEASES)
def test_a_status_of_ok_proves_nothing(release: str) -> None:
    """NVIDIA/nccl#1730: it is printed during a time-out."""
    assert list(signs(JOB, asked([WORLD], [MOVED], release=release))) == []


def test_a_rank_that_was_slow_once_is_not_behind() -> None:
    late = change(WORLD, [3], counts=(0, 0, 0, 0, 6649))
    assert clues(JOB, asked([late], [MOVED])) == []
    assert clues(JOB, asked([WORLD], [change(MOVED, [3], counts=(0, 0, 0, 0, 6650))])) == []


def test_one_answer_accuses_nobody_of_being_behind() -> None:
    late = change(WORLD, [3], counts=(0, 0, 0, 0, 6649))
    assert list(signs(JOB, asked([late]))) == []


def test_the_answer_of_another_job_on_the_same_port_says_nothing() -> None:
    theirs = change(WORLD, range(8), pid=99)
    assert list(signs(JOB, asked([theirs], [change(theirs, [3], lost="dead")]))) == []


# Behind


@pytest.mark.parametrize("release", RELEASES)
def test_the_rank_with_the_lower_count_is_suspect(release: str) -> None:
    late = change(WORLD, [3], counts=(0, 0, 0, 0, 6649))
    found = list(signs(JOB, asked([late], [late], release=release)))
    kind = "collective" if release < "2.26" else "AllReduce"
    assert found[0] == Clue(
        "ras", "slow_rank_timeout", Grade.LIKELY,
        f"rank 3 (pid 4003 on node0) launched {kind} 6649 and nothing more in 10 s;"
        f" ranks 0 to 2 and 4 to 7 launched {kind} 6650",
        (3,), ("node0",), others=("deadlock", "data_loader", "checkpoint_write", "storage_hang"),
    )  # fmt: skip
    assert {(one.rank, one.moves, one.waits) for one in found[1:] if isinstance(one, Motion)} >= {(3, False, False)}


def test_everybody_waits_for_the_one_that_is_behind() -> None:
    late = change(WORLD, [3], counts=(0, 0, 0, 0, 6649))
    found = motions(JOB, asked([late], [late]))
    assert {(one.rank, one.waits) for one in found} == {(number, number != 3) for number in range(8)}
    assert not any(one.moves for one in found)


@pytest.mark.parametrize("release", ["2.26.2", "2.30.7"])
def test_the_few_that_ran_ahead_are_innocent(release: str) -> None:
    """NVIDIA/nccl#1911: RAS lists them, and the others are those that did not come."""
    ahead = change(WORLD, [4, 5], counts=(0, 0, 0, 0, 6651))
    assert briefly(JOB, asked([ahead], [ahead], release=release)) == [
        ("slow_rank_timeout", Grade.POSSIBLE, (0, 1, 2, 3, 6, 7))
    ]


def group(key: int, *counts: tuple[int, int]) -> Comm:
    """Return a communicator of some ranks of the job: (rank, launched AllGathers) of each."""
    ranks = (
        replace(WORLD.ranks[one], rank=at, counts=(0, 0, launched, 0, 0)) for at, (one, launched) in enumerate(counts)
    )
    return Comm(key, tuple(ranks))


def test_a_suspect_that_waits_in_another_group_is_not_the_first() -> None:
    both = [group(1, (0, 9), (1, 9), (2, 9), (3, 8)), group(2, (3, 5), (7, 4))]
    (found,) = clues(JOB, asked(both, both))
    assert found.text == (
        "rank 7 (pid 4007 on node1) launched AllGather 4 and nothing more in 10 s;"
        " rank 3 (pid 4003 on node0) launched AllGather 5"
    )
    assert (found.cause, found.grade, found.ranks) == ("slow_rank_timeout", Grade.LIKELY, (7,))


def test_ranks_that_wait_for_each_other_use_communicators_in_another_order() -> None:
    ring = [group(1, (3, 9), (7, 8)), group(2, (3, 4), (7, 5))]
    (found,) = clues(JOB, asked(ring, ring))
    assert (found.cause, found.grade, found.ranks) == ("collective_mismatch", Grade.LIKELY, ())
    assert found.text == (
        "rank 3 (pid 4003 on node0), rank 7 (pid 4007 on node1) wait for each other in 2 communicators:"
        " they use them in another order"
    )


# Another collective


def test_the_same_number_of_other_collectives_is_a_divergence() -> None:
    other = change(WORLD, range(8), counts=(0, 0, 12, 0, 640))
    other = change(other, [6], counts=(0, 0, 13, 0, 639))
    (found,) = clues(JOB, asked([other], [other]))
    assert found == Clue(
        "ras", "collective_mismatch", Grade.CERTAIN,
        "rank 6 (pid 4006 on node1) launched AllGather 13, AllReduce 639, and ranks 0 to 5 and 7 AllGather 12,"
        " AllReduce 640",
        (6,), ("node1",),
    )  # fmt: skip


def test_of_two_halves_nobody_is_accused() -> None:
    other = change(WORLD, range(8), counts=(0, 0, 12, 0, 640))
    other = change(other, range(4), counts=(0, 0, 13, 0, 639))
    assert briefly(JOB, asked([other], [other])) == [("collective_mismatch", Grade.CERTAIN, ())]


def test_fewer_collectives_of_every_kind_are_no_divergence() -> None:
    late = change(change(WORLD, range(8), counts=(0, 0, 12, 0, 640)), [6], counts=(0, 0, 11, 0, 640))
    assert briefly(JOB, asked([late], [late])) == [("slow_rank_timeout", Grade.LIKELY, (6,))]


# All in the same collective


def test_equal_counts_that_stand_still_are_the_collective_itself() -> None:
    (found,) = list(signs(JOB, asked([WORLD], [WORLD])))
    assert found == Clue(
        "ras", "network_stalled", Grade.POSSIBLE,
        "all 8 ranks of a communicator launched the same collectives (AllGather 0, AllReduce 6650, Broadcast 0,"
        " Reduce 0, ReduceScatter 0), and none in 10 s",
        others=("gpu_fault", "ib_fabric", "data_loader"),
    )  # fmt: skip


def test_a_communicator_that_nobody_has_used_yet_stands_for_nothing() -> None:
    unused = change(WORLD, range(8), counts=(0, 0, 0, 0, 0))
    assert list(signs(JOB, asked([unused], [unused]))) == []


# Not there


@pytest.mark.parametrize("release", RELEASES)
def test_a_dead_rank_is_named_with_its_process_and_node(release: str) -> None:
    dead = change(WORLD, [5], lost="dead")
    job = replace(JOB, ranks=tuple(one for one in JOB.ranks if one.rank != 5))
    found = [one for one in clues(job, asked([dead], [dead], release=release)) if one.nodes]
    assert [(one.cause, one.grade, one.nodes) for one in found] == [("rank_crashed", Grade.LIKELY, ("node1",))]
    assert "4005 on node1) has not answered RAS for 60 s" in found[0].text or release < "2.26"
    assert found[0].ranks == ((5,) if release >= "2.26" else ())


def test_a_stopped_rank_that_does_not_answer_is_called_so() -> None:
    lost = change(WORLD, [5], lost="unresponsive")
    stopped = replace(JOB, ranks=tuple(
        replace(one, process=replace(one.process, state="T")) if one.rank == 5 else one for one in JOB.ranks
    ))  # fmt: skip
    assert briefly(stopped, asked([lost], [lost])) == [("rank_stopped", Grade.LIKELY, (5,))]
    assert briefly(JOB, asked([lost], [lost])) == [("network_stalled", Grade.POSSIBLE, (5,))]
    assert briefly(JOB, asked([WORLD], [lost])) == []  # the first time it did


def test_a_process_on_a_node_that_could_not_be_looked_at() -> None:
    dead = change(WORLD, range(4, 8), lost="dead")
    cluster = asked([dead], [dead])
    known = {name: dict(facts) for name, facts in cluster.known.items()}
    del known["node1"][ProcessesFacts]
    job = replace(JOB, ranks=JOB.ranks[:4])
    found = clues(job, jobs.cluster(known))
    assert {(one.cause, one.grade, one.nodes) for one in found} == {("node_failed", Grade.LIKELY, ("node1",))}
    assert [one.ranks for one in found] == [(4,), (5,), (6,), (7,)]


def test_a_process_in_a_container_is_found_by_its_own_number() -> None:
    late = change(change(WORLD, range(8), pid=7), [3], counts=(0, 0, 0, 0, 6649))
    late = replace(late, ranks=tuple(replace(one, pid=20 + one.rank) for one in late.ranks))
    inside = replace(JOB, ranks=tuple(
        replace(one, process=replace(one.process, inner_pid=20 + (one.rank or 0))) for one in JOB.ranks
    ))  # fmt: skip
    assert briefly(inside, asked([late], [late])) == [("slow_rank_timeout", Grade.LIKELY, (3,))]


def test_an_address_that_every_node_has_names_none() -> None:
    late = change(change(WORLD, range(8), host="172.17.0.1"), [3], counts=(0, 0, 0, 0, 6649))
    text = answer([late], "2.30.7")
    nodes = [
        evidence("node0", text, text, addresses=["172.17.0.1", "10.0.0.1"]),
        evidence("node1", addresses=["172.17.0.1", "10.0.0.2"]),
    ]
    assert briefly(JOB, seen(*nodes)) == [("slow_rank_timeout", Grade.LIKELY, (3,))]  # by the number of its process


# Errors and states


def test_errors_of_nccl_have_causes() -> None:
    wrong = change(change(WORLD, [1], error=1), [4, 5], error=6)
    found = clues(JOB, asked([wrong], [wrong]))
    assert [(one.cause, one.grade, one.ranks) for one in found] == [
        ("gpu_fault", Grade.LIKELY, (1,)),
        ("rank_crashed", Grade.ECHO, ()),
    ]
    assert found[0].text == 'NCCL reports "Unhandled CUDA error" on rank 1 (pid 4001 on node0)'


def test_an_initialization_that_does_not_end() -> None:
    starting = change(WORLD, range(8), init=7, counts=(0, 0, 0, 0, 0))
    (found,) = clues(JOB, asked([starting], [starting]))
    assert (found.cause, found.grade, found.ranks) == ("network_stalled", Grade.POSSIBLE, ())
    assert found.text.startswith("8 of 8 ranks have been initializing a communicator for 10 s")
    assert clues(JOB, asked([starting], [WORLD])) == []


def test_a_rank_that_has_not_joined_what_the_others_initialize() -> None:
    starting = change(change(WORLD, range(8), init=7, counts=(0, 0, 0, 0, 0)), [2], lost="no-member")
    assert briefly(JOB, asked([starting], [starting])) == [("slow_rank_timeout", Grade.POSSIBLE, (2,))]


def test_a_rank_that_left_or_aborted() -> None:
    left = change(WORLD, [2], lost="no-member")
    assert briefly(JOB, asked([left], [left])) == [("rank_crashed", Grade.POSSIBLE, (2,))]
    ended = change(WORLD, [2], abort=True)
    assert briefly(JOB, asked([ended], [ended])) == [("rank_crashed", Grade.POSSIBLE, (2,))]


# Several nodes


def test_two_nodes_that_see_two_halves_are_parted() -> None:
    mine = answer([change(WORLD, range(4, 8), lost="unresponsive")], "2.30.7")
    theirs = answer([change(WORLD, range(4), lost="unresponsive")], "2.30.7")
    (found,) = clues(JOB, seen(evidence("node0", mine, mine), evidence("node1", theirs, theirs)))
    assert (found.cause, found.grade, found.nodes) == ("network_stalled", Grade.LIKELY, ("node0", "node1"))
    assert found.text == "RAS on node0 gets no answer from 4 processes on node1, and RAS on node1 does"


def test_a_process_that_takes_connections_and_says_nothing() -> None:
    moving = [answer([one], "2.30.7") for one in (WORLD, MOVED)]
    (found,) = clues(JOB, seen(evidence("node0", *moving, silent=1), evidence("node1")))
    assert (found.cause, found.grade, found.nodes, found.still) == ("rank_stopped", Grade.POSSIBLE, ("node0",), True)


def test_whatever_ras_says_counts_only_where_the_job_stands_still() -> None:
    """RAS keeps on saying what a job has survived: ranks that died, communicators that were left."""
    broken = change(change(WORLD, [5], lost="dead"), [3], counts=(0, 0, 0, 0, 6649), error=2)
    assert all(one.still for one in clues(JOB, asked([broken], [broken])))


def test_a_thousand_ranks_are_read_in_a_second() -> None:
    import time

    big = world(1024, 4)
    late = change(big, [700], counts=(0, 0, 0, 0, 6649))
    cluster = asked([late], [late], nodes=4)
    began = time.process_time()
    assert briefly(spread(1024, 4), cluster) == [("slow_rank_timeout", Grade.LIKELY, (700,))]
    assert time.process_time() - began < 1
