"""init and diff: what a good run found is kept, and what has changed since is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ncheck
import pytest
from ncheck.cli.main import main
from ncheck.fleet.recording import load, save
from ncheck.model.evidence import Cause, Login
from ncheck.pipeline import known_again
from ncheck.report.changes import BETTER, OTHER, WORSE, Change, changes
from ncheck.report.expected import expectations
from ncheck.settings import Settings
from ncheck.settings.file import read_file

from tests.recorded.replayed import FIXTURES, replayed

GOOD, MIXED = str(FIXTURES / "healthy-4x8-h100"), str(FIXTURES / "mixed-nccl")
NCCL = "NC201 nccl-version-differs: NCCL differs"


def changed(old: str, new: str) -> tuple[Change, ...]:
    (before, were), (after, are) = (known_again(one, Settings()) for one in (old, new))
    return changes(before, after, were.known, are.known)


def test_what_all_nodes_have_is_a_table_that_a_later_run_reads(tmp_path: Path) -> None:
    text = expectations(replace(replayed("healthy-4x8-h100"), time="2026-11-22T10:00:00+00:00"))
    assert text.splitlines()[:3] == [
        "# What is the same on 4 nodes: gpu[01-04], 2026-11-22T10:00:00+00:00.",
        "# Read it, delete what may change, and keep it in ncheck.toml: every later run checks all nodes against it.",
        "[expect]",
    ]
    file = tmp_path / "ncheck.toml"
    file.write_text(text)
    values: Any = read_file(file, "ncheck.toml", None)[0].values
    _, expected = values["expect"]
    assert (expected.gpus, expected.gpu, expected.hcas) == (8, "NVIDIA H100 80GB HBM3", 8)
    assert expected.versions["nccl"] == replayed("healthy-4x8-h100").systems[0].nccl


def test_a_run_that_is_held_to_what_it_found_is_good(tmp_path: Path) -> None:
    file = tmp_path / "ncheck.toml"
    file.write_text(expectations(replayed("healthy-4x8-h100")))
    held = ncheck.replay(GOOD, config=str(file), select="NC9")
    assert (held.findings, held.exit_code) == ((), 0)
    not_read = {"NC906", "NC907"}
    assert {one.outcome.value for one in held.verdicts if one.code not in not_read} == {"passed"}
    assert {one.outcome.value for one in held.verdicts if one.code in not_read} == {"skipped"}
    other = ncheck.replay(MIXED, config=str(file), select="NC9")
    assert [(one.code, one.nodes) for one in other.findings] == [("NC903", ("gpu03",))]


def test_the_commit_is_expected_where_the_code_was_read() -> None:
    report = replayed("healthy-4x8-h100")
    systems = tuple(replace(system, commit="97ff6cfd9c86") for system in report.systems)
    assert 'commit = "97ff6cfd9c86"' in expectations(replace(report, systems=systems)).splitlines()


def test_what_differs_is_a_comment() -> None:
    report = replayed("mixed-nccl")
    assert "# nccl differs: 2.21.5 on gpu[01-02,04], 2.20.5 on gpu03" in expectations(report).splitlines()


def test_a_run_that_is_not_good_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["init", "-H", "127.0.0.1", "-p", "9", "--config", "none", "--connect-timeout", "2"]
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "ncheck: this run is not good (NC001, NC111): see ncheck check, or use --force\n"


def test_what_got_worse_comes_first() -> None:
    path = "/usr/lib/x86_64-linux-gnu/libnccl.so"
    assert changed(GOOD, MIXED) == (
        Change(WORSE, ("gpu03",), NCCL, "error"),
        Change(OTHER, ("gpu03",), "NCCL: 2.21.5 -> 2.20.5", topic="versions"),
        Change(OTHER, ("gpu03",), f"NCCL path: {path}.2.21.5 -> {path}.2.20.5", topic="other"),
    )


def test_what_was_mended_is_better() -> None:
    found = changed(MIXED, GOOD)
    assert found[-1] == Change(BETTER, ("gpu03",), f"no longer: {NCCL}", "error")


def test_a_node_that_is_lost_is_worse_and_its_findings_are_not_better(tmp_path: Path) -> None:
    lost = Login(reached=False, cause=Cause.REFUSED, detail="refused")
    nodes = [
        replace(one, recorded=False, login=lost, replies={}, greeting=None) if one.node == "gpu03" else one
        for one in load(Path(MIXED))
    ]
    save(tmp_path / "new", [replace(one, recorded=False) for one in nodes])
    found = changed(MIXED, str(tmp_path / "new"))
    assert Change(WORSE, ("gpu03",), "is not reached: refused") in found
    assert Change(OTHER, ("gpu03",), f"cannot be seen any longer: {NCCL}", "error") in found
    assert [one for one in found if one.how == BETTER] == []


@pytest.mark.slow
def test_the_command_prints_one_line_per_change_and_its_exit_code_says_if_it_got_worse(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["diff", GOOD, MIXED]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == (f"✗ gpu03: {NCCL}", "3 changes, 1 for the worse")
    assert main(["diff", GOOD, GOOD]) == 0
    assert capsys.readouterr().out == "Nothing changed.\n"
    assert main(["diff", MIXED, GOOD, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][-1]["how"] == "better"
    assert main(["diff", GOOD, "/does/not/exist"]) == 2
