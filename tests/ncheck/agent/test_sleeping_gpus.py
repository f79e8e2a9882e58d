"""nvidia-smi while the driver wakes the GPUs: without persistence mode that takes 1 to 3 s for each, for the first
program that opens them. The stand-ins wait for each other and not for seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from ncheck.agent.sources import Sources

pytestmark = pytest.mark.slow

LIMIT = 2.0  # seconds of one try: nvidia-smi ends at once, or never
SMI = {"kind": "command", "argv": ["nvidia-smi"], "timeout": LIMIT}
Asked = Callable[..., dict[str, object]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return a function that asks for nvidia-smi (`script`) beside NVML, which does `nvml` with the folder."""

    def ask(script: str, nvml: Callable[[Path], object], waking: float = 60.0) -> dict[str, object]:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\necho >> tries\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(Sources, "module_of", lambda *_: SimpleNamespace(answer=lambda *_: nvml(tmp_path)))
        sources = Sources({**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        sources.waking = waking
        sources.start({"environment": {}})
        question = {"kind": "answer", "name": "gpus", "timeout": waking}
        Thread(target=sources.respond, args=(question,), daemon=True).start()
        reply = sources.respond(SMI)
        return {**reply, "tries": (tmp_path / "tries").read_text().count("\n")}

    return ask


def wakes_late(folder: Path) -> str:
    """Answer after the first try was ended at its limit, and wake the GPUs with that."""
    while not (folder / "tries").exists():
        time.sleep(0.01)
    time.sleep(1.2 * LIMIT)
    (folder / "awake").touch()
    return "awake"


def test_gpus_that_sleep_are_waited_for_and_read_at_the_second_try(asked: Asked) -> None:
    reply = asked("[ -e awake ] && exec echo two GPUs; exec sleep 1000", wakes_late)
    assert (reply["status"], reply["stdout"], reply["tries"]) == ("ok", "two GPUs\n", 2)


def test_it_hangs_only_where_nvml_had_answered(asked: Asked) -> None:
    at_once = asked("exec sleep 1000", lambda _: "awake")
    assert (at_once["status"], at_once["tries"]) == ("timeout", 1)  # nothing slept while it was tried


def test_it_hangs_at_the_second_try_too(asked: Asked) -> None:
    late = asked("exec sleep 1000", wakes_late)
    assert (late["status"], late["tries"]) == ("timeout", 2)


def test_where_nvml_does_not_answer_either_nobody_knows(asked: Asked) -> None:
    never = Event()
    reply = asked("exec sleep 1000", lambda _: never.wait(), waking=LIMIT + 0.1)
    assert (reply["status"], reply["tries"]) == ("unanswered", 1)
    assert reply["reason"] == (
        "it did not end within 2 s, and NVML did not answer: the driver wakes the GPUs, or hangs; "
        "nvidia-smi -pm 1 keeps them awake"
    )
    never.set()


def test_a_tool_that_answers_is_asked_once(asked: Asked) -> None:
    never = Event()
    reply = asked("echo two GPUs", lambda _: never.wait())
    assert (reply["status"], reply["stdout"], reply["tries"]) == ("ok", "two GPUs\n", 1)
    never.set()
