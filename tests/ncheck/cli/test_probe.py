"""ncheck probe on the command line: what it checks, what it refuses, and what it ends with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ncheck
import pytest
from ncheck.cli.check import probe_settings
from ncheck.settings import Settings
from ncheck.steps.blockers import measures
from ncheck.steps.registry import load_checks

pytestmark = pytest.mark.slow

HOME = str(Path(ncheck.__file__).parent.parent)


def run_ncheck(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": HOME, "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-m", "ncheck", *args, "--config", "none"]
    return subprocess.run(
        argv, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_nothing_is_measured_by_nothing(tmp_path: Path) -> None:
    done = run_ncheck("probe", "--probe", "none", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--probe none measures nothing: remove it, or run ncheck check" in done.stderr


def test_sizes_that_are_none_are_refused_before_any_node_is_asked(tmp_path: Path) -> None:
    done = run_ncheck("probe", "-H", "nowhere.invalid", "--sizes", "huge", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--sizes: 'huge' is not a size; write bytes per rank, as in 8, 64K, 1M, 1G, 8-1G or 1M,64M,1G" in done.stderr


def test_what_mpirun_has_no_ranks_for_is_refused_before_any_node_is_asked(tmp_path: Path) -> None:
    done = run_ncheck("probe", "-H", "nowhere.invalid", "--probe", "gloo", "--probe-launcher", "mpirun", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "NCCL ranks, but --probe gloo has none: remove one of the two" in done.stderr


def test_a_node_that_is_not_reached_stands_against_it_and_the_exit_code_is_1(tmp_path: Path) -> None:
    done = run_ncheck("probe", "-H", "nowhere.invalid", "-o", "json", cwd=tmp_path)
    assert done.returncode == 1
    assert report(done)["probe"]["ran"] is False


def test_this_machine_alone_has_nothing_to_measure_which_only_who_asked_for_it_misses(tmp_path: Path) -> None:
    why = "on a single node without a GPU there is nothing to measure"
    if Path("/dev/nvidia0").exists():
        return
    asked, unasked = (run_ncheck(*words, "-o", "json", cwd=tmp_path) for words in (("probe",), ("local",)))
    assert report(asked)["probe"] == report(unasked)["probe"]
    assert report(asked)["probe"]["reason"] == why
    outcomes = [{v["code"]: v["outcome"] for v in report(done)["verdicts"]}["NC701"] for done in (asked, unasked)]
    assert (asked.returncode, outcomes) == (1, ["unknown", "skipped"])


def test_only_the_checks_of_the_plan_and_of_what_is_measured_are_run() -> None:
    codes = set(probe_settings(Settings()).select)
    every = {check.code: check for check in load_checks().select(())}
    assert {code for code, check in every.items() if measures(check.listed)} <= codes
    assert {"NC001", "NC111", "NC201", "NC322"} <= codes
    assert not codes & {"NC601", "NC209", "NC131", "NC506"}  # clocks, mpirun's daemons and ssh, an Xid of last week
    assert {"NC209", "NC131"} <= set(probe_settings(Settings(probe_launcher="mpirun")).select)


def test_a_file_that_measures_nothing_does_not_keep_the_command_from_it() -> None:
    assert (probe_settings(Settings(probe="none")).probe, probe_settings(Settings(probe="tcp")).probe) == (
        "auto",
        "tcp",
    )


def test_a_dry_run_tells_of_it(tmp_path: Path) -> None:
    done = run_ncheck("probe", "-H", "a,b", "--probe", "tcp", "--probe-time", "30", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0
    assert "bandwidth is measured\nfor at most 30 s, with tcp, between pairs of nodes:\n" in done.stdout
    done = run_ncheck("probe", "-H", "a,b", "--op", "training", "--dry-run", cwd=tmp_path)
    assert "launch plan, bandwidth of all-reduce, all-gather, reduce-scatter is measured\nfor at most" in done.stdout
    assert "bandwidth is measured" not in run_ncheck("-H", "a,b", "--probe", "none", "--dry-run", cwd=tmp_path).stdout


def test_plan_and_launch_never_measure(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('probe = "tcp"')
    environ = {**os.environ, "PYTHONPATH": HOME, "PYTHONDONTWRITEBYTECODE": "1"}
    for command in (["plan"], ["launch", "--", "true"]):
        words = [command[0], "-H", "nowhere.invalid", "--config", "mine.toml", *command[1:]]
        done = subprocess.run(
            [sys.executable, "-m", "ncheck", *words], cwd=tmp_path, env=environ, capture_output=True, text=True,
            timeout=120, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 1
        assert "measuring" not in done.stderr
