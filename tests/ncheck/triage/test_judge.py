"""Clues of any source to diagnoses: what outweighs and explains what, and how sure the answer is."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.judge import diagnoses_of
from ncheck.triage.lines import LogLine, Moment

from tests.ncheck.triage.live.jobs import job, rank

JOB = job(rank(0, "n0"), rank(1, "n0"), rank(2, "n1"), rank(3, "n1"))
ECHO, POSSIBLE, LIKELY, CERTAIN = Grade


def clue(cause: str, grade: Grade, *ranks: int, source: Any = "stacks", **more: Any) -> Clue:
    return Clue(source, cause, grade, f"{cause} of {ranks}", ranks, **more)


def line(cause: str, grade: Grade, *ranks: int, file: str = "log", at: float | None = None, **more: Any) -> Clue:
    where = LogLine(1, cause, file=file, moment=None if at is None else Moment(0, at))
    return Clue("logs", cause, grade, "", ranks, lines=(where,), **more)


# What is seen, and the causes with how sure each is and the ranks that it names.
SEEN: dict[str, tuple[tuple[Clue, ...], list[tuple[str, float, tuple[int, ...]]]]] = {
    "nothing": ((), []),
    "what several causes look like": ((clue("data_loader", POSSIBLE, 2),), [("data_loader", 0.5, (2,))]),
    "the same twice": ((clue("data_loader", POSSIBLE, 2),) * 2, [("data_loader", 0.5, (2,))]),
    "two sources that agree": (
        (clue("data_loader", POSSIBLE, 2), clue("data_loader", POSSIBLE, 2, source="processes")),
        [("data_loader", 0.75, (2,))]),
    "a log that agrees with a dump of the flight recorder": (
        (line("slow_rank_timeout", POSSIBLE), clue("slow_rank_timeout", LIKELY, 1, source="flight-recorder")),
        [("slow_rank_timeout", 0.93, (1,))]),
    "what a rank was seen to do, and what keeps it there": (
        (clue("deadlock", LIKELY, 1), clue("host_memory", LIKELY, 1, source="processes")),
        [("host_memory", 0.91, (1,))]),
    "what a rank was seen to do, and a guess why": (
        (clue("deadlock", LIKELY, 1), clue("host_memory", POSSIBLE, 1, source="processes")),
        [("deadlock", 0.89, (1,))]),
    "a cause that another source takes for one that looks the same": (
        (clue("container_isolation", LIKELY, source="logs", others=("wrong_nic",)),
         clue("wrong_nic", LIKELY, 1, source="sockets")), [("wrong_nic", 0.91, (1,))]),
    "two culprits": (
        (clue("deadlock", CERTAIN, 0), clue("data_loader", CERTAIN, 3)),
        [("deadlock", 0.75, (0,)), ("data_loader", 0.75, (3,))]),
    "what looks like another cause": (
        (clue("network_stalled", POSSIBLE, 1, others=("gpu_fault",)),),
        [("network_stalled", 0.5, (1,)), ("gpu_fault", 0.3, (1,))]),
    "a line that names no rank, and a culprit of the dumps": (
        (line("gpu_oom", CERTAIN), clue("collective_mismatch", CERTAIN, 3, source="flight-recorder")),
        [("gpu_oom", 0.95, ()), ("collective_mismatch", 0.95, (3,))]),
    "an echo alone": ((line("rank_crashed", ECHO),), [("rank_crashed", 0.3, ())]),
    "an echo of what another log names": (
        (line("rank_crashed", ECHO), line("gpu_oom", CERTAIN, 3, file="other")), [("gpu_oom", 0.95, (3,))]),
    "two lines of one log, in their order": (
        (line("gpu_oom", CERTAIN, 0), line("gpu_mapping", CERTAIN, 3)),
        [("gpu_oom", 0.95, (0,)), ("gpu_mapping", 0.95, (3,))]),
    "lines of two logs without a time": (
        (line("gpu_oom", CERTAIN, 0), line("gpu_mapping", CERTAIN, 3, file="other")),
        [("gpu_oom", 0.75, (0,)), ("gpu_mapping", 0.75, (3,))]),
    "lines of two logs with their times": (
        (line("gpu_oom", CERTAIN, 0, at=1), line("gpu_mapping", CERTAIN, 3, file="other", at=2)),
        [("gpu_oom", 0.95, (0,)), ("gpu_mapping", 0.95, (3,))]),
    "a line whose cause may be that of the first": (
        (line("wrong_nic", LIKELY), line("firewall", LIKELY)), [("wrong_nic", 0.85, ()), ("firewall", 0.85, ())]),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_the_answer_is_as_sure_as_what_was_seen(name: str) -> None:
    clues, answers = SEEN[name]
    assert [(one.cause, one.confidence, one.ranks) for one in diagnoses_of(clues, JOB)] == answers


def test_a_line_of_a_log_alone_names_its_ranks_for_no_cause_that_looks_the_same() -> None:
    found = diagnoses_of([line("network_stalled", POSSIBLE, 1, others=("gpu_fault",), nodes=("n0",))])
    assert [(one.cause, one.ranks, one.nodes) for one in found] == [
        ("network_stalled", (1,), ("n0",)), ("gpu_fault", (), ()),
    ]  # fmt: skip


def test_what_follows_from_a_cause_stands_beneath_it() -> None:
    (found,) = diagnoses_of([
        clue("network_stalled", LIKELY, source="sockets"), clue("slow_rank_timeout", CERTAIN, 2, source="ras"),
        clue("rank_stopped", CERTAIN, 2, source="processes"), line("collective_mismatch", ECHO),
    ], JOB)  # fmt: skip
    assert (found.cause, found.confidence, found.ranks, found.nodes) == ("rank_stopped", 0.97, (2,), ("n1",))
    assert [(one.file, one.line, one.text) for one in found.evidence] == [
        ("processes", 0, "rank_stopped of (2,)"), ("sockets", 0, "network_stalled of ()"),
        ("ras", 0, "slow_rank_timeout of (2,)"), ("log", 1, "collective_mismatch"),
    ]  # fmt: skip


@pytest.mark.parametrize(("own", "fix"), [
    ("", "export NCCL_P2P_DISABLE=1"), (None, ""), ("kill -CONT PID", "kill -CONT 4003"),
])  # fmt: skip
def test_a_fix_is_that_of_the_clue_or_of_its_cause_and_names_the_process(own: str | None, fix: str) -> None:
    (found,) = diagnoses_of([clue("p2p_acs_iommu", CERTAIN, 3, fix=own, looks=("cat /proc/PID/stack",))], JOB)
    assert (found.fix, found.looks) == (fix, ("cat /proc/4003/stack",))
