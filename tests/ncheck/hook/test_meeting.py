"""How the ranks of a job meet: every one gets the same verdict, and nothing is left behind."""

from __future__ import annotations

import selectors
import time
from dataclasses import replace
from math import inf
from subprocess import PIPE
from typing import Any

import pytest
from ncheck.hook.meeting.examination import Examination
from ncheck.hook.meeting.messages import Told

from tests.ncheck.hook.gathering import VERDICT, Bare, Job, child, dial, nothing_left  # noqa: F401  a fixture

TOLD = Told(VERDICT)

# Ranks as real processes, or meetings that wait.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]


def test_ranks_that_come_in_any_order_get_the_same_verdict() -> None:
    job = Job(4)
    assert job.outcomes(2, 0, 3, 1) == [TOLD] * 4
    (attendance,) = job.attendances
    assert [member.rank for member in attendance.members] == [0, 1, 2, 3]
    assert (attendance.missing, attendance.ended, attendance.problems) == ((), (), ())
    assert attendance.ports == (job.ports[0],)


def test_a_job_of_one_rank_opens_no_port() -> None:
    job = Job(1, master="", master_port=None)
    assert job.outcomes(0) == [TOLD]
    assert job.attendances[0].ports == ()


def test_one_rank_of_each_machine_opens_a_channel() -> None:
    job = Job(4)
    futures = [job.start(number) for number in (0, 1)]
    with Bare(dial(job.ports[0]), job.token) as third, Bare(dial(job.ports[0]), job.token) as fourth:
        third.prove().enter(job.member(2, machine="far"))
        fourth.prove().enter(job.member(3, machine="far"))
        opened = third.hear()
        assert opened["what"] == "open"
        with Bare(dial(job.ports[0]), job.token) as channel:
            channel.prove().say({"what": "channel", "ticket": opened["ticket"]})
            assert third.hear() == fourth.hear() == {"what": "verdict", "verdict": VERDICT, "ended": []}
    assert [future.result(10) for future in futures] == [TOLD, TOLD]
    own = job.attendances[0].members[0].machine
    assert [set(machines) for machines in job.machines] == [{own, "far"}]
    assert job.attendances[0].remote_came


def test_rank_fields_reach_the_examiner() -> None:
    job = Job(1)
    job.meet(0, rank=replace(job.rank(0), node_name="gpu01", local_rank=0))
    member = job.attendances[0].members[0]
    assert (member.node_name, member.local_rank, member.size) == ("gpu01", 0, 1)


def large(job: Job, size: int) -> dict[str, Any]:
    """Make the examiner of a job write a report of so many bytes."""
    text = f'printf \'{{"a":"%0{size}d"}}\\n\' 0'
    return {"start_examiner": lambda *_: job.keep(child("sh", "-c", text, stdout=PIPE))}


def test_a_large_report_reaches_all_ranks() -> None:
    job = Job(6)
    assert job.outcomes(*range(6), **large(job, 3_000_000)) == [Told({"a": "0" * 3_000_000})] * 6


def test_an_examiner_that_has_reported_is_heard_no_more() -> None:
    """Its pipes end when it ends, and an end can be read again and again, for as long as a slow rank takes."""
    with selectors.DefaultSelector() as selector:
        examiner = child("sh", "-c", "echo '{}'", stdout=PIPE)
        examination = Examination(selector, examiner, until=inf)
        rounds = 0
        while selector.get_map():
            for key, events in selector.select(10):
                key.data(events)
            rounds += 1
        assert (examination.result, rounds < 10) == ({}, True)
        examination.close()


def test_a_rank_that_reads_slowly_delays_the_report_of_nobody_else() -> None:
    job = Job(3, timeout=3.0)
    first = job.start(0, **large(job, 7_000_000))
    with Bare(dial(job.ports[0]), job.token) as slow:
        slow.prove().enter(job.member(2))
        second = job.start(1)
        opened = slow.hear()
        with Bare(dial(job.ports[0]), job.token) as channel:
            channel.prove().say({"what": "channel", "ticket": opened["ticket"]})
            began = time.monotonic()
            assert second.result(10) == Told({"a": "0" * 7_000_000})
            assert time.monotonic() - began < 2.0
        assert first.result(10) == Told({"a": "0" * 7_000_000})
        assert time.monotonic() - began < 4.0
