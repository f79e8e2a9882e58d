"""ncheck as a library: what run and replay return, what they raise, and that they change nothing of the process."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import ncheck
import pytest
from ncheck.errors import InventoryError, RecordingError, SettingsError

FIXTURES = Path(__file__).parents[2] / "fixtures"


def test_a_recording_is_judged_again() -> None:
    report = ncheck.replay(FIXTURES / "mixed-nccl")
    assert isinstance(report, ncheck.Report)
    assert (report.exit_code, [finding.code for finding in report.findings]) == (1, ["NC201"])


def test_settings_have_the_names_of_ncheck_toml() -> None:
    report = ncheck.replay(FIXTURES / "mixed-nccl", select="NC501", ignore="NC501", fail_on="never")
    assert {verdict.code for verdict in report.verdicts} == {"NC501"}
    assert (report.exit_code, report.fail_on) == (0, ("never",))


def test_this_machine_is_checked_where_no_nodes_are_named() -> None:
    report = ncheck.run(select=["clock-differs", "memlock-limited"], probe="none", deadline=240)
    assert [(node.reached, node.transport) for node in report.nodes] == [(True, "local")]
    assert {verdict.check for verdict in report.verdicts} == {"clock-differs", "memlock-limited"}


def test_nodes_may_be_names_or_a_file(tmp_path: Path) -> None:
    listed = tmp_path / "nodes.txt"
    listed.write_text("nowhere.invalid\n")
    for nodes in (["nowhere.invalid"], listed, str(listed)):
        report = ncheck.run(nodes, select="NC1", probe="none", mesh="none")
        assert [(node.name, node.reached, node.cause) for node in report.nodes] == [
            ("nowhere.invalid", False, "name-unknown")
        ]


def test_what_the_caller_can_mend_is_raised() -> None:
    with pytest.raises(InventoryError, match="no such file"):
        ncheck.run("/nonexistent/nodes.txt")
    with pytest.raises(RecordingError, match="No such file"):
        ncheck.replay("/nonexistent")
    with pytest.raises(SettingsError, match="--deadline"):
        ncheck.run(deadline=-1)
    with pytest.raises(TypeError, match="selekt is not a setting"):
        ncheck.run(selekt="NC1")


def test_neither_a_variable_nor_a_file_of_the_current_folder_changes_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ncheck.toml").write_text('fail-on = "never"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NCHECK_FAIL_ON", "never")
    assert ncheck.replay(FIXTURES / "mixed-nccl").exit_code == 1


def test_nothing_of_the_process_is_changed() -> None:
    def state() -> tuple[object, ...]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
        levels = {name: logging.getLogger(name).level for name in ("", "paramiko", "paramiko.transport")}
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        return gc.get_threshold(), handlers, levels, files, dict(os.environ), list(sys.path)

    before = state()
    ncheck.run(["nowhere.invalid"], select="NC1", probe="none")
    ncheck.replay(FIXTURES / "mixed-nccl")
    assert state() == before


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = {"click", "rich", "jinja2", "paramiko", "mashumaro", "ClusterShell"}
    asking = "import sys, ncheck; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=True).stdout.split()
    assert heavy.isdisjoint(loaded)
