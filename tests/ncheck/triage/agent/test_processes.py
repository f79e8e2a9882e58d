"""The processes of a job, looked for among real ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ncheck.triage.agent import processes

ASKED = {"rank_variables": ["RANK", "OMPI_COMM_WORLD_RANK"], "match": None}
# A rank with a child of its own; both say when they run, and end with their standard input.
RANK = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"


@pytest.fixture
def rank() -> Iterator[subprocess.Popen[str]]:
    variables = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "gpu01", "NCCL_API_TOKEN": "hunter2", "EDITOR": "vi"}
    with subprocess.Popen(
        [sys.executable, "-c", RANK], env={"PATH": os.environ["PATH"], **variables}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout
        started.stdout.readline()
        yield started
        started.communicate("\n")


# The agent leaves out itself, who started it and what it started: so it runs beside the rank, not above it.
AGENT = """
import json, sys
from ncheck.triage.agent.processes import answer
json.dump(answer(None, json.loads(sys.argv[1]), 5.0)["processes"], sys.stdout)
"""


def asked(**words: Any) -> dict[int, dict[str, Any]]:
    argv = [sys.executable, "-c", AGENT, json.dumps({**ASKED, **words})]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, "RANK": "0"})
    return {one["pid"]: one for one in json.loads(said.stdout)}


def test_a_rank_comes_with_its_child_and_with_the_variables_that_matter(rank: subprocess.Popen[str]) -> None:
    found = asked()
    mine, child = found[rank.pid], next(one for one in found.values() if one["parent"] == rank.pid)
    assert mine["variables"] == {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "gpu01", "PATH": os.environ["PATH"]}
    assert (mine["user"], mine["inner_pid"]) == (os.geteuid(), rank.pid)
    assert mine["argv"] == [sys.executable, "-c", RANK]
    assert mine["state"] == "S"
    assert child["variables"]["RANK"] == "3"


def test_who_asks_is_not_of_the_job() -> None:
    assert os.getpid() not in asked(match="pytest")


# A rank that starts what watches it, and one more: each asks for the processes once both have their own environment.
# A child that was forked and has not yet begun its program still shows its parent's.
WATCHED_RANK = """
import os, subprocess, sys
words = {"env": {**os.environ, "NCHECK_WATCHER": "1"}, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
watchers = [subprocess.Popen([sys.executable, *sys.argv[1:]], **words) for _ in range(2)]
print(os.getpid(), *(one.pid for one in watchers))
print("\\n".join(one.communicate(b"go")[0].decode() for one in watchers))
"""


def test_what_watches_a_job_from_inside_sees_the_rank_above_it_and_is_not_of_the_job() -> None:
    variables = {"RANK": "3", "WORLD_SIZE": "8", "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", WATCHED_RANK, "-c", "input()" + AGENT, json.dumps(ASKED)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, **variables})
    first, *answers = said.stdout.splitlines()
    rank, *watchers = map(int, first.split())
    found = [{one["pid"] for one in json.loads(answer)} for answer in answers]
    assert [(rank in pids, pids & set(watchers)) for pids in found] == [(True, set())] * 2


def test_a_command_line_chooses_processes_that_no_launcher_started() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()", "needle-7"], env={}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout
        started.stdout.readline()
        assert started.pid not in asked()
        assert asked(match="needle-[0-9]")[started.pid]["variables"] == {}
        started.communicate("\n")


AS_NOBODY = """
import json, sys
from ncheck.triage.agent.processes import answer
json.dump(answer(None, json.loads(sys.argv[1]), 5.0), sys.stdout)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become two other users")
def test_what_may_be_another_users_rank_is_named_by_its_command_line() -> None:
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("no python3 that every user may run")
    package = Path(processes.__file__).parents[3]
    with subprocess.Popen(
        [python, "-c", "print(1, flush=True); input()", "train.py"], user=4711, group=4711, cwd="/", text=True,
        env={"RANK": "0"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout
        started.stdout.readline()
        run = subprocess.run(
            [python, "-c", AS_NOBODY, json.dumps(ASKED)], capture_output=True, check=False, text=True, cwd="/",
            user=65534, group=65534, env={"PYTHONPATH": str(package)},
        )  # fmt: skip
        started.communicate("\n")
    if run.returncode:
        pytest.skip(f"nobody may not read {package}")
    found = json.loads(run.stdout)
    command = f"{python} -c print(1, flush=True); input() train.py"
    assert {"pid": started.pid, "user": 4711, "command": command} in found["others"]
    assert (found["own_only"], started.pid in [one["pid"] for one in found["processes"]]) == (False, False)
    assert found["uptime"] > 0
