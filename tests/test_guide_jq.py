"""Each task for jq in the guide, run by jq on reports of recorded clusters."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ncheck.report.json import as_json

from .recorded.replayed import replayed

TREE = Path(__file__).parents[1]
GUIDE = (TREE / "docs" / "guide.md").read_text(encoding="utf-8")
TASKS = dict(re.findall(r"^# (.+)\n(jq .+)$", GUIDE, flags=re.MULTILINE))

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


def run(folder: Path, begin: str, cluster: str, last_night: str = "healthy-4x8-h100") -> list[str]:
    """Run the task whose words begin like this, on the report of one cluster and the last night's of another."""
    (command,) = [command for words, command in TASKS.items() if words.startswith(begin)]
    for name, recorded in (("report", cluster), ("last-night", last_night)):
        (folder / f"{name}.json").write_text(as_json(replayed(recorded)), encoding="utf-8")
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(("task", "cluster", "lines"), [
    ("bad nodes", "one-node-down",
     ["gpu03: not reached: refused: connect to 10.20.0.13 port 22: Connection refused"]),
    ("bad nodes", "healthy-4x8-h100", []),
    ("findings", "mixed-nccl", ["error NC201 nccl-version-differs gpu03"]),
    ("the driver", "one-node-down",
     ["gpu01 550.127.08", "gpu02 550.127.08", "gpu04 550.127.08", "gpu03 not reached (refused)"]),
    ("what could not be checked", "healthy-4x8-h100", []),
    ("bandwidth", "healthy-4x8-h100", None),
    ("nodes that were not reached", "one-node-down",
     ["gpu03 refused: connect to 10.20.0.13 port 22: Connection refused"]),
    ("what is new", "mixed-nccl", ["new: NC201 nccl-version-differs on gpu03"]),
    ("the command", "one-node-down", None),
])  # fmt: skip
def test_a_task_prints_what_it_promises(task: str, cluster: str, lines: list[str] | None, tmp_path: Path) -> None:
    found = run(tmp_path, task, cluster)
    if lines is not None:
        assert found == lines
    elif task == "bandwidth":
        assert all(line.endswith(" GB/s, ok") for line in found)
        assert len(found) > 2
    else:
        assert [line.split()[0] for line in found] == ["mpirun"]


def test_what_is_gone_since_last_night_is_printed_too(tmp_path: Path) -> None:
    found = run(tmp_path, "what is new", "healthy-4x8-h100", "mixed-nccl")
    assert found == ["gone: NC201 nccl-version-differs on gpu03"]


def test_every_task_is_tried() -> None:
    assert len(TASKS) == 8
