"""`ncheck triage --logs`: exit codes, the answer for people and for programs."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from ncheck.cli.main import main
from ncheck.read.text import read_text

RECORDED = Path(__file__).parents[2] / "recorded"
OOM = "node03:1:1 [0] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\n"


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["triage", *args])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (OOM, 1),
        ("step 1 loss 0.2\n", 0),
        ("GET / HTTP/1.1\n", 0),
        ("", 1),
        ("step 1 loss 0.2\nPANIC\n", 1),
        ("[ERROR] FROB(7,python3): no widget\n", 1),
        ("[ERROR] FROB(7,python3): no widget\nstep 1 loss 0.2\n", 0),
    ],
)
def test_the_exit_code_says_whether_anything_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, code: int
) -> None:
    path = tmp_path / "job.log"
    path.write_text(text)
    assert run(capsys, "--logs", str(path), "-o", "json")[0] == code


@pytest.mark.parametrize(("saved", "code"), [
    ("triage_well/tokenizes-in-a-pool", 0), ("triage/healthy", 0), ("triage/lock", 1),
])  # fmt: skip
def test_the_exit_code_says_whether_a_job_is_well(capsys: pytest.CaptureFixture[str], saved: str, code: int) -> None:
    assert run(capsys, str(RECORDED / f"{saved}.zip"))[0] == code


def test_what_cannot_be_read_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--logs", "/dev/null", "-o", "json")
    assert (code, json.loads(out)["unread"]) == (1, [{"name": "/dev/null", "reason": "is a device, not a log"}])


def test_a_log_in_place_of_nodes_is_told_the_way(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(OOM)
    code, _, err = run(capsys, str(path))
    assert (code, err.splitlines()[-1].endswith(f"; if it is a log: ncheck triage --logs {path}")) == (2, True)


@pytest.mark.parametrize(
    "args",
    [
        ("--logs",),
        ("nodes.txt",),
        ("--logs", "/does/not/exist"),
        ("--logs", "-o", "xml"),
        ("--logs", "x", "--dump"),
        ("--logs", "x", "--history", "cluster.db"),
        ("--job", "0"),
        ("--job", "gpu01"),
        ("--match", "("),
        ("--slurm", "x;ls"),
        ("--job", "7", "--match", "x"),
        ("nodes.txt", "more.txt"),
        ("--deadline", "0"),
        ("--save", "/does/not/exist/x.zip"),
    ],
)
def test_usage_errors_are_exit_code_2(capsys: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    code, out, err = run(capsys, *args)
    assert (code, out, err.startswith("ncheck: ")) == (2, "", True)


def test_what_a_watch_cannot_be_asked_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    messages = {}
    for words in ("--watch --logs x", "--stalled 3m", "--on-stall true", "--watch --stalled 5", "--watch --stalled 2w"):
        code, _, err = run(capsys, *words.split())
        assert code == 2, words
        messages[words] = err.partition(" (see ncheck triage --help)")[0].removeprefix("ncheck: ").strip()
    times = "expected 10 to 3600 seconds, such as 120 or 2m"
    assert messages == {
        "--watch --logs x": "--watch looks at a job that runs, not at files",
        "--stalled 3m": "--stalled is for --watch",
        "--on-stall true": "--on-stall is for --watch",
        "--watch --stalled 5": f"--stalled: '5': {times}",
        "--watch --stalled 2w": f"--stalled: '2w': {times}",
    }


def test_nodes_that_nobody_reaches_end_a_watch_with_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--watch", "-H", "127.0.0.1", "-p", "1", "-F", "none")
    (line,) = out.splitlines()
    why = "127.0.0.1 refuses connections on port 1: no SSH server listens there"
    assert (code, line[9:]) == (1, f"not watched: 127.0.0.1: {why}")


def test_a_process_of_this_machine_that_has_ended_is_named_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    code, out, err = run(capsys, "--job", str(ended.pid), "--config", "none")
    message = f"there is no process {ended.pid} on this machine; to list yours: ps -u $USER -o pid,args"
    assert (code, out, err) == (2, "", f"ncheck: {message}\n")


def test_so_is_a_process_of_another_user(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    code, out, err = run(capsys, "--job", "1", "--config", "none")
    message = "process 1 belongs to root: only that user and root may look into it; run ncheck with sudo"
    assert (code, out, err) == (2, "", f"ncheck: {message}\n")


@pytest.mark.parametrize("more", [("--sudo",), ("--enter", "env")], ids=["as root", "in a container"])
def test_neither_is_refused_where_the_agent_sees_other_processes_than_this_user(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    _, _, err = run(capsys, "--job", "1", "--config", "none", *more)
    assert err.splitlines()[0] == "ncheck: connecting to 1 node"


def test_the_answer_for_people_is_first_and_after_many_lines_also_last(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "job.log"
    path.write_text(OOM)
    _, out, _ = run(capsys, "--logs", str(path))
    answer = "gpu_oom (95% sure): a GPU's memory is full (node node03)"
    assert out.splitlines() == [
        answer, "next: fix this first (85% sure)", "", f"  {path}:1  {OOM.strip()}", "  look: nvidia-smi", "",
        "1 log, 1 lines read.",
    ]  # fmt: skip
    taken = "n{}: RuntimeError: The server socket has failed to listen on port 29500: Address already in use\n"
    each = (OOM.replace("node03", f"node0{rank}") + taken.format(rank) for rank in range(6))
    path.write_text("".join(each))
    lines = run(capsys, "--logs", str(path))[1].splitlines()
    assert (len(lines) > 16, lines[-2:]) == (True, lines[1::-1])


def test_standard_input_is_a_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(OOM.encode())))
    _, out, _ = run(capsys, "--logs", "-")
    assert "standard input:1" in out


def test_the_keys_of_the_json_are_for_life(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(OOM)
    found = json.loads(run(capsys, "--logs", str(path), "-o", "json")[1])
    assert list(found) == ["diagnoses", "healthy", "summary", "files", "lines", "unread", "notes"]
    assert list(found["diagnoses"][0]) == [
        "cause", "confidence", "meaning", "kind", "evidence", "ranks", "nodes", "fix", "looks", "works", "limit", "do",
        "next",
    ]  # fmt: skip
    assert found["diagnoses"][0]["next"] == {"action": "fix-first", "nodes": [], "confidence": 0.85}
    assert found["diagnoses"][0]["evidence"] == [{"file": str(path), "line": 1, "text": OOM.strip()}]


def test_read_log_keeps_its_keys() -> None:
    assert list(read_text("log", OOM)) == ["cause", "meaning", "confidence", "evidence", "fix", "others", "error"]
    hangup = str(read_text("log", "SignalException: Process 7 got signal: 1")["meaning"])
    assert "setsid COMMAND" in hangup  # what is a sentence has no key of its own there


SLEEPS = "import sys; print(1, flush=True); sys.stdin.readline()"


@pytest.fixture
def ranks() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that are ranks by their variables, and wait for a line."""
    with ExitStack() as stack:
        started = []
        for rank in range(2):
            variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
            one = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", SLEEPS, "needle-in-a-test"], env=variables, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )  # fmt: skip
            assert one.stdout
            one.stdout.readline()
            started.append(one)
        yield started
        for one in started:
            one.communicate("\n")


@pytest.mark.slow
def test_a_job_on_this_machine_is_found_and_what_was_saved_is_judged_alike(
    ranks: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    file = str(tmp_path / "hang.zip")
    argv = [sys.executable, "-m", "ncheck", "triage", "--config", "none", "-o", "json"]
    live = subprocess.run(
        [*argv, "--match", "needle-in-a-test", "--save", file], capture_output=True, text=True, check=False
    )
    again = subprocess.run([*argv, file], capture_output=True, text=True, check=False)
    assert json.loads(live.stdout) == json.loads(again.stdout)
    report = json.loads(live.stdout)
    found = [(one["rank"], one["pid"]) for one in report["ranks"]]
    assert (found, report["size"], report["missing"]) == ([(at, one.pid) for at, one in enumerate(ranks)], 2, [])
    assert all(one.poll() is None for one in ranks)


@pytest.mark.slow
def test_a_diagnosis_is_kept_in_the_history_and_counts_as_no_examination(
    ranks: list[subprocess.Popen[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "cluster.db")
    ranks[1].send_signal(signal.SIGSTOP)
    try:
        argv = ("--match", "needle-in-a-test", "--config", "none", "--history", path, "-o", "json")
        code, out, _ = run(capsys, *argv)
    finally:
        ranks[1].send_signal(signal.SIGCONT)
    best = json.loads(out)["diagnoses"][0]
    assert (code, best["cause"]) == (1, "rank_stopped")
    main(["history", "--history", path, "-o", "json"])
    shown = json.loads(capsys.readouterr().out)
    (node,) = shown["nodes"]
    assert (node["node"], node["runs"], node["bad"], node["state"], node["examined"]) == (
        *best["nodes"],
        0,
        0,
        "",
        None,
    )
    first = node["incidents"][0]
    assert (first["seen"]["code"], first["seen"]["severity"], first["ended"]) == (
        "rank_stopped",
        "error",
        first["began"],
    )
    assert [(one["kind"], one["exit_code"]) for one in shown["runs"]] == [("triage", 1)]


@pytest.mark.slow
def test_a_history_that_cannot_be_used_is_a_note_and_never_the_exit_code(
    ranks: list[subprocess.Popen[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ranks
    argv = ("--match", "needle-in-a-test", "--config", "none", "-o", "json")
    code, _, _ = run(capsys, *argv)
    again, out, _ = run(capsys, *argv, "--history", str(tmp_path))
    assert (again, json.loads(out)["notes"][-1].startswith("not in the history: ")) == (code, True)
