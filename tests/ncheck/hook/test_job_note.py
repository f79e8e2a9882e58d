"""ncheck.preflight(history=FILE): one note of a job, with how it ended, and which rank failed first."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ncheck.errors import SettingsError
from ncheck.history.entry import JOB, Entry
from ncheck.history.jobs import FAILED_FIRST
from ncheck.history.store import History
from ncheck.hook.job_note import JobEnded, RankEnds, exit_code
from ncheck.hook.preflight import _Options, _path
from ncheck.this_machine.process import Other

from tests.ncheck.hook.ranks import PATIENCE, Ended, ended, job, marked, start, wait_for
from tests.ncheck.hook.test_preflight import RANKS
from tests.ncheck.hook.test_watched import UNNOTICED, WORK, running

HOST = socket.gethostname()


def child(script: str, **environ: str) -> subprocess.Popen[bytes]:
    """Start a process that ends so when its input does; it has begun, and /proc shows its variables."""
    made = subprocess.Popen(
        ["/bin/sh", "-c", f"echo; read line; {script}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    )
    assert made.stdout
    assert made.stdout.readline() == b"\n"
    return made


def ends(*scripts: str) -> RankEnds:
    """Let these ranks end one after the other, and return what is seen of it."""
    made = [child(script, RANK=str(rank), WORLD_SIZE=str(len(scripts))) for rank, script in enumerate(scripts)]
    seen = RankEnds({rank: one.pid for rank, one in enumerate(made)})
    assert set(seen.running) == set(range(len(made)))
    for number, one in enumerate(made, 1):
        assert one.stdin
        one.stdin.close()
        one.stdin = None
        while len(seen.codes) < number:
            seen.look()
        one.communicate()
    return seen


@pytest.mark.parametrize(("scripts", "job"), [
    (("exit 0", "exit 0"), JobEnded(0)),
    (("exit 0", "exit 3", "exit 4"), JobEnded(3, 1)),
    (("kill -KILL $$",), JobEnded(137, 0)),
    (("kill -TERM $$", "exit 1"), JobEnded(143)),  # a launcher ended it: a rank of another node failed
    (("exit 1", "kill -INT $$"), None),  # somebody typed ^C
    (("exit 130",), None),
])  # fmt: skip
def test_the_first_rank_that_fails_is_how_a_job_ended(scripts: tuple[str, ...], job: JobEnded | None) -> None:
    assert ends(*scripts).job == job


def test_a_process_that_is_no_rank_of_that_number_is_not_looked_at() -> None:
    """Of ranks in a namespace of processes of their own, the numbers are those of others here."""
    other = child("exit 9", RANK="1", WORLD_SIZE="2")
    assert RankEnds({0: other.pid, 5: os.getpid()}).running == {}
    other.communicate()


def test_where_the_parent_was_faster_the_end_is_what_the_kernel_still_knows_or_unknown() -> None:
    one = child("exit 7")
    other = Other(one.pid)
    one.communicate()
    assert (other.is_over(), exit_code(other) in (7, None)) == (True, True)
    assert RankEnds({}).job is None


def line_of(rank: subprocess.Popen[str]) -> str:
    assert rank.stderr
    return rank.stderr.readline()


def jobs(path: Path) -> list[Entry]:
    return [run for run in History(str(path)).runs() if run.kind == JOB]


@pytest.mark.slow
def test_a_job_leaves_one_note_and_the_rank_that_failed(tmp_path: Path) -> None:
    path, gate = tmp_path / "jobs.db", tmp_path / "gate"
    environ = job(3, GATE=str(gate))
    work = f"import os{WORK}os.environ['RANK'] == '1' and os._exit(5)"
    ranks = [start(one, environ, after=work, select=RANKS, history=str(path)) for one in range(3)]
    assert line_of(ranks[0]).endswith(f"the end of the job will be noted in {path}\n")
    gate.touch()
    assert [(one.exit_code, one.stderr) for one in ended(ranks)] == [(0, ""), (5, ""), (0, "")]
    wait_for(lambda: not marked(f"NCHECK_TOKEN={environ['NCHECK_TOKEN']}"))
    (note,) = jobs(path)
    first = [(one.nodes, one.place, one.value) for one in note.figures if one.what == FAILED_FIRST]
    assert (note.exit_code, first) == (5, [((HOST,), "rank 1", 5.0)])


@pytest.mark.slow
def test_with_a_watch_beside_it_the_note_is_made_too_and_the_script_that_asks_again_makes_no_second(
    tmp_path: Path,
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys, ncheck; ncheck.preflight(watch=True, history='jobs.db'); sys.stdin.read()")
    bare = {name: value for name, value in os.environ.items() if not name.startswith("NCHECK")}
    environ = {**bare, **job(1, RANK="0", PYTHONPATH=os.pathsep.join(sys.path))}
    with subprocess.Popen(
        [sys.executable, "-m", "ncheck.hook", "--watch", "--history", "jobs.db", "--select", RANKS, script],
        env=environ, cwd=tmp_path, text=True, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as rank:  # fmt: skip
        assert "the end of the job will be noted in" in line_of(rank)
        assert "the job is watched: 1 rank on node" in line_of(rank)
        rank.communicate("", timeout=PATIENCE)
    wait_for(lambda: not marked(f"NCHECK_TOKEN={environ['NCHECK_TOKEN']}"))
    assert [one.exit_code for one in jobs(tmp_path / "jobs.db")] == [0]


@pytest.mark.slow
def test_a_file_that_cannot_be_used_is_one_line_and_the_job_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, history="/proc/jobs.db") as run:
        line = run.line()
        assert line.startswith("ncheck: TIME how the job ends is not noted: /proc/jobs.db: ")
        assert run.go_on() == [Ended(UNNOTICED, "")] * 2


@pytest.mark.slow
def test_who_interrupts_a_job_leaves_no_note(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with running(tmp_path, history=str(path)) as run:
        assert "the end of the job will be noted in" in run.line()
        run.ranks[0].send_signal(signal.SIGINT)
        run.ranks[0].communicate()
        wait_for(lambda: not run.watchers())
    assert jobs(path) == []


def test_a_path_is_that_of_the_rank_and_no_path_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [_path("jobs.db"), _path(Path("/a/b")), _path("")] == [f"{tmp_path}/jobs.db", "/a/b", ""]
    with pytest.raises(SettingsError, match="history=7 is not the path of a file"):
        _path(7)
    stays = [
        _Options("raise", (), (), None, apply=False, strict=False, probe="none", watch=False, environ={}, history=one)
        for one in ("", "/jobs.db")
    ]
    assert [one.stays for one in stays] == [False, True]
