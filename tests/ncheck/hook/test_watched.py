"""ncheck.preflight(watch=True): the job is watched from inside, notices nothing of it, and takes the watch with it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from ncheck.fleet.archive import load_archive
from ncheck.hook.meeting.messages import Told
from ncheck.hook.preflight import _let_watch, _Options
from ncheck.hook.watcher import _saved, is_first
from ncheck.model.cluster import Cluster
from ncheck.model.job import Target
from ncheck.this_machine.process import Other
from ncheck.triage.join import examine_job
from ncheck.triage.watch import Alarm

from tests.ncheck.hook.ranks import PATIENCE, Ended, ended, job, marked, start, wait_for
from tests.ncheck.hook.test_preflight import COMPARED, RANKS, UNCHANGED, WELL

pytestmark = pytest.mark.slow  # ranks as real processes, or meetings that wait

HOST = socket.gethostname()
MARK = "NCHECK_WATCHER=1"
UNNOTICED = {**WELL, "changed": [], "modules": ["ncheck"], "children": False}
# A rank works until the file is there. It looks for children as long as it does.
WORK = """
import time
while not os.path.exists(os.environ["GATE"]):
    time.sleep(0.02)
"""


class Running:
    """The ranks of a job on this host that wait for `go_on`."""

    def __init__(self, folder: Path, size: int, variables: dict[str, str], words: dict[str, Any]) -> None:
        self.gate = folder / "gate"
        environ = job(size, GATE=str(self.gate), **variables)
        self.token = f"NCHECK_TOKEN={environ['NCHECK_TOKEN']}"
        words = {"select": RANKS, **words}
        before = f"import os; os.chdir({str(folder)!r})\n{UNCHANGED}"
        self.ranks = [start(one, environ, before=before, after=WORK + COMPARED, **words) for one in range(size)]

    def line(self) -> str:
        """Return the next line of rank 0's standard error, less the time in it."""
        assert self.ranks[0].stderr
        return re.sub(r" \d\d:\d\d:\d\d ", " TIME ", self.ranks[0].stderr.readline())

    def watchers(self) -> set[int]:
        return {int(one) for one in marked(self.token, MARK)}

    def go_on(self) -> list[Ended]:
        self.gate.touch()
        return ended(self.ranks)


@contextmanager
def running(folder: Path, size: int = 2, variables: dict[str, str] | None = None, **words: Any) -> Iterator[Running]:
    run = Running(folder, size, variables or {}, words)
    try:
        yield run
    finally:
        for rank in run.ranks:
            rank.kill()
            rank.communicate()
        wait_for(lambda: not marked(run.token))


def watched(size: int) -> str:
    return f"ncheck: TIME the job is watched: {size} rank{'s' * (size > 1)} on node {HOST}\n"


def parents(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def test_a_job_that_is_watched_notices_nothing(tmp_path: Path) -> None:
    with running(tmp_path, 3, watch=True) as run:
        assert run.line() == watched(3)
        ranks = {one.pid for one in run.ranks}
        above = {above for watcher in run.watchers() for above in parents(watcher)}
        assert (len(run.watchers()) >= 3, above & ranks) == (True, set())
        found = run.go_on()
        assert [(one.said, one.exit_code) for one in found] == [(UNNOTICED, 0)] * 3
        assert [one.stderr for one in found[1:]] == ["", ""]
        wait_for(lambda: not run.watchers())


def test_a_watch_ends_with_rank_0_whatever_ends_it(tmp_path: Path) -> None:
    with running(tmp_path, variables={"NCHECK_WATCH": "on"}) as run:
        assert run.line() == watched(2)
        run.ranks[0].send_signal(signal.SIGKILL)
        wait_for(lambda: not run.watchers())
        assert run.ranks[1].poll() is None
        assert run.go_on()[1] == Ended(UNNOTICED, "")


@pytest.mark.parametrize(("variables", "words"), [({}, {}), ({"NCHECK_WATCH": "0"}, {"watch": True})])
def test_nothing_is_left_where_no_watch_is_wanted(
    tmp_path: Path, variables: dict[str, str], words: dict[str, Any]
) -> None:
    with running(tmp_path, variables=variables, **words) as run:
        wait_for(lambda: {int(one) for one in marked(run.token)} == {one.pid for one in run.ranks})
        assert run.go_on() == [Ended(UNNOTICED, "")] * 2


def test_a_job_that_is_stopped_is_not_watched() -> None:
    environ = job(2, NCHECK_WATCH="1")
    wait = "import time; time.sleep(2)"  # as a script that does more before it ends
    first = start(0, environ, select=RANKS, timeout=20, after=wait)
    found = ended([first, start(1, {**environ, "WORLD_SIZE": "3"}, select=RANKS, timeout=20, after=wait)])
    assert [one.said["raised"] for one in found] == ["PreflightError"] * 2
    assert "watched" not in found[0].stderr
    wait_for(lambda: not marked(f"NCHECK_TOKEN={environ['NCHECK_TOKEN']}"))


def test_who_kills_the_watchers_changes_nothing_for_the_job(tmp_path: Path) -> None:
    with running(tmp_path, watch=True) as run:
        assert run.line() == watched(2)
        for pid in run.watchers():
            with suppress(ProcessLookupError):  # it ended because the one before it did
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not run.watchers())
        assert run.go_on() == [Ended(UNNOTICED, "")] * 2


def test_a_standard_error_that_nobody_reads_any_more_ends_neither_the_job_nor_the_watch(tmp_path: Path) -> None:
    with running(tmp_path, watch=True, variables={"NCHECK_STALLED": "10"}) as run:
        assert run.ranks[0].stderr
        assert run.line() == watched(2)
        run.ranks[0].stderr.close()
        run.ranks[0].stderr = None
        # The ranks wait for their input: they stand still.
        wait_for(lambda: any(tmp_path.glob("ncheck-stall-*.zip")))


def test_a_watcher_that_could_not_start_is_one_warning(capsys: pytest.CaptureFixture[str]) -> None:
    options = _Options("raise", (), (), None, apply=False, strict=False, probe="none", watch=True, environ={})
    ours, its = socket.socketpair()
    its.close()
    with ours:
        _let_watch(ours, options, Told({"stop": False, "unsure": False}))
    warning = "ncheck: warning: the job is not watched: the process that should do it has ended\n"
    assert capsys.readouterr().err == warning


def test_evidence_that_cannot_be_saved_is_told_and_there_is_an_end_to_it(capfd: pytest.CaptureFixture[str]) -> None:
    alarm = Alarm(slow=False, since=0.0, text="", report=examine_job(Cluster((), {}), Target()), evidence=(), job=None)
    saved = [_saved(alarm, folder, before) for folder, before in (("/nowhere", 0), ("", 0), ("/", 5))]
    assert saved == [False, False, False]
    lines = [re.sub(r"\d\d:\d\d:\d\d|-stall-\S+", "", line) for line in capfd.readouterr().err.splitlines()]
    assert lines == [
        "ncheck:  the evidence could not be saved: /nowhere/ncheck No such file or directory",
        "ncheck:  the evidence is not saved: the job's folder is gone",
        "ncheck:  the evidence is not saved: 5 archives of this job are in /",
    ]


def test_what_makes_a_job_stand_still_is_printed_and_saved_in_its_folder(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys, ncheck; ncheck.preflight(watch=True, select='NC8'); sys.stdin.read()")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NCHECK")}
    environ |= job(1, RANK="0", NCHECK_STALLED="10", PYTHONPATH=os.pathsep.join(sys.path))
    with subprocess.Popen(
        [sys.executable, "-m", "ncheck.hook", "--watch", "--select", RANKS, script], env=environ, cwd=tmp_path,
        text=True, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as rank:  # fmt: skip
        assert rank.stderr
        lines = list[str]()
        while not lines or "saved: " not in lines[-1]:
            lines.append(rank.stderr.readline())
            assert lines[-1], lines
        _, after = rank.communicate("", timeout=PATIENCE)
    assert rank.returncode == 0
    assert [line[:7] for line in lines if "the job is watched" in line] == ["ncheck:"]  # once: the script asks again
    assert re.fullmatch(
        r"ncheck: \S+ the job has moved (?:next to nothing|less than before) for .* \(since .*\)\n", lines[1]
    )
    assert lines[-2].strip()  # the page of triage is in between
    saved = Path(lines[-1].split()[-1])
    assert (saved.parent, after) == (tmp_path, "")
    evidence, target = load_archive(str(saved))
    assert ([one.node for one in evidence], target) == ([HOST], Target(rank.pid, HOST))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("also", ["", "s.listen(); "])
def test_another_user_who_takes_the_name_of_a_watch_keeps_nobody_away(also: str) -> None:
    """The name has a process and its start in it, which all can read."""
    rank = Other(os.getpid())
    name = f"\0ncheck-watch-{rank.pid}-{rank.started}-0"
    taken = f"s = socket.socket(socket.AF_UNIX); s.bind({name!r}); {also}"
    program = f"import socket, sys; {taken}print(1, flush=True); sys.stdin.read()"
    squatter = Popen(
        ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", program], stdin=PIPE, stdout=PIPE
    )
    with squatter, socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        assert squatter.stdout is not None
        assert squatter.stdout.readline() == b"1\n"
        assert [is_first(first, rank), is_first(second, rank)] == [True, False]
        squatter.communicate(b"")


def test_one_watch_of_a_job_is_enough() -> None:
    rank = Other(os.getpid())
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        assert [is_first(first, rank), is_first(second, rank)] == [True, False]
    with socket.socket(socket.AF_UNIX) as third:
        assert is_first(third, rank)
