"""The dumps of a node's ranks: read, of an earlier job, of another user, broken, or not there."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.triage.facts.flight_recorder import FLIGHT_RECORDER, DumpFile, flight_recorder

from tests.ncheck.triage.dumps import dump, pickled, steps, value

DATA = pickled(value(steps(3), 2))
PATH = "/home/ada/.cache/torch/comm_lib_trace_rank_3"
FILE = {
    "path": PATH, "size": len(DATA), "mtime": 2000.5, "owner": 1000, "read": len(DATA), "error": "",
    "data": base64.b64encode(zlib.compress(DATA)).decode(),
}  # fmt: skip
RANK = {"pid": 7, "error": "", "asked": "", "tried": [PATH], "began": 1000.0, "dump": FILE}


def of(**words: Any) -> DumpFile | Unread | Absent:
    answer: Any = {"ranks": [{**RANK, **words}]}
    replies = {FLIGHT_RECORDER.key: Reply(Status.OK, value=answer)}
    facts = flight_recorder(Evidence("n", Login(reached=True), replies=replies))
    assert not isinstance(facts, Unread | Absent)
    assert facts.of(8) == Unread("it was not asked for")
    return facts.of(7)


def file(**words: Any) -> dict[str, Any]:
    return {**FILE, **words}


def test_a_dump_is_read_with_the_time_when_it_was_written() -> None:
    assert of() == DumpFile(PATH, 2000.5, dump(steps(3), 2))


def test_a_dump_older_than_the_process_is_of_an_earlier_job() -> None:
    earlier = f"{PATH} was written before this process began: it is of an earlier job"
    assert of(dump=file(mtime=999.0)) == Absent(earlier)
    assert of(dump=file(mtime=999.0), asked="asked") == Absent(f"{earlier}; torch was asked for a dump and wrote none")


def test_none_says_where_it_was_looked_for_and_why_none_was_asked_for() -> None:
    assert of(dump=None) == Absent(f"no dump at {PATH}")
    assert of(dump=None, asked="torch does not listen: X is not set") == Absent(
        f"no dump at {PATH}; torch does not listen: X is not set"
    )


def test_what_could_not_be_read_says_why() -> None:
    assert of(error="gone", dump=None) == Unread("the process has ended")
    assert of(error="permission denied", dump=None) == Unread("permission denied", needs_root=True)
    words = {"error": "it belongs to another user", "data": None, "owner": 1001}
    assert of(dump=file(**words)) == Unread(f"{PATH}: it belongs to another user (user 1001)")
    assert of(dump=file(data="~")) == Unread(f"{PATH}: the node's answer is broken")
    assert of(dump=file(data=base64.b64encode(zlib.compress(b"")).decode())) == Unread(
        f"{PATH}: the dump is empty: the rank ended, or the disk was full, when it was to be written"
    )


def test_what_the_node_left_out_is_said() -> None:
    short = base64.b64encode(zlib.compress(DATA[:600])).decode()
    made = of(dump=file(data=short, read=600))
    assert isinstance(made, DumpFile)
    assert made.dump.cut == f"only 600 of its {len(DATA):,} bytes were read"


@pytest.mark.slow
def test_an_answer_that_unpacks_to_gigabytes_is_cut() -> None:
    bomb = base64.b64encode(zlib.compress(b"\0" * 100_000_000)).decode()
    assert of(dump=file(data=bomb, size=100_000_000, read=100_000_000)) == Unread(
        f"{PATH}: the dump has only zeros: the node or its file system failed while it was written"
    )
