"""The logs of real processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Unread
from ncheck.triage.agent import log_tails as answers
from ncheck.triage.facts.log_tails import LOG_TAILS, LogTail, LogTailsFacts, log_tails

SLEEPS = "import os, signal; os.close(2); signal.pause()"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WATCHED", 0.3)


@contextmanager
def running(program: str, output: int | IO[bytes], *more: str) -> Iterator[int]:
    """Start a program with this output; it runs once its standard error is closed."""
    argv = [sys.executable, "-u", "-c", program, *more]
    process = subprocess.Popen(argv, stdout=output, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        process.stderr.read()
        yield process.pid
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def looked_at(*pids: int, launchers: tuple[int, ...] = ()) -> LogTailsFacts:
    ranks: list[Any] = [
        {"rank": at, "pid": pid, "started": started(pid), "children": []} for at, pid in enumerate(pids)
    ]
    value = answers.answer(None, {"ranks": ranks, "launchers": list(launchers)}, 10.0)
    facts = log_tails(Evidence("n", Login(reached=True), replies={LOG_TAILS.key: Reply(Status.OK, value=value)}))
    assert isinstance(facts, LogTailsFacts)
    return facts


def test_a_file_that_two_ranks_write_to_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("epoch 1\nNCCL WARN broken\n")
    with path.open("ab") as log, running(SLEEPS, log) as one, running(SLEEPS, log) as other:
        facts = looked_at(one, other)
    assert facts.tails == (LogTail(str(path), (one, other), "epoch 1\nNCCL WARN broken\n"),)
    assert facts.outputs[one] == (str(path), None)


def test_of_a_long_file_the_end_is_read_from_a_whole_line_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "job.log"
    path.write_text("".join(f"line {number}\n" for number in range(1000)))
    monkeypatch.setattr(answers, "_TAIL", 25)
    with path.open("ab") as log, running(SLEEPS, log) as rank:
        (tail,) = looked_at(rank).tails
    assert (tail.text, tail.whole) == ("line 998\nline 999\n", False)


def test_a_log_that_grows_and_one_that_is_no_output_are_seen(tmp_path: Path) -> None:
    program = (
        "import os, sys, time; f = open(sys.argv[1], 'a', 1); f.write('start\\n'); os.close(2)\n"
        "while True: f.write('step 7 loss 1.5\\n'); time.sleep(0.01)"
    )
    path = tmp_path / "rank0.log"
    with running(program, subprocess.DEVNULL, str(path)) as rank:
        facts = looked_at(rank)
    (tail,) = facts.tails
    assert tail.path == str(path)
    assert tail.grown > 0
    assert isinstance(tail.text, str)
    assert tail.text.startswith("start\nstep 7")
    assert facts.outputs[rank] == ("/dev/null", None)


def test_output_that_goes_to_the_launcher_is_read_where_the_launcher_sends_it(tmp_path: Path) -> None:
    path = tmp_path / "mpirun.out"
    path.write_text("[1,0]<stdout>: hello\n")
    with path.open("ab") as log, running(SLEEPS, log) as launcher, running(SLEEPS, subprocess.PIPE) as rank:
        facts = looked_at(rank, launchers=(launcher,))
    assert facts.tails == (LogTail(str(path), (launcher,), "[1,0]<stdout>: hello\n"),)
    assert str(facts.outputs[rank][0]).startswith("pipe:[")


def test_a_named_pipe_is_not_read_from(tmp_path: Path) -> None:
    path = tmp_path / "fifo.log"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    os.write(descriptor, b"meant for somebody else")
    with running(SLEEPS, descriptor) as rank:
        facts = looked_at(rank)
    assert facts.tails == (LogTail(str(path), (rank,), Unread("not a regular file")),)
    assert os.read(descriptor, 100) == b"meant for somebody else"
    os.close(descriptor)


def test_a_log_that_was_deleted_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("last words\n")
    with path.open("ab") as log, running(SLEEPS, log) as rank:
        path.unlink()
        (tail,) = looked_at(rank).tails
    assert (tail.path, tail.text) == (f"{path} (deleted)", "last words\n")


def test_a_process_that_got_the_number_of_a_writer_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(_: float) -> None:
        monkeypatch.setattr(answers, "_started", lambda _: 1)

    monkeypatch.setattr(answers, "time", SimpleNamespace(sleep=another, monotonic=time.monotonic))
    path = tmp_path / "job.log"
    path.write_text("of somebody else by now")
    with path.open("ab") as log, running(SLEEPS, log) as rank:
        facts = looked_at(rank)
    assert facts.tails == (LogTail(str(path), (rank,), Unread("what writes to it has ended")),)
