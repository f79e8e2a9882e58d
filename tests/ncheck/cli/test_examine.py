"""--good-nodes on the command line: what is written, what is said, and what the exit code is."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import ncheck
import pytest
from ncheck.cli.examine import write_lists
from ncheck.inventory.read import read_inventory
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import NodeSummary, Probe, Report
from ncheck.settings import Settings

GOOD = Report(
    0, (NodeSummary("localhost", reached=True),), (), (), LaunchPlan(), (), Probe(ran=False, reason=""), "1", 1.0, ()
)
HOME = str(Path(ncheck.__file__).parent.parent)


def run_ncheck(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": HOME, "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-m", "ncheck", *args, "--config", "none"]
    return subprocess.run(
        argv, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.slow
def test_where_no_node_is_good_there_is_no_file_and_the_exit_code_is_1(tmp_path: Path) -> None:
    done = run_ncheck("-H", "nowhere.invalid", "--good-nodes", "good.txt", "--fail-on", "never", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        "ncheck: good.txt was not written because no node is good: 0 of 1 node, without nowhere.invalid: not rea"
        in done.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_bad_nodes_are_written_in_the_form_of_the_list_and_none_is_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text("# rack 1\nnowhere.invalid slots=8\n")
    done = run_ncheck("nodes.txt", "--bad-nodes", "bad.txt", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "bad.txt").read_text()) == (1, "# rack 1\nnowhere.invalid slots=8\n")
    assert "ncheck: wrote bad.txt: nowhere.invalid\n" in done.stderr
    listed, report = read_inventory(Settings(hosts="localhost"), stdin=io.BytesIO(), environ={}), GOOD
    settings = Settings(bad_nodes=str(tmp_path / "bad.txt"))
    assert write_lists(report, listed, settings) == report
    assert (tmp_path / "bad.txt").read_text() == ""


def test_the_list_itself_is_refused_before_any_node_is_asked(tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text("nowhere.invalid\n")
    done = run_ncheck("nodes.txt", "--good-nodes", "./nodes.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ncheck: --good-nodes: ./nodes.txt is the input list and is not overwritten: choose another file\n"
    )


@pytest.mark.slow
def test_with_drop_bad_and_nobody_left_there_is_no_plan(tmp_path: Path) -> None:
    done = run_ncheck("plan", "-H", "nowhere.invalid", "--drop-bad", "--force", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ncheck: 0 of 1 node, without nowhere.invalid: not reached: name-unknown" in done.stderr
    assert "ncheck: no node is left" in done.stderr
