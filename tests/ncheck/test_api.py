"""ncheck as a library: what run and replay return, what they raise, and that they change nothing of the process."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ncheck
import pytest
from ncheck.api import Given, GivenToRun
from ncheck.errors import InventoryError, RecordingError, SettingsError
from ncheck.settings.options import OPTIONS

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


def test_what_the_caller_can_mend_is_raised_in_words_of_python() -> None:
    expected = "the path of a host file, a list of node names, or None for this machine"
    listed = "nodes: the list is empty; name a node, or give None for this machine alone"
    wrong: dict[str, tuple[Callable[[], object], type[Exception]]] = {
        "nodes: no such file: 'missing.txt'; to name nodes, give a list: run(['missing.txt'])": (
            lambda: ncheck.run("missing.txt"), InventoryError,
        ),
        listed: (lambda: ncheck.run([]), SettingsError),
        f"nodes: expected {expected}, not 5": (lambda: ncheck.run(5), SettingsError),  # type: ignore[arg-type]
        f"nodes: expected {expected}, not [5]": (lambda: ncheck.run([5]), SettingsError),  # type: ignore[list-item]
        f"nodes: expected {expected}, not b'a'": (lambda: ncheck.run(b"a"), SettingsError),  # type: ignore[arg-type]
        "nodes: 'a b' is not a host name: only letters, digits, '.', '_' and '-' are allowed": (
            lambda: ncheck.run(["a b"]), InventoryError,
        ),
        "deadline: expected a number of seconds above 0, not '-1'": (lambda: ncheck.run(deadline=-1), SettingsError),
        "port: expected a whole number from 1 to 65535, not 'x'": (
            lambda: ncheck.run(["a"], port="x"), SettingsError,  # type: ignore[arg-type]
        ),
        "identity: /no/such/key is not a file; to list your keys: ls ~/.ssh": (
            lambda: ncheck.run(["a"], identity="/no/such/key"), SettingsError,
        ),
    }  # fmt: skip
    for message, (call, error) in wrong.items():
        with pytest.raises(error) as raised:
            call()
        assert str(raised.value) == message
    with pytest.raises(RecordingError, match="No such file"):
        ncheck.replay("/nonexistent")
    with pytest.raises(TypeError, match="selekt is not a setting"):
        ncheck.run(selekt="NC1")  # type: ignore[call-arg]


def test_every_setting_of_ncheck_toml_has_a_type() -> None:
    apart = {"nodes_file", "hosts", "local", "output", "good_nodes", "bad_nodes"}  # `nodes`; what prints or writes
    assert set(GivenToRun.__annotations__) | set(Given.__annotations__) == {*OPTIONS, "config"} - apart


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
