"""The children of a meeting: whatever they do, every rank gets one outcome in time, and they are gone."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from subprocess import PIPE, Popen

import pytest
from ncheck.hook.meeting.attendance import Attendance
from ncheck.hook.meeting.messages import NotMet, Told

from tests.ncheck.hook.gathering import (
    VERDICT,
    Bare,
    Job,
    all_ended,
    child,
    dial,
    echo,
    nothing_left,  # noqa: F401  a fixture
)

# Ranks as real processes, or meetings that wait.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

TOLD = Told(VERDICT)
LINE = json.dumps(VERDICT)


def shell(text: str) -> Callable[..., Popen[bytes]]:
    """Return what starts an examiner that is these words of shell."""
    return lambda *_: child("sh", "-c", text, stdout=PIPE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exit 3", "the checks ended without a report"),
        (
            "echo one >&2; echo two: no such module >&2; exit 3",
            "the checks ended without a report: two: no such module",
        ),
        ("sleep 1000 & exit 1", "the checks ended without a report"),
        ("echo '{\"half\":'; sleep 1000", "the checks wrote no report"),
        ("echo 7; sleep 1000", "the checks wrote no report"),
        ("printf '{\"no end of line\": 1}'", "the checks ended without a report"),
        ("printf '%070000d' 0 | tr 0 '['; echo; sleep 1000", "the checks wrote no report"),
        ("kill -9 $$", "the checks ended without a report"),
    ],
)
def test_an_examiner_that_crashes_is_told_to_all(text: str, words: str) -> None:
    job = Job(2)
    outcomes = job.outcomes(0, 1, start_examiner=lambda *_: job.keep(shell(text)()))
    assert outcomes == [NotMet("crashed", words)] * 2
    assert all_ended(job.children)


@pytest.mark.parametrize("text", ["sleep 1000", "trap '' TERM; sleep 1000 & wait; sleep 1000"])
def test_an_examiner_that_takes_too_long_is_ended_in_time(text: str) -> None:
    job = Job(2, timeout=1.0)
    began = time.monotonic()
    first, second = job.outcomes(0, 1, start_examiner=lambda *_: job.keep(shell(text)()))
    assert isinstance(first, NotMet)
    assert (first.kind, first) == ("overran", second)
    assert time.monotonic() - began < 4.0
    assert all_ended(job.children)


@pytest.mark.parametrize("text", [f"sleep 1000 & echo '{LINE}'", f"trap '' TERM; echo '{LINE}'; sleep 1000 & wait"])
def test_a_report_counts_whatever_the_examiner_leaves_behind(text: str) -> None:
    job = Job(2)
    assert job.outcomes(0, 1, start_examiner=lambda *_: job.keep(shell(text)())) == [TOLD, TOLD]
    assert all_ended(job.children)


def test_an_examiner_that_writes_without_end_is_ended() -> None:
    job = Job(1)
    words = "the checks wrote too long a report"
    assert job.meet(0, start_examiner=lambda *_: job.keep(child("cat", "/dev/zero", stdout=PIPE))) == NotMet(
        "crashed", words
    )


def test_an_examiner_that_fills_its_log_is_read() -> None:
    job = Job(1)
    text = f"head -c 1000000 /dev/zero >&2; echo '{LINE}'"
    assert job.meet(0, start_examiner=lambda *_: job.keep(shell(text)())) == TOLD


def test_an_examiner_that_cannot_be_started_is_told_to_all() -> None:
    def start(*_: object) -> Popen[bytes]:
        raise OSError(11, "Resource temporarily unavailable")

    outcomes = Job(2).outcomes(1, 0, start_examiner=start)
    words = "the checks could not be started: BlockingIOError(11, 'Resource temporarily unavailable')"
    assert outcomes == [NotMet("crashed", words)] * 2


@pytest.mark.parametrize("size", [1, 3])
def test_the_examiner_talks_to_the_agent_of_each_node(size: int) -> None:
    job = Job(size)
    heard: list[bytes] = []

    def examine(attendance: Attendance, sockets: Mapping[str, socket.socket], seconds: float) -> Popen[bytes]:
        for sock in sockets.values():
            assert os.get_blocking(sock.fileno())
            sock.settimeout(10)
            sock.sendall(b"hello")
            heard.append(sock.recv(5))
        return job.examine(attendance, sockets, seconds)

    assert job.outcomes(*range(size), start_examiner=examine) == [TOLD] * size
    assert heard == [b"hello"]


@pytest.mark.parametrize(
    "text",
    ["exit 3", "kill -9 $$", "sleep 1000", "trap '' TERM; sleep 1000 & wait; sleep 1000", "sleep 1000 & cat", "yes"],
)
def test_an_agent_that_misbehaves_harms_nobody(text: str) -> None:
    job = Job(2)

    def start(sock: socket.socket) -> Popen[bytes]:
        return job.keep(child("sh", "-c", text, stdin=sock.fileno(), stdout=sock.fileno()))

    assert job.outcomes(0, 1, start_node_part=start) == [TOLD, TOLD]
    assert all_ended(job.children)


def test_an_agent_that_cannot_be_started_harms_nobody() -> None:
    job = Job(2)

    def start(_: socket.socket) -> Popen[bytes]:
        raise OSError(12, "Cannot allocate memory")

    assert job.outcomes(0, 1, start_node_part=start) == [TOLD, TOLD]


def test_a_channel_without_its_ticket_is_closed() -> None:
    job = Job(2)
    first = job.start(0)
    with Bare(dial(job.ports[0]), job.token) as stranger:
        stranger.prove().say({"what": "channel", "ticket": "00" * 16})
        assert stranger.is_closed()
    assert job.outcomes(1) == [TOLD]
    assert first.result(10) == TOLD


def test_an_agent_is_ended_when_its_rank_is_interrupted() -> None:
    job = Job(1)

    def interrupt(*_: object) -> Popen[bytes]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.meet(0, start_examiner=interrupt, start_node_part=lambda sock: job.keep(echo(sock)))
    assert len(job.children) == 1
    assert all_ended(job.children)
