"""What RAS prints, of each release that has it, in both forms, whole and spoiled."""

from __future__ import annotations

import json

import pytest
from ncheck.read.text import read_text
from ncheck.triage.parse.nccl_ras import (
    Communicator,
    CommunicatorRow,
    MissingRank,
    RasProcess,
    RasRank,
    RasStatus,
    parse_ras,
)
from ncheck.triage.parse.tolerant_json import loads

from tests.standins.nccl_ras import RELEASES, TEXT_RELEASES, answer, as_json, change, comm, text

HOSTS = ("10.0.0.1", "10.0.0.2")
KEY = "fa93daea854b060b"
WORLD = comm(int(KEY, 16), 8, HOSTS)
JSON_RELEASES = [one for one in RELEASES if one not in TEXT_RELEASES]


def process(number: int) -> RasProcess:
    return RasProcess(HOSTS[number // 4], 4000 + number)


def counts(status: RasStatus) -> dict[int, dict[str, int]]:
    (found,) = status.communicators
    return {one.rank: dict(one.counts) for one in found.ranks}


# NVIDIA/nccl#1911, with other numbers
AHEAD = """\
NCCL version 2.26.2 compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12060

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  6 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 4 -- GPU 0 managed by process 4004 on node 10.0.0.2
  Rank 5 -- GPU 1 managed by process 4005 on node 10.0.0.2

"""


def test_ranks_that_text_does_not_list_get_the_count_that_is_left() -> None:
    late = {number: {"AllGather": 640} for number in (0, 1, 2, 3, 6, 7)}
    status = parse_ras(AHEAD)
    assert counts(status) == {**late, 4: {"AllGather": 641}, 5: {"AllGather": 641}}
    assert status.groups == (CommunicatorRow(1, 2, 8, "RUNNING", "MISMATCH"),)
    assert status.communicators[0].spread == {"AllGather": ((640, 6), (641, 2))}
    assert (status.version, status.library, status.form, status.whole) == ("2.26.2", "NCCL", "text", True)


def test_two_counts_of_which_nobody_is_listed_are_given_to_nobody() -> None:
    half = change(WORLD, range(4), counts=(0, 0, 0, 0, 6649))
    (found,) = parse_ras(text([half])).communicators
    assert found == Communicator(KEY, 8, spread={"AllReduce": ((6650, 4), (6649, 4))})


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_says_who_is_behind(release: str) -> None:
    behind = change(WORLD, [5], counts=(0, 0, 0, 0, 6649))
    status = parse_ras(answer([behind], release))
    kind = "collective" if release < "2.26" else "AllReduce"
    assert {number: each[kind] for number, each in counts(status).items()} == {
        number: 6649 if number == 5 else 6650 for number in range(8)
    }
    assert status.communicators[0].ranks[5].process == process(5)
    assert (status.version, status.whole, status.dead_count, status.silent_count) == (release, True, 0, 0)
    assert status.communicators[0].key == KEY


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_says_who_does_not_answer(release: str) -> None:
    lost = change(change(WORLD, [3], lost="unresponsive"), [6], lost="dead")
    status = parse_ras(answer([lost], release, timeouts=2))
    assert (status.silent, status.dead, status.timeouts) == ((process(3),), (process(6),), 2)
    assert (status.silent_count, status.dead_count, status.whole) == (1, 1, True)
    named = release >= "2.26"
    assert status.communicators[0].missing == (
        MissingRank(3, process(3) if named else None),
        MissingRank(6, process(6) if named else None, dead=named),
    )


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_says_who_is_no_member(release: str) -> None:
    left = change(WORLD, [2], lost="no-member")
    (found,) = parse_ras(answer([left], release)).communicators
    assert [(one.rank, one.answers, one.dead) for one in found.missing] == [(2, True, False)]


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_says_which_ranks_have_errors(release: str) -> None:
    wrong = change(change(WORLD, [1], error=1), [4, 5], error=6)
    (found,) = parse_ras(answer([wrong], release)).communicators
    assert {one.rank: one.error for one in found.ranks if one.error} == {
        1: "Unhandled CUDA error", 4: "Remote process error", 5: "Remote process error",
    }  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_says_which_ranks_are_in_another_state(release: str) -> None:
    ending = change(change(WORLD, [0], finalize=True), [7], abort=True)
    (found,) = parse_ras(answer([ending], release)).communicators
    assert {one.rank: one.state for one in found.ranks if one.state not in {"", "RUNNING"}} == {
        0: "FINALIZE", 7: "ABORT",
    }  # fmt: skip


def test_saved_output_is_read() -> None:
    assert read_text("ras", AHEAD.rstrip())["communicators"][0]["size"] == 8  # type: ignore[index]
    assert read_text("ras", "hello") == {"error": "not an answer of NCCL's RAS"}


def test_a_healthy_text_has_no_ranks_and_no_counts() -> None:
    status = parse_ras(text([WORLD, comm(0x1, 4, HOSTS)]))
    assert status.communicators == ()
    assert [one.ranks for one in status.groups] == [8, 4]
    assert status.notices == ()


def test_a_job_without_communicators_is_an_answer() -> None:
    assert parse_ras(text([])).communicators == parse_ras(as_json([])).communicators == ()


def test_rccl_speaks_the_same_under_its_own_name() -> None:
    behind = change(WORLD, [5], counts=(0, 0, 0, 0, 6649))
    ours, theirs = parse_ras(text([behind], "2.27.7")), parse_ras(text([behind], "2.27.7", rccl=True))
    assert (theirs.library, theirs.communicators) == ("RCCL", ours.communicators)


@pytest.mark.parametrize("release", ["2.28.7", "2.28.9"])
def test_the_comma_that_a_release_forgets_is_no_loss(release: str) -> None:
    lost = change(WORLD, [3], lost="dead")
    with pytest.raises(ValueError, match="delimiter"):
        json.loads(as_json([lost], release))
    assert parse_ras(as_json([lost], release)).communicators == parse_ras(as_json([lost], "2.30.7")).communicators


@pytest.mark.parametrize("release", ["2.26.2", "2.28.9", "2.30.7"])
def test_an_answer_that_ends_anywhere_says_less_and_nothing_else(release: str) -> None:
    lost = change(change(WORLD, [3], lost="dead"), [5], counts=(0, 0, 0, 0, 6649))
    written = answer([lost], release)
    (whole,) = parse_ras(written).communicators
    known = {one.rank: one for one in whole.ranks}
    for end in range(0, len(written) - 2, 7):
        try:
            status = parse_ras(written[:end])
        except ValueError:
            continue
        assert not status.whole or release == "2.26.2"
        for one in (rank for each in status.communicators for rank in each.ranks):
            assert one.process in {None, process(one.rank)}
            assert one.counts.items() <= known[one.rank].counts.items()


def test_what_cannot_be_is_left_out_and_said() -> None:
    written = (
        as_json([WORLD]).replace('"pid": 4003', '"pid": "4003"').replace('"AllReduce": 6650', '"AllReduce": -1', 1)
    )
    status = parse_ras(written)
    (found,) = status.communicators
    assert [one.rank for one in found.ranks] == [1, 2, 3, 4, 5, 6, 7]
    assert found.ranks[2] == RasRank(3, None, found.ranks[0].counts, "RUNNING")
    assert not status.whole


@pytest.mark.parametrize("other", ["", "OK\n", "{}", "[]", '{"nccl_version": 3', "SSH-2.0-OpenSSH_9.2", "\x00" * 100])
def test_anything_else_is_no_answer(other: str) -> None:
    with pytest.raises(ValueError, match="RAS"):
        parse_ras(other)


def test_what_a_hostile_server_names_is_printable() -> None:
    status = parse_ras(as_json([change(WORLD, [1], host="\x1b[2J" + "x" * 100)]))
    found = status.communicators[0].ranks[1].process
    assert found is not None
    assert found.host.isprintable()
    assert len(found.host) == 64


@pytest.mark.parametrize(
    ("written", "value", "whole"),
    [
        ('{"a": 1 "b": [1 2,]}', {"a": 1, "b": [1, 2]}, True),
        ('{"a": 1, "b": [1,2', {"a": 1, "b": [1]}, False),
        ('{"a": "cut', {}, False),
        ('{"a": tru, "b": 1}', {}, False),
        ('{"a": 1} more', {"a": 1}, False),
        ("[" * 40, None, False),
    ],
)
def test_json_is_read_as_far_as_it_goes(written: str, value: object, *, whole: bool) -> None:
    found, complete = loads(written)
    assert complete is whole
    assert value is None or found == value
