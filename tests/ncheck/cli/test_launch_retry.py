"""ncheck launch --retry: the job is a child, and yet its output, signals, stops and exit code are those of the job.

Here it runs on this machine alone; tests/lab/test_retry.py has several.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pytest
from ncheck.cli.retry import Place, why_ended
from ncheck.history.entry import JOB
from ncheck.history.store import History
from ncheck.model.node import Node
from ncheck.retry.child import JobEnd
from ncheck.settings import Settings
from ncheck.triage.diagnosis_history import kept
from ncheck.triage.logs import examine_logs

from tests.ncheck.cli.test_launch import GLIBC, HEEDING, NCHECK, SECONDS, Screen, environ, launched, stand_in
from tests.ncheck.hook.ranks import job

pytestmark = pytest.mark.slow

__all__ = ["environ"]  # the fixture
RETRY = ("--retry", "2", "--", "train")
# Each try takes the next of these files.
IN_TURN = "n=$(($(cat {0}/n 2>/dev/null || echo 0) + 1)); echo $n >{0}/n; . {0}/try$n"


def in_turn(folder: Path, *scripts: str) -> None:
    stand_in(folder, IN_TURN.format(folder))
    for number, script in enumerate(scripts, 1):
        (folder / f"try{number}").write_text(script)


def tries(folder: Path) -> int:
    return int((folder / "n").read_text())


def sentences(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what ncheck said of the tries, without the folder of the logs."""
    said = [line for line in done.stderr.splitlines() if re.match("ncheck: (try|restart|not restarted)", line)]
    return [re.sub(r"/\S*/(try-\d\.log)", r"\1", line) for line in said]


def test_a_job_that_fails_by_chance_is_started_again_and_waits_for_nobody_that_it_leaves(
    environ: dict[str, str], tmp_path: Path
) -> None:
    in_turn(tmp_path, "echo out; echo err >&2; exit 7", f"echo well; sleep 1000 & echo $! >{tmp_path}/left; exit 0")
    done = launched(environ, *RETRY)
    subprocess.run(["kill", (tmp_path / "left").read_text().strip()], check=True)
    assert (done.returncode, tries(tmp_path)) == (0, 2)
    assert [line for line in done.stdout.splitlines() if not line.startswith("word:")] == ["out", "well"]
    assert "\nerr\n" in done.stderr
    assert sentences(done) == [
        "ncheck: try 1 failed (exit code 7); its output: ncheck triage --logs try-1.log",
        "ncheck: restart on the same nodes: the log shows no cause",
    ]


def test_each_try_is_noted_in_the_history_by_itself(environ: dict[str, str], tmp_path: Path) -> None:
    in_turn(tmp_path, "kill -SEGV $$", "exit 0")
    path = str(tmp_path / "h.db")
    done = launched(environ, "--history", path, "--job-ended", "9", *RETRY)
    assert (done.returncode, tries(tmp_path)) == (0, 2)
    runs = History(path).runs()
    assert [run.exit_code for run in runs if run.kind == JOB] == [139, 0]
    assert len([run for run in runs if run.kind == "check"]) == 3  # before, between and after
    said = [one for one in done.stderr.splitlines() if one.startswith("ncheck: history: ") and " job " in one]
    assert [re.sub(r".* job |[:;].*", "", one) for one in said] == ["was not noted", "ended with 139", "ended with 0"]


def test_a_job_that_is_started_once_is_noted_too(environ: dict[str, str], tmp_path: Path) -> None:
    in_turn(tmp_path, "echo out; exit 7")
    path = str(tmp_path / "h.db")
    done = launched(environ, "--history", path, "--", "train")
    runs = [(run.kind, run.exit_code) for run in History(path).runs()]
    assert (done.returncode, tries(tmp_path), runs.count((JOB, 7)), len(runs)) == (7, 1, 1, 3)
    assert done.stdout.endswith("out\n")
    assert sentences(done) == []  # none of a try


# Start a rank with the hook, let it fail, and ask how it ended once its watcher has noted that.
WITH_HOOK = """
import os, subprocess, sys, time
from ncheck.history.entry import JOB
from ncheck.history.store import History
argv = [sys.executable, "-m", "ncheck.hook", "--history", "h.db", "--select", "NC8", "train.py"]
rank = subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
assert "will be noted" in rank.stderr.readline()
rank.stdin.close()
os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)
while not any(run.kind == JOB for run in History("h.db").runs()):
    time.sleep(0.05)
sys.exit(rank.wait())
"""


def test_a_job_whose_ranks_note_it_is_noted_once(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys; sys.stdin.read(); sys.exit(5)")
    (tmp_path / "start.py").write_text(WITH_HOOK)
    stand_in(tmp_path, f"cd {tmp_path}; exec {sys.executable} start.py")
    path = str(tmp_path / "h.db")
    done = launched({**environ, **job(1, RANK="0")}, "--history", path, "--", "train")
    (note,) = [run for run in History(path).runs() if run.kind == JOB]
    assert (done.returncode, note.exit_code, note.figures[-1].place) == (5, 5, "rank 0")
    assert "\nncheck: history: the job that ended is noted already, by its ranks (" in done.stderr


def test_three_tries_with_one_root_are_enough_and_the_end_is_the_last_ones(
    environ: dict[str, str], tmp_path: Path
) -> None:
    in_turn(tmp_path, "exit 5", "exit 6", "kill -SEGV $$", "exit 0")
    done = launched(environ, "--retry", "9", "--", "train")
    assert (done.returncode, tries(tmp_path)) == (-signal.SIGSEGV, 3)
    assert sentences(done)[-2:] == [
        "ncheck: try 3 failed (ended by SIGSEGV); its output: ncheck triage --logs try-3.log",
        "ncheck: not restarted: 3 tries ended in the same way: the log shows no cause",
    ]


TYPE_ERROR = """echo 'Traceback (most recent call last):
  File "train.py", line 3, in <module>
    step(1 + "a")
TypeError: unsupported operand'; exit 1"""


def test_no_second_start_where_the_code_is_at_fault(environ: dict[str, str], tmp_path: Path) -> None:
    in_turn(tmp_path, TYPE_ERROR)
    done = launched(environ, *RETRY)
    assert (done.returncode, tries(tmp_path)) == (1, 1)
    assert sentences(done)[-1].startswith("ncheck: not restarted: a second start would fail in the same way: ")


def test_a_signal_that_is_sent_to_ncheck_ends_the_job_once_and_for_all(environ: dict[str, str], tmp_path: Path) -> None:
    in_turn(tmp_path, "trap 'echo heard; exit 9' TERM; echo ready; while :; do sleep 0.02; done")
    argv = ["env", "--default-signal", *NCHECK, "--force", *RETRY]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert "ready\n" in iter(process.stdout.readline, "")
        process.terminate()
        output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, tries(tmp_path), output) == (9, 1, "heard\n")
    assert "ncheck: not restarted: it was ended by SIGTERM" in errors


@pytest.mark.parametrize("words", [RETRY, ("--history", "h.db", "--", "train")])
def test_input_limits_and_signals_are_those_of_a_program_that_takes_the_place_of_ncheck(
    words: tuple[str, ...], environ: dict[str, str], tmp_path: Path
) -> None:
    look = "ulimit -n; grep -E 'Sig(Ign|Blk)' /proc/self/status"
    stand_in(tmp_path, f"cat; {look}")
    shell = f"ulimit -S -n 200; {look}; echo typed | {shlex.join([*NCHECK, '--force', *words])}"
    done = subprocess.run(
        ["bash", "-c", shell], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if not line.startswith("word:")]
    before, after = (int(line.split()[1], 16) & ~GLIBC for line in (lines[2], lines.pop()))
    assert (lines, after) == ([*lines[:3], "typed", *lines[:2]], before)


def test_nobody_reads_the_output_any_more(environ: dict[str, str], tmp_path: Path) -> None:
    in_turn(tmp_path, "while echo line; do :; done; exit 3")
    with subprocess.Popen(
        ["env", "--default-signal", *NCHECK, "--force", *RETRY], env=environ, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stderr
        assert "line\n" in iter(process.stdout.readline, "")
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, tries(tmp_path)) == (-signal.SIGPIPE, 1)
    assert "not restarted: nobody reads its output any more" in errors


def test_on_a_terminal_it_is_stopped_goes_on_and_is_interrupted_once(environ: dict[str, str], tmp_path: Path) -> None:
    in_turn(tmp_path, f"test -t 1 && exec {shlex.join([sys.executable, '-c', HEEDING])}")
    screen = Screen(["bash", "--norc", "--noprofile", "-i"], environ)
    screen.types(f"{shlex.join([*NCHECK, '--force', *RETRY])}\n")
    screen.shows("ready\r\n")
    screen.types("\x1a")
    screen.shows("Stopped")
    screen.types("fg\n")
    screen.shows("went on\r\n")
    screen.types("\x03")
    screen.shows("not restarted: it was ended by SIGINT")
    screen.types("echo en''ded:$?\n")
    screen.shows("ended:9\r\n")
    screen.types("exit\n")
    screen.close()
    assert tries(tmp_path) == 1


def test_where_the_output_cannot_be_kept_nothing_is_started_and_the_message_says_why(
    environ: dict[str, str], tmp_path: Path
) -> None:
    in_turn(tmp_path, "exit 0")
    asked = (
        "import os, sys, tempfile; tempfile.tempdir = '/dev/null/x'; from ncheck.__main__ import main; sys.exit(main())"
    )
    argv = [sys.executable, "-c", asked, *NCHECK[3:], "--force", *RETRY]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    why = "not started: the output of the job cannot be kept in /dev/null/x (Not a directory): set TMPDIR"
    assert (done.returncode, done.stderr) == (1, f"ncheck: {why}\n")


def test_a_log_that_somebody_removes_takes_no_try_and_no_exit_code(environ: dict[str, str], tmp_path: Path) -> None:
    kept_in = f"{tmp_path}/ncheck-launch-*"
    in_turn(tmp_path, f"rm {kept_in}/try-1.log; exit 7", f"rm -r {kept_in}; exit 0")
    done = launched(environ, *RETRY)
    assert (done.returncode, tries(tmp_path)) == (0, 2), done.stderr
    assert sentences(done) == [
        "ncheck: try 1 failed (exit code 7); its output was removed from try-1.log",
        "ncheck: restart on the same nodes: the log shows no cause",
    ]


def test_a_spare_needs_retry_and_retry_a_number(environ: dict[str, str]) -> None:
    for option, why in (
        (("--spare", "n9"), "--spare is for --retry N"),
        (("--retry", "x"), "--retry: expected a whole number from 1 to 100, not 'x'"),
        (("--retry", "2", "--with", "torchrun"), "torchrun must be started on every node"),
    ):
        done = launched(environ, *option, "--", "train")
        assert (done.returncode, done.stderr.startswith(f"ncheck: {why}"), done.stderr.count("\n")) == (2, True, 1)


@pytest.mark.parametrize(("options", "program", "why"), [
    (("--spare", "n9"), "horovodrun -np 8 -H n1:4,n2:4 python t.py", "--spare: the program names n1 itself, in 'n1:4,"),
    (("--shrink",), "torchrun --nnodes=$N t.py", "--shrink: the program asks for '$N' nodes, and 1 are left"),
])  # fmt: skip
def test_a_program_that_could_not_follow_is_refused_before_anything_is_asked(
    options: tuple[str, ...], program: str, why: str, environ: dict[str, str]
) -> None:
    done = launched(environ, "-H", "n1,n2", "--retry", "2", *options, "--", *program.split())
    assert (done.returncode, done.stderr.startswith(f"ncheck: {why}"), done.stderr.count("\n")) == (2, True, 1)


@pytest.mark.parametrize(("names", "slots"), [
    (("n1", "s1", "n3"), {"n1": 8, "s1": 4, "n3": 2}),  # the number of ranks stays, whatever the spare has
    (("s1", "n2", "s2"), {"s1": 8, "n2": 4, "s2": 2}),
    (("n1", "s1"), {"n1": 8, "s1": 4}),
])  # fmt: skip
def test_a_spare_gets_the_slots_of_the_node_whose_place_it_takes(
    names: tuple[str, ...], slots: dict[str, int | None]
) -> None:
    nodes = (Node("n1", slots=8), Node("n2", slots=4), Node("n3", slots=2))
    place = Place(nodes, (Node("s1", slots=16), Node("s2")), ("train",))
    assert {node.name: node.slots for node in place.on(names, {}).nodes} == slots
    unknown = Place((Node("n1"),), (Node("s1", slots=4),), ("train",))
    assert [node.slots for node in unknown.on(("s1",), {}).nodes] == [4]


TIME_LIMIT = "slurmstepd: error: *** JOB 812 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***"
NODE_FAILURE = "slurmstepd: error: *** JOB 812 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE, SEE LOG ***"


@pytest.mark.parametrize(("log", "end", "program", "why"), [
    (TIME_LIMIT, JobEnd(143), "train", "the job reached its time limit"),
    (NODE_FAILURE, JobEnd(143), "train", ""),  # a killed node is no time limit
    (f"{NODE_FAILURE}\n{TIME_LIMIT}", JobEnd(143), "train", ""),
    ("", JobEnd(124), "timeout 60 train", "its time limit was over: timeout 60"),
    ("", JobEnd(124), "train", ""),
    ("", JobEnd(1, "SIGHUP"), "train", "it was ended by SIGHUP"),
    ("", JobEnd(-13, unread=True), "train", "nobody reads its output any more"),
    ("", JobEnd(-9), "train", ""),
])  # fmt: skip
def test_a_time_limit_and_a_signal_of_the_user_are_no_failures(
    tmp_path: Path, log: str, end: JobEnd, program: str, why: str
) -> None:
    (tmp_path / "log").write_text(f"{log}\n")
    found = examine_logs((str(tmp_path / "log"),), BytesIO()).diagnoses
    assert why_ended(end, found[0] if found else None, tuple(program.split())) == why


def test_the_diagnosis_of_a_try_is_kept_in_the_history(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("srun: error: Node failure on node03\n")
    settings = Settings(history=str(tmp_path / "h.db"))
    kept(examine_logs((str(tmp_path / "log"),), BytesIO()), settings, time.time())
    (entry,) = History(str(tmp_path / "h.db")).runs()
    assert [(one.code, one.nodes) for one in entry.findings] == [("node_failed", ("node03",))]
