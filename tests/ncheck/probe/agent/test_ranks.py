"""A rank that lies, prints junk, ends too early or leaves somebody behind that prints on: no pass, and no hang."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

import pytest
from ncheck.probe.agent.nccl import _rows
from ncheck.probe.agent.nccl_log import Log
from ncheck.probe.agent.ranks import Rank, first_cause, follow

FAR = 60.0  # seconds: an end for what hangs
TELL = """
import json, os, sys, time
fd = json.loads(os.environ["NCHECK_RANK"])["fd"]
def say(what): os.write(fd, what.encode() + b"\\n")
HELD = '{"is": "held", "segments": %s}'
ROW = '{"is": "row", "size": 8, "in_place": false, "seconds": 1.0, "fastest": 1.0, "slowest": 1.0, "wrong": %s}'
"""


def ranks_of(*programs: str) -> tuple[list[Rank], float]:
    """Run one rank for each program to their end; return them, and the seconds that it took."""
    began = time.monotonic()
    environment = dict(os.environ)
    ranks = [Rank(at, [sys.executable, "-c", TELL + text], environment, {}) for at, text in enumerate(programs)]
    try:
        follow(ranks, Log(), time.monotonic() + FAR, FAR / 4)
    finally:
        for rank in ranks:
            rank.close()
    return ranks, time.monotonic() - began


def why(program: str) -> dict[str, Any]:
    failure = first_cause(rank.failure for rank in ranks_of(program)[0])
    assert failure is not None
    return failure


@pytest.mark.parametrize("status", [0, 1, 3, 4, 7])
def test_a_rank_that_ends_before_it_is_done_has_failed_whatever_its_exit_status(status: int) -> None:
    failure = why(f'say(\'{{"is": "step", "step": "init"}}\'); say(ROW % 0); os._exit({status})')
    assert (failure["step"], failure["words"]) == ("init", f"it ended with exit status {status} in: init: no output")


@pytest.mark.parametrize(
    "junk",
    [
        "[1]",
        "7",
        "null",
        "",
        "{",
        '"x"',
        "[" * 60000,
        '{"is": "step"}',
        '{"is": "step", "step": [1]}',
        '{"is": []}',
        "\\x00",
    ],
)
def test_what_a_library_writes_into_the_pipe_of_the_results_is_passed_over(junk: str) -> None:
    (rank,), _ = ranks_of(f'say({junk!r}); say(ROW % 0); say(\'{{"is": "done"}}\')')
    assert (rank.failure, len(rank.messages_of("row")), len(rank.messages_of("done"))) == (None, 1, 1)


@pytest.mark.parametrize("line", ['{"is": "done"', '"is": "done"}', '{"is": "Done"}', '{"done": true}'])
def test_what_only_looks_like_the_end_is_none(line: str) -> None:
    assert why(f"say(ROW % 0); say({line!r})")["words"].startswith("it ended with exit status 0")


@pytest.mark.parametrize(
    "row",
    [
        """'{"is": "row"}'""",
        """'{"is": "row", "size": "8", "in_place": false, "seconds": 1}'""",
        "ROW % -1",
        "ROW % 10**400",
        "ROW.replace('1.0', 'NaN') % 0",
        "ROW.replace('1.0', str(10**400)) % 0",
        "ROW.replace('1.0', '-1') % 0",
    ],
)
def test_a_row_of_another_shape_is_none(row: str) -> None:
    ranks, _ = ranks_of(f'say({row}); say(\'{{"is": "done"}}\')')
    assert _rows(ranks) == []


def test_a_size_is_verified_only_where_every_rank_verified_it() -> None:
    ranks, _ = ranks_of(*(f"say(ROW % '{wrong}'); say('{{\"is\": \"done\"}}')" for wrong in ("0", "null")))
    assert [row["wrong"] for row in _rows(ranks)] == [None]


def test_a_row_that_one_rank_tells_twice_is_not_that_of_two_ranks() -> None:
    ranks, _ = ranks_of('say(ROW % 0); say(ROW % 0); say(\'{"is": "done"}\')', 'say(\'{"is": "done"}\')')
    assert _rows(ranks) == []


@pytest.mark.slow
def test_a_rank_that_tells_without_end_is_bounded() -> None:
    (rank,), _ = ranks_of('for at in range(200000): say(\'{"is": "note", "words": "x"}\')')
    assert len(rank.messages) < 10000
    assert rank.failure is not None


def test_who_prints_on_after_the_last_rank_has_ended_is_not_waited_for() -> None:
    """It has left the rank's group, so that it is not ended with it: a daemon that a library started."""
    program = """
pid = os.fork()
if pid == 0:
    os.setsid()
    while True:
        os.write(1, b"x" * 99 + b"\\n")
say('{"is": "note", "words": "%d"}' % pid)
say('{"is": "done"}')
os._exit(0)
"""
    (rank,), seconds = ranks_of(program)
    (pid,) = (int(line["words"]) for line in rank.messages_of("note"))
    with suppress(ProcessLookupError):  # the pipe that nobody reads has ended it
        os.kill(pid, signal.SIGKILL)
    assert (rank.failure, seconds < FAR / 2) == (None, True)


def test_a_rank_tells_itself_what_it_has_in_shared_memory_and_nothing_else_is_believed() -> None:
    said = ['{"/dev/shm/nccl-a": 7}', "[]", "null", '{"/dev/shm/nccl-b": "8"}', '{"/dev/shm/nccl-c": null}']
    ranks, _ = ranks_of("; ".join(f"say(HELD % {one!r})" for one in said))
    assert ranks[0].segments == {"/dev/shm/nccl-a": 7}  # noqa: S108  it is only named


def test_what_a_rank_has_open_is_seen_before_it_is_ended() -> None:
    with tempfile.NamedTemporaryFile(prefix="nccl-", dir="/dev/shm") as file:
        inode = os.fstat(file.fileno()).st_ino
        failure = json.dumps({"is": "failure", "step": "", "words": ""})
        hangs = f"f = open({file.name!r}); say({failure!r}); time.sleep(600)"
        ranks, _ = ranks_of(hangs)
        assert ranks[0].segments == {file.name: inode}
        assert ranks[0].died()
