"""The limits are those that the agent itself was started with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ASK = "import json; from ncheck.agent.answers.limits import answer; print(json.dumps(answer(None, None, 1.0)))"


@pytest.mark.parametrize(
    ("option", "name", "told"),
    [
        ("-n 64", "open_files", 64),
        ("-u 4000", "processes", 4000),
        ("-v 8388608", "address_space", 8388608 * 1024),
        ("-t 60", "cpu_seconds", 60),
        ("-f 2048", "file_size", 2048 * 1024),
        ("-l 64", "memlock", 64 * 1024),
        ("-s 1024", "stack", 1024 * 1024),
        ("-d 8388608", "data", 8388608 * 1024),
        ("-t unlimited", "cpu_seconds", None),
    ],
)
def test_a_limit_of_the_shell_that_starts_the_agent_is_told(option: str, name: str, told: int | None) -> None:
    script = f'ulimit -S {option}; exec {sys.executable} -c "$1"'
    done = subprocess.run(["bash", "-c", script, "bash", ASK], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[name] == told


def test_the_lines_that_set_a_limit_to_the_value_that_it_has_are_named(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text(
        "# ulimit -n 64\nulimit -S -n 64  # for a test\nulimit -n 4096\nulimit -St 6000 -u 4000\n"
        "[ -t 0 ] || ulimit -S -t 6000\nulimit -n $(ulimit -Hn)\n"
    )
    script = f'ulimit -S -n 64; ulimit -S -t 6000; exec {sys.executable} -c "$1"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", ASK], capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)}
    )
    assert json.loads(done.stdout)["set_in"] == {
        "nofile": [{"file": "~/.bashrc", "line": 2, "sets": ["nofile"]}],
        "cpu": [
            {"file": "~/.bashrc", "line": 4, "sets": ["cpu", "nproc"]},
            {"file": "~/.bashrc", "line": 5, "sets": []},
        ],
    }
