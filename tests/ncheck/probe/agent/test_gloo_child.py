"""What a broken torch, or what it loads, prints in the place of its rank: no pass, and nobody else is ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest
from ncheck.probe.agent.gloo import _Step, _Torch

FAR = 60.0  # seconds: an end for what hangs
ROW = '{"row": {"size": 8, "in_place": true, "seconds": 1.0, "fastest": 1.0, "slowest": 1.0, "wrong": 0}}'


@pytest.fixture
def bystander() -> Iterator[psutil.Popen]:
    process = psutil.Popen([sys.executable, "-c", "input()"], stdin=-1, start_new_session=True)
    yield process
    process.kill()
    process.wait()
    process.stdin.close()


def heard(*lines: str, seconds: float = FAR, times: int = 1) -> _Step:
    """Return the step of a child that prints these lines and ends, or, with less time, stays."""
    stay = "" if seconds == FAR else "input()"
    program = f"for line in {lines!r}: print((line + chr(10)) * {times}, flush=True)\ninput()\n{stay}"
    child = _Torch([sys.executable, "-c", program], dict(os.environ))
    step = _Step(child)
    step.run({}, time.monotonic() + seconds)
    child.end()
    child.process.wait(FAR)
    for stream in (child.process.stdin, child.process.stdout):
        assert stream
        with suppress(OSError):
            stream.close()
    return step


@pytest.mark.parametrize(
    "junk",
    [
        "ncheck:{broken", "ncheck:" + '{"a":' * 9000, 'ncheck:{"step": 7}', 'ncheck:{"failure": {}}', "ncheck:{}",
        'ncheck:{"note": [1]}', 'ncheck:{"pid": "1"}', 'ncheck:{"ended": null}', "x" * 10**5, "\\x1b[2J",
    ],
)  # fmt: skip
def test_a_line_that_the_rank_did_not_tell_is_no_part_of_what_it_told(junk: str) -> None:
    step = heard(junk, f"ncheck:{ROW}")
    assert (step.complete, len(step.rows)) == (False, 1)
    failure: dict[str, Any] = step.failure(0, FAR)
    assert (failure["step"], failure["late"], len(failure["words"]) <= 400) == ("importing torch", False, True)


def test_output_without_end_is_kept_small() -> None:
    step = heard("y" * 5000, f"ncheck:{ROW}", times=3000)
    assert (len(step.lines), len(step.rows)) == (20, 256)
    assert not step.complete


@pytest.mark.slow
def test_a_process_that_is_none_of_the_childs_is_not_ended(bystander: psutil.Popen) -> None:
    step = heard(
        f'ncheck:{{"pid": {bystander.pid}}}', 'ncheck:{"pid": 1}', f'ncheck:{{"pid": {bystander.pid}}}', seconds=3.0
    )
    assert step.failure(0, 3.0)["late"]
    assert bystander.is_running()
    assert bystander.status() != psutil.STATUS_ZOMBIE
