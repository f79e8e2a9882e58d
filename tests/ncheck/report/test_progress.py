"""What is shown while a run goes on."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import ncheck
import pytest
from ncheck.cli.examine import observer_for
from ncheck.model.evidence import Cause, Login
from ncheck.model.node import Node
from ncheck.observer import Observer
from ncheck.report.progress import FAILURES_SHOWN, PlainLines

REFUSED = Login(reached=False, cause=Cause.REFUSED, detail="nothing listens on 10.0.0.2 port 22")


def nodes(number: int) -> tuple[Node, ...]:
    return tuple(Node(f"node{index:02d}") for index in range(1, number + 1))


def run(observer: Observer, listed: tuple[Node, ...], failing: tuple[str, ...] = ()) -> None:
    """Tell an observer of a run as the pipeline does: each node from a thread of its own."""

    def one(name: str) -> None:
        observer.stage(name, "connecting")
        if name in failing:
            observer.login_failed(name, REFUSED)
            observer.stage(name, "done")
            return
        for stage in ("logged in", "collecting", "done"):
            observer.stage(name, stage)

    observer.started(listed)
    threads = [threading.Thread(target=one, args=(node.name,)) for node in listed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    observer.finished()


def test_a_log_gets_a_line_for_each_round_of_the_probe_however_many_nodes_take_part() -> None:
    stream = io.StringIO()
    lines = PlainLines(stream, clock=iter((10.0, 14.0, 16.5)).__next__, every=600.0)
    lines.started(nodes(2))
    for stage in ("measuring inside", "measuring pairs, round 1"):
        for node in nodes(2):
            lines.stage(node.name, stage, slow=True)
    lines.ended.set()
    assert stream.getvalue() == (
        "ncheck: connecting to 2 nodes\n"
        "ncheck: measuring inside, 4.0 s elapsed\n"
        "ncheck: measuring pairs, round 1, 6.5 s elapsed\n"
    )


def test_a_stage_of_a_long_run_says_how_long_it_took_and_may_take() -> None:
    stream = io.StringIO()
    lines = PlainLines(stream, clock=iter((10.0, 14.0, 52.5, 120.0)).__next__, limit=60.0, every=600.0)
    lines.started(nodes(1))
    for stage in ("measuring inside", "measuring pairs", "measuring all"):
        lines.stage("node01", stage, slow=True)
    lines.ended.set()
    assert stream.getvalue().splitlines()[1:] == [
        "ncheck: measuring inside, 4.0 s elapsed, at most 56 s left",
        "ncheck: measuring pairs, 42 s elapsed, at most 18 s left",
        "ncheck: measuring all, 110 s elapsed, at most 0 s left",
    ]


class Watched(io.StringIO):
    """A stream that says when something was written that a test waits for."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self.awaited, self.seen = awaited, threading.Event()

    def write(self, text: str) -> int:
        if self.awaited in text:
            self.seen.set()
        return super().write(text)


def test_a_log_of_a_long_run_says_from_time_to_time_for_how_many_nodes_it_waits() -> None:
    stream = Watched("waiting for")
    lines = PlainLines(stream, clock=iter((10.0, *[31.0] * 1000)).__next__, limit=50.0, every=0.05)
    lines.started(nodes(3))
    lines.login_failed("node02", REFUSED)
    lines.stage("node01", "done")
    assert stream.seen.wait(60)
    lines.finished()
    assert "ncheck: waiting for 1 node, 21 s elapsed, at most 29 s left" in stream.getvalue().splitlines()


def test_a_log_gets_the_failures_and_two_lines_more() -> None:
    stream = io.StringIO()
    run(PlainLines(stream, clock=iter((10.0, 13.2)).__next__, every=600.0), nodes(4), failing=("node02",))
    assert stream.getvalue() == (
        "ncheck: connecting to 4 nodes\n"
        "ncheck: node02: refused: nothing listens on 10.0.0.2 port 22\n"
        "ncheck: done: 3 of 4 nodes answered, 3.2 s\n"
    )


def test_a_log_is_not_filled_by_a_thousand_failures() -> None:
    stream = io.StringIO()
    listed = nodes(99)
    run(PlainLines(stream), listed, failing=tuple(node.name for node in listed))
    lines = stream.getvalue().splitlines()
    assert len(lines) == FAILURES_SHOWN + 3
    assert lines.count("ncheck: more nodes failed: see the report") == 1


def test_a_recording_that_cannot_be_saved_is_said_once() -> None:
    stream = io.StringIO()
    observer = PlainLines(stream)
    observer.started(nodes(2))
    for node in nodes(2):
        observer.not_recorded(node.name, f"no space left on /tmp/{node.name}.json")
    assert stream.getvalue().splitlines()[1:] == ["ncheck: node01: not recorded: no space left on /tmp/node01.json"]


def test_what_a_node_says_cannot_steer_the_log() -> None:
    stream = io.StringIO()
    observer = PlainLines(stream)
    observer.started(nodes(1))
    observer.login_failed("node01", Login(reached=False, cause=Cause.NOT_SSH, detail="220 \x1b[2Jftp\r\nready\x07"))
    assert stream.getvalue().splitlines()[1] == "ncheck: node01: not-ssh: 220 ftp ready?"


def test_a_log_that_cannot_be_written_does_not_end_the_run() -> None:
    stream = io.StringIO()
    stream.close()
    run(PlainLines(stream), nodes(3), failing=("node01",))


def test_neither_a_pipe_nor_a_dumb_terminal_imports_rich() -> None:
    code = (
        "import sys; from ncheck.cli.examine import observer_for; observer_for(sys.stderr, {'TERM': 'xterm'}); "
        "print('rich' in sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(ncheck.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("number", [3, 40])
def test_a_terminal_shows_failures_at_once_and_gets_its_cursor_back(number: int) -> None:
    screen = on_a_terminal(number)
    assert "✗ \x1b[0mnode02: refused: nothing listens on 10.0.0.2 port 22" in screen
    assert screen.rindex("\x1b[?25h") > screen.rindex("\x1b[?25l")
    assert f"of {number} nodes, 0.0 s elapsed, at most 50 s left" in screen
    assert "of 0 nodes" not in screen


def on_a_terminal(number: int) -> str:
    """Run on a pseudo-terminal, whose other end is read all the while; return what came out there."""
    ours, theirs = os.openpty()
    read: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, read))
    reader.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        run(observer_for(stream, {"TERM": "xterm-256color"}, 50.0), nodes(number), failing=("node02",))
    reader.join()
    os.close(ours)
    return b"".join(read).decode()


def _read_all(descriptor: int, read: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # EIO: the other end was closed
        while True:
            read.append(os.read(descriptor, 65536))
