"""The verdict of the last report: a fault of its hardware is a reason to drain a node, and nothing uncertain is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from ncheck.saved_report import Now, SavedVerdict, UnusableReportError, drain_reason, verdict_in

BEGUN = "2026-11-22T13:04:05+01:00"
HERE = Now("gpu01", 1795349045.0 + 240, 1795349045.0 - 3600)
POLLING = {"node": "gpu01", "codes": ["NC402"], "reached": True, "unknown": False,
           "reason": "NC402 ib-port-polling: mlx5_3 has no link partner"}  # fmt: skip
FINDING = {"code": "NC402", "check": "ib-port-polling", "severity": "error", "hardware": True}
HEALTHY: Mapping[str, object] = {
    "schema": "ncheck.report/2", "host": "gpu01", "time": BEGUN, "interrupted": False, "findings": [], "bad": [],
    "nodes": [{"name": "gpu01", "transport": "local", "recorded": False}],
}  # fmt: skip
FAULTY = {**HEALTHY, "findings": [FINDING], "bad": [POLLING]}


def verdict(report: object, here: Now = HERE, max_age: float = 1800) -> SavedVerdict:
    return verdict_in(json.dumps(report).encode(), max_age, here)


def test_a_fault_of_the_hardware_is_the_reason_to_drain_it() -> None:
    message = "gpu01: NC402 ib-port-polling: mlx5_3 has no link partner (4 min ago)"
    assert verdict(FAULTY) == SavedVerdict("ncheck: NC402 ib-port-polling", message)
    assert verdict({**FAULTY, "schema": "ncheck.report/1"}) == verdict(FAULTY)  # of an earlier version


def test_a_node_without_an_error_keeps_its_jobs() -> None:
    assert verdict(HEALTHY) == SavedVerdict("", "gpu01: no error (4 min ago)")


def test_a_partial_report_says_what_it_covers_and_no_more() -> None:
    def message(**members: object) -> str:
        return verdict({**HEALTHY, **members}).message

    assert message(select=["NC4", "NC501"]) == "gpu01: no error, only NC4, NC501 checked (4 min ago)"
    assert message(select=[f"NC40{number}" for number in range(10)], level="quick") == (
        "gpu01: no error, only NC400, NC401, NC402, NC403, NC404, NC405, NC406, NC407 and 2 more checked, level quick "
        "(4 min ago)"
    )
    ignored = [{**FINDING, "severity": "info", "ignored": True}]
    assert message(findings=ignored) == "gpu01: no error, ignored: NC402 (4 min ago)"
    assert message(select=["\x1b[2J" * 200]).isprintable()


def test_a_report_of_all_checks_has_no_such_words() -> None:
    for level in ("", "standard", "acceptance"):
        assert verdict({**HEALTHY, "level": level, "select": []}) == verdict(HEALTHY)


def test_an_error_that_a_user_may_have_made_drains_no_node_and_one_beside_it_does() -> None:
    port = {"code": "NC316", "check": "job-port-taken", "severity": "error", "hardware": False}
    bad = {**POLLING, "codes": ["NC316"], "reason": "NC316 job-port-taken: 29500"}
    message = "gpu01: NC316 job-port-taken: 29500, which is no fault of the hardware (4 min ago)"
    assert verdict({**HEALTHY, "findings": [port], "bad": [bad]}) == SavedVerdict("", message)
    both = verdict({**HEALTHY, "findings": [port, FINDING], "bad": [{**bad, "codes": ["NC316", "NC402"]}]})
    assert both.drain == "ncheck: NC402 ib-port-polling"


def test_a_reason_is_short_and_has_nothing_that_a_shell_or_scontrol_would_read() -> None:
    codes = ["NC402", "NC501", "X1", "NC601", "NC602", "NC603"]
    names = {"NC402": "ib-port-polling", "NC501": "$(reboot)'\"", "X1": "a\nb"}
    assert drain_reason(codes, names) == ("ncheck: NC402 ib-port-polling, NC501 ??reboot???, X1 a?b, NC601 and 2 more")


@pytest.mark.parametrize(("report", "why"), [
    ({**FAULTY, "host": "gpu02\x1b[31m"}, "it is of another machine, gpu02?[31m"),
    ({**FAULTY, "nodes": [*FAULTY["nodes"], {"name": "b"}]}, "it is not a report of ncheck local"),  # type: ignore[misc]
    ({**FAULTY, "nodes": [{"transport": "paramiko", "recorded": False}]}, "it is not a report of ncheck local"),
    ({**FAULTY, "nodes": [{"transport": "local", "recorded": True}]}, "it is not a report of ncheck local"),
    ({**FAULTY, "schema": "ncheck.report/3"}, "it is not a report of this version of ncheck"),
    ({**FAULTY, "time": "noon"}, "it does not say when it was made"),
    ({**FAULTY, "time": "2026-11-22T14:04:05+01:00"}, "it comes from the future: a clock was set back"),
    ({**FAULTY, "bad": [{**POLLING, "unknown": True, "reason": "NC505 unknown: hangs"}]},
     "NC505 unknown: hangs (4 min ago)"),
    ({**FAULTY, "bad": [{**POLLING, "reached": False, "codes": [], "reason": "not reached: no-python"}]},
     "not reached: no-python (4 min ago)"),
    ({**FAULTY, "bad": [{**POLLING, "codes": [], "reason": "?"}]}, "? (4 min ago)"),
    ({**FAULTY, "bad": [POLLING, POLLING]}, "it is not a report of this version of ncheck"),
    ({**FAULTY, "findings": [{"code": "NC402", "check": "ib-port-polling"}]},
     "NC402 ib-port-polling: mlx5_3 has no link partner (4 min ago)"),
    ({**FAULTY, "bad": ["NC402"]}, "it is not a report of this version of ncheck"),
    ({**HEALTHY, "interrupted": True}, "that run was interrupted (4 min ago)"),
    ([FAULTY], "it is not a report of this version of ncheck"),
    ({}, "it is not a report of this version of ncheck"),
])  # fmt: skip
def test_what_is_not_certain_drains_no_node(report: object, why: str) -> None:
    with pytest.raises(UnusableReportError) as raised:
        verdict(report)
    assert str(raised.value) == why


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_half_a_file_drains_no_node(text: bytes) -> None:
    with pytest.raises(UnusableReportError, match="it is not JSON"):
        verdict_in(text, 1800, HERE)


@pytest.mark.parametrize(("here", "why"), [
    (Now("gpu01", HERE.time + 3600, HERE.booted), "it is 64 min old, more than --max-age 30 min"),
    (Now("gpu01", HERE.time + 86400, HERE.booted), "it is 24 h old, more than --max-age 30 min"),
    (Now("gpu01", HERE.time, HERE.time - 60), "it is older than the last start of this machine"),
])  # fmt: skip
def test_an_old_report_and_one_of_another_boot_drain_no_node(here: Now, why: str) -> None:
    with pytest.raises(UnusableReportError) as raised:
        verdict(FAULTY, here)
    assert str(raised.value) == why


@pytest.mark.parametrize("step", [-30.0, 30.0])
def test_a_clock_that_was_set_a_little_changes_nothing(step: float) -> None:
    here = Now("gpu01", 1795349045.0 + step, HERE.booted)
    assert verdict(FAULTY, here).drain == "ncheck: NC402 ib-port-polling"


# The command, as a prolog runs it


def ncheck_verdict(path: Path | str, *options: str) -> tuple[int, str, str]:
    """Return the exit code, standard output and standard error of the command, in an almost empty environment."""
    argv = [sys.executable, "-m", "ncheck", "verdict", str(path), *options]
    environ = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Return a report that says now that this machine has an error."""
    begun = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    path = tmp_path / "local.json"
    path.write_text(json.dumps({**FAULTY, "time": begun, "host": os.uname().nodename}))
    path.chmod(0o644)
    return path


def test_the_reason_alone_is_on_standard_output(faulty: Path) -> None:
    code, out, err = ncheck_verdict(faulty, "--max-age", "1h")
    assert (code, out) == (1, "ncheck: NC402 ib-port-polling\n")
    host = os.uname().nodename
    assert err.startswith(f"ncheck: {host}: NC402 ib-port-polling: mlx5_3 has no link partner (")
    assert err.count("\n") == 1


def silent(path: Path | str, *options: str) -> str:
    """Return why there is no verdict; nothing is on standard output, and the exit code is 0."""
    code, out, err = ncheck_verdict(path, *options)
    start = f"ncheck: no verdict on {os.uname().nodename}: {path}: "
    assert (code, out, err[: len(start)], err.count("\n")) == (0, "", start, 1)
    return err[len(start) :].rstrip("\n")


def test_a_file_that_is_not_there_says_what_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "local.json"
    assert silent(path) == f"it does not exist; to write it: ncheck local -o json={path}"


def test_a_file_that_somebody_else_may_have_written_drains_no_node(faulty: Path, tmp_path: Path) -> None:
    faulty.chmod(0o664)
    assert silent(faulty) == "others can write to it; to change this: chmod go-w"
    link = tmp_path / "link.json"
    link.symlink_to(faulty)
    assert silent(link) == "it is a symbolic link"
    if os.geteuid() == 0:
        faulty.chmod(0o644)
        os.chown(faulty, 65534, -1)
        assert silent(faulty) == "it belongs to another user"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert silent(tmp_path / "pipe") == "it is not a regular file"
    assert silent(tmp_path) == "it is not a regular file"
    assert silent("/dev/zero") == "it is not a regular file"


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(2**40)
    (tmp_path / "large.json").chmod(0o644)
    assert silent(tmp_path / "large.json") == "it is too large"


# Mounts a file system that answers nothing, as one whose server is gone, and runs a command that reads from it.
DEAD_FILE_SYSTEM = """
import ctypes, os, subprocess, sys, time
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None).mount(b"dead", sys.argv[1].encode(), b"fuse", 0, options):
    sys.exit("cannot mount")
begun = time.monotonic()
done = subprocess.run([sys.executable, *sys.argv[2:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(done.returncode, time.monotonic() - begun < 10, done.stdout, end="")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/fuse"), reason="needs root and FUSE")  # noqa: PTH110
def test_a_file_system_that_hangs_holds_nobody(tmp_path: Path) -> None:
    words = ["-c", DEAD_FILE_SYSTEM, str(tmp_path), "-m", "ncheck", "verdict", str(tmp_path / "local.json")]
    argv = ["unshare", "--mount", sys.executable, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if "cannot mount" in done.stderr or "unshare failed" in done.stderr:
        pytest.skip(done.stderr)
    why = f"no verdict on {os.uname().nodename}: {tmp_path}/local.json: the file system did not answer within 2 s"
    assert (done.stdout, done.stderr) == (f"0 True ncheck: {why}\n", "")
