"""Work in children: what gets stuck hides nothing else, is left behind in time, and holds no open file of the agent."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest
from ncheck.agent import isolated_calls
from ncheck.agent.isolated_calls import Child, each

ALONE = 0.2  # seconds of the first child


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_calls, "_ALONE", ALONE)


def sleeps_on(item: str) -> dict[str, str]:
    if item == "hangs":
        signal.pause()
    if item == "ends":
        os._exit(1)
    return {"saw": item}


def test_what_answers_is_returned_in_its_order() -> None:
    assert each(sleeps_on, ["a", "b"], 60.0) == [("a", {"saw": "a"}), ("b", {"saw": "b"})]
    assert each(sleeps_on, [], 60.0) == []


@pytest.mark.slow
def test_one_that_hangs_hides_no_other_and_exceeds_no_deadline() -> None:
    began = time.monotonic()
    found = each(sleeps_on, ["a", "hangs", "b", "hangs", "ends", "c"], 2.0)
    assert found == [
        ("a", {"saw": "a"}), ("hangs", None), ("b", {"saw": "b"}), ("hangs", None),
        ("ends", {"error": "the process that looked at it ended"}), ("c", {"saw": "c"}),
    ]  # fmt: skip
    assert time.monotonic() - began < 30


@pytest.mark.slow
def test_many_that_are_slow_are_not_taken_for_hung() -> None:
    def slow(item: int) -> int:
        select.select([], [], [], 0.5)  # as statvfs on a server far away
        return item

    items = list(range(40))  # in turn they would take 20 s
    assert each(slow, items, 15.0) == [(item, item) for item in items]


def test_a_child_that_cannot_be_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    spared: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: spared.append(pid))  # as the kernel does with one in state D
    try:
        assert each(sleeps_on, ["hangs", "b"], 1.0) == [("hangs", None), ("b", {"saw": "b"})]
    finally:
        monkeypatch.undo()
        for pid in spared:
            if Path(f"/proc/{pid}/wchan").exists():
                os.kill(pid, signal.SIGKILL)
    assert len(spared) == 2


def test_a_child_has_no_open_file_but_its_own() -> None:
    def names(writing: int) -> None:
        left = [number for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}")]  # noqa: PTH110, PTH208
        os.write(writing, (" ".join(left) + f" of {writing}\n").encode())

    child = Child(names)
    while child.writes:
        child.read()
    child.end()
    (line,) = child.lines()
    left, _, own = line.partition(" of ")
    assert set(left.split()) == {own}
