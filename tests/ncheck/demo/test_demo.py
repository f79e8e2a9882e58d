"""The demo: real SSH to recorded nodes, judged by the real pipeline, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import ncheck
import ncheck_checks
import paramiko
import pytest
from ncheck.demo import recorded_cluster, run
from ncheck.demo.server import LOOPBACK, NodeServer, made_key
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import replay
from ncheck.settings import Settings

NOBODY = 65534
PATIENT = Settings(connect_timeout=60.0, command_timeout=60.0, deadline=240.0)  # for servers and head in one process
PACKAGES = (
    *(str(Path(str(one.__file__)).parents[1]) for one in (ncheck, ncheck_checks)),
    sysconfig.get_path("purelib"),
)
DEMO = f"import sys; sys.path[:0] = {PACKAGES!r}; from ncheck.__main__ import main; sys.exit(main())"


@pytest.fixture(scope="module")
def report() -> Report:
    """Run the demo once for all."""
    return run(PATIENT, Silent())


def test_each_sick_node_is_named_with_its_own_trouble(report: Report) -> None:
    assert {(finding.code, finding.nodes) for finding in report.findings} == {
        ("NC001", ("gpu06",)),
        ("NC111", ("gpu06",)),
        ("NC130", ("gpu05",)),
        ("NC201", ("gpu03",)),
        ("NC304", ("gpu01", "gpu02", "gpu04", "gpu05")),  # asked NCCL 2.21.5
        ("NC304", ("gpu03",)),  # asked NCCL 2.20.5
        ("NC356", ("gpu01", "gpu02", "gpu03", "gpu04", "gpu05")),
        ("NC402", ("gpu04",)),
    }
    assert report.exit_code == 1


def test_the_ssh_is_real_and_what_is_recorded_says_so(report: Report) -> None:
    assert [(node.name, node.reached, node.recorded) for node in report.nodes] == [
        ("gpu01", True, True),
        ("gpu02", True, True),
        ("gpu03", True, True),
        ("gpu04", True, True),
        ("gpu05", True, True),
        ("gpu06", False, False),
    ]
    assert report.recorded
    reached = [node for node in report.nodes if node.reached]
    assert {(node.transport, node.address) for node in reached} == {("paramiko", LOOPBACK)}
    assert len({node.port for node in reached}) == len(reached)


def test_no_node_of_the_demo_was_short_of_an_answer(report: Report) -> None:
    unknown = {verdict.nodes for verdict in report.verdicts if verdict.outcome.value == "unknown"}
    assert unknown == {("gpu06",)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["healthy-4x8-h100", "slow-node-and-rail"])
def test_a_probe_over_ssh_asks_what_the_recording_holds_and_tells_what_its_replay_tells(name: str) -> None:
    """The schedule is the real one: a step that was recorded otherwise would have no answer."""
    replayed = replay(str(Path(__file__).parents[3] / "fixtures" / name), Settings(), Silent())
    shown = run(replace(PATIENT, probe_time=240.0), Silent(), name)
    assert shown.probe.ran
    assert (shown.measurements, shown.probe) == (replayed.measurements, replayed.probe)
    assert shown.findings == replayed.findings


def test_the_demo_leaves_no_file_and_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = {thread.name for thread in threading.enumerate()}
    run(replace(PATIENT, select=("NC1",), mesh="none"), Silent())
    assert list(tmp_path.iterdir()) == []
    for thread in threading.enumerate():
        if thread.name.startswith("demo ") and thread.name not in before:
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.slow
def test_the_users_own_ssh_is_neither_read_nor_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text("Host *\n  ProxyCommand false\n  Port 1\n")
    (home / ".ssh" / "known_hosts").write_text("not a line of known_hosts\n")
    done = demonstrated({"HOME": str(home), "SSH_AUTH_SOCK": "/nonexistent"}, home)
    assert "5 reached" in done.stdout
    assert "measuring" not in done.stderr  # an error blocks the bandwidth test: nothing says that it runs
    assert done.returncode == 0
    assert sorted(path.name for path in home.rglob("*")) == [".ssh", "config", "known_hosts"]


@pytest.mark.slow
def test_it_runs_as_an_ordinary_user_outside_the_checkout(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    python = ordinary_python() if os.geteuid() == 0 else sys.executable
    if not python:
        pytest.skip("no ordinary user may run a python of this version here")
    done = demonstrated({"HOME": "/nonexistent"}, Path("/"), python, as_nobody=os.geteuid() == 0)
    assert (done.returncode, "exit code 1" in done.stdout) == (0, True), done.stderr


def demonstrated(
    environ: dict[str, str], folder: Path, python: str = sys.executable, *, as_nobody: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run `ncheck demo` as another process, in that folder."""
    argv = [python, "-I", "-B", "-c", DEMO, "demo"]
    patient = {"PATH": os.environ["PATH"], "NCHECK_DEADLINE": "240"}
    user = NOBODY if as_nobody else None
    groups: list[int] | None = [] if as_nobody else None
    return subprocess.run(
        argv, cwd=folder, env={**patient, **environ}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=300, check=False, user=user, group=user, extra_groups=groups,
    )  # fmt: skip


def ordinary_python() -> str:
    """Return an interpreter of this very version that nobody may run with our packages; "" where there is none."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            tried = subprocess.run(
                [python, "-I", "-c", f"import os; [os.listdir(p) for p in {PACKAGES!r}]"],
                capture_output=True, check=False, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
            )  # fmt: skip
        except OSError:
            continue
        if tried.returncode == 0:
            return python
    return ""


def test_a_demo_server_takes_the_demos_key_alone_and_runs_no_command() -> None:
    key = made_key()
    with ExitStack() as stack:
        server = stack.enter_context(NodeServer(recorded_cluster("demo")[0], made_key(), key))
        with pytest.raises(paramiko.AuthenticationException):
            connected(server.port, made_key(), stack)
        client = connected(server.port, key, stack)
        channel = client.open_session(timeout=60)
        with pytest.raises(paramiko.SSHException):
            channel.exec_command("touch /tmp/never")


def connected(port: int, key: paramiko.PKey, stack: ExitStack) -> paramiko.Transport:
    """Log in with this key."""
    transport = paramiko.Transport((LOOPBACK, port))
    stack.callback(transport.close)
    transport.connect(username="demo", pkey=key)
    return transport
