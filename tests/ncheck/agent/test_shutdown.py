"""The scheduled shutdown is answered with the node's time, and nothing but a missing file means that there is none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from ncheck.agent.answers import shutdown


def test_the_file_comes_with_the_time_and_without_it_all_nodes_answer_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled = tmp_path / "scheduled"
    monkeypatch.setattr(shutdown, "SCHEDULED", str(scheduled))
    runs = os.path.isdir("/run/systemd/system")  # noqa: PTH112  as the agent asks
    assert shutdown.answer(None, None, 1.0) == {"systemd": runs, "scheduled": None, "now": None}

    scheduled.write_text("USEC=1764166800000000\nMODE=reboot\n")
    before = time.time()
    answer = shutdown.answer(None, None, 1.0)
    assert before <= answer.pop("now") <= time.time()
    assert answer == {"systemd": True, "scheduled": "USEC=1764166800000000\nMODE=reboot\n"}

    scheduled.unlink()
    scheduled.mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        shutdown.answer(None, None, 1.0)
