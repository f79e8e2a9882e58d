"""What never comes back from the kernel holds up neither the agent nor the other answers."""

from __future__ import annotations

import threading
import time

import pytest
from ncheck.agent.sources import Sources, within


def test_work_that_does_not_come_back_is_left_to_itself() -> None:
    never = threading.Event()
    assert within(0.1, never.wait) == []
    assert within(60.0, lambda: "back") == ["back"]
    never.set()


def test_work_that_is_known_to_be_slow_may_go_on() -> None:
    going_on = threading.Event()

    def more() -> float:
        going_on.set()
        return 60.0

    assert within(0.01, going_on.wait, more=more) == [True]


@pytest.mark.slow
def test_a_source_that_hangs_is_a_time_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    # A real file system that hangs takes a kernel to make: the lab has one.
    monkeypatch.setattr(Sources, "read_file", lambda *_: {"status": str(never.wait())})
    began = time.monotonic()
    reply = Sources({}).respond({"kind": "file", "path": "/home/dead", "timeout": 0.2})
    assert reply["status"] == "timeout"
    assert "file system" in reply["reason"]
    assert time.monotonic() - began < 60
    never.set()
