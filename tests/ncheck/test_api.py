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
from functools import partial
from pathlib import Path
from typing import Any, cast

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


def test_this_machine_is_checked_where_no_nodes_are_named(tmp_path: Path) -> None:
    report = ncheck.run(select=["clock-differs", "memlock-limited"], level="quick", deadline=240,
                        record=tmp_path / "kept")  # fmt: skip
    for one in (report, ncheck.replay(tmp_path / "kept")):
        assert (one.level, one.beside_level) == ("quick", ("deadline 240",))
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


def test_what_the_caller_can_mend_is_raised_in_words_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    expected = "nodes: expected the path of a host file, a list of node names, or None for this machine"
    recording = "directory: expected the path of a recording"
    run, replay, diagnose = cast("Any", ncheck.run), cast("Any", ncheck.replay), cast("Any", ncheck.diagnose)
    wrong: dict[str, tuple[Callable[[], object], type[Exception]]] = {
        "nodes: no such file: 'missing.txt'; to name nodes, give a list: ['missing.txt']": (
            lambda: run("missing.txt"), InventoryError,
        ),
        f"nodes: {tmp_path}: is a directory; expected a file with one host per line": (
            lambda: run(tmp_path), InventoryError,
        ),
        "nodes: the list is empty; name a node, or give None for this machine alone": (lambda: run([]), SettingsError),
        **{
            f"{expected}, not {nodes!r}": (partial(run, nodes), SettingsError)
            for nodes in (5, "", b"a", [5], [""], {"a"}, [Path("a")])
        },
        "nodes: 'a b' is not a host name: only letters, digits, '.', '_' and '-' are allowed": (
            lambda: run(["a b"]), InventoryError,
        ),
        "slurm: not in an allocation (SLURM_JOB_NODELIST is not set); start one: salloc -N 2 ncheck --slurm": (
            lambda: run(slurm=True), InventoryError,
        ),
        "deadline: expected a number of seconds above 0, not '-1'": (lambda: run(deadline=-1), SettingsError),
        "port: expected a whole number from 1 to 65535, not 'x'": (lambda: run(["a"], port="x"), SettingsError),
        "sudo: expected true or false, not 5": (lambda: run(["a"], sudo=5), SettingsError),
        "setup: expected text, not ['a']": (lambda: run(["a"], setup=["a"]), SettingsError),
        "identity: /no/such/key is not a file; to list your keys: ls ~/.ssh": (
            lambda: run(["a"], identity=Path("/no/such/key")), SettingsError,
        ),
        "config: expected text, not 5": (lambda: run(config=5), SettingsError),
        "/nonexistent: No such file or directory": (lambda: replay("/nonexistent"), RecordingError),
        **{f"{recording}, not {path!r}": (partial(replay, path), SettingsError) for path in (5, None, b"x", "")},
        "job: 'x' is no process; write its number, as in 4711 or gpu02:4711": (
            lambda: diagnose(job="x"), SettingsError,
        ),
        "job, match and slurm name one job each: use only one of them": (
            lambda: diagnose(job=4711, slurm=12), SettingsError,
        ),
        "match: expected text, not 5": (lambda: diagnose(match=5), SettingsError),
        "slurm: '[]' is no job id of Slurm; to list yours: squeue --me": (lambda: diagnose(slurm=[]), SettingsError),
        "run() has no argument 'selekt'; did you mean 'select'?": (lambda: run(selekt="NC1"), TypeError),
        "run() has no argument 'output'; its arguments: help(ncheck.run)": (lambda: run(output="json"), TypeError),
        "replay() has no argument 'slurm'; its arguments: help(ncheck.replay)": (
            lambda: replay("x", slurm=True), TypeError,
        ),
    }  # fmt: skip
    for message, (call, error) in wrong.items():
        with pytest.raises(error) as raised:
            call()
        assert str(raised.value) == message


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
