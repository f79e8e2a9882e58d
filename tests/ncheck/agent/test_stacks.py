"""The stacks of real processes, by the real py-spy: whatever state they are in, they are left as they were."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import stacks as module
from ncheck.agent.answers.stacks import answer
from ncheck.agent.sources import Sources
from ncheck.facts.shapes import misfit
from ncheck.facts.stacks import STACKS

FOLDERS = [os.path.dirname(sys.executable), *os.environ["PATH"].split(":")]  # noqa: PTH120  a word of PATH
PY_SPY = shutil.which("py-spy", path=":".join(FOLDERS))
with_py_spy = pytest.mark.skipif(PY_SPY is None, reason="no py-spy here")
SLEEPS = "import time\ndef train():\n    print('here', flush=True)\n    time.sleep(600)\ntrain()\n"


@contextmanager
def program(folder: Path, text: str = SLEEPS, python: str = sys.executable) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program, wait until it says that it is there, and end it."""
    (folder / "job.py").write_text(text, encoding="utf-8")
    started = subprocess.Popen([python, str(folder / "job.py")], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert started.stdout
        assert select.select([started.stdout], [], [], 60)[0]
        started.stdout.readline()
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate()


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def ask(pid: int, path: Sequence[str] = FOLDERS, *, native: bool = False, since: int | None = None) -> dict[str, Any]:
    rank = {"pid": pid, "started": started(pid) if since is None else since, "children": []}
    value = answer(Sources({"PATH": ":".join(path)}), {"ranks": [rank], "native": native}, 20.0)
    assert not misfit(value, STACKS.shape)
    assert isinstance(value, dict)
    return value


def functions(value: dict[str, Any]) -> list[list[list[str]]]:
    """Return the functions of each thread at each look, the innermost first."""
    names = [frame[0] for frame in value["frames"]]
    looks: list[list[list[str]]] = []
    for sample in value["processes"][0]["samples"]:
        looks.append(looks[-1] if sample is None else [[names[it] for it in one["stack"]] for one in sample])
    return looks


@pytest.fixture
def no_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("py-spy"))


@with_py_spy
def test_a_process_is_looked_at_several_times_with_the_lines_that_it_is_at(tmp_path: Path) -> None:
    with program(tmp_path) as one:
        value = ask(one.pid)
        assert state(one.pid) == "S"
    assert functions(value) == [[["train", "<module>"]]] * 4
    assert value["processes"][0]["samples"][1:] == [None] * 3
    assert [frame[3:] for frame in value["frames"]] == [[4, "time.sleep(600)"], [5, "train()"]]
    first, last = value["processes"][0]["tasks"]
    assert (first[0]["tid"], first[0]["state"], first[0]["switches"]) == (one.pid, "S", last[0]["switches"])
    assert 1.9 < value["processes"][0]["seconds"] < 20


@with_py_spy
def test_a_stopped_process_stays_stopped_and_holds_nothing_up(tmp_path: Path) -> None:
    with program(tmp_path) as one:
        os.kill(one.pid, signal.SIGSTOP)
        os.waitpid(one.pid, os.WUNTRACED)
        value = ask(one.pid, native=True)
        assert state(one.pid) == "T"
    assert functions(value) == [[["train", "<module>"]]] * 4
    assert value["processes"][0]["native"] is None
    assert {look[0]["state"] for look in value["processes"][0]["tasks"]} == {"T"}


@with_py_spy
def test_native_frames_come_only_where_they_are_asked_for(tmp_path: Path) -> None:
    with program(tmp_path) as one:
        plain, native = ask(one.pid), ask(one.pid, native=True)
        assert state(one.pid) == "S"
    assert plain["processes"][0]["native"] is None
    (thread,) = native["processes"][0]["native"]
    names = [native["frames"][it][0] for it in thread["stack"]]
    assert "train" in names
    assert len(names) > 2


def test_a_process_that_has_ended_or_has_another_ones_number_is_gone(tmp_path: Path) -> None:
    with program(tmp_path) as one:
        other = ask(one.pid, since=started(one.pid) + 1)["processes"][0]
        since = started(one.pid)
        one.kill()
        one.wait()
        ended = ask(one.pid, since=since)["processes"][0]
    for it in (other, ended):
        assert (it["gone"], it["samples"], it["tasks"]) == (True, [], [])


@with_py_spy
def test_a_process_that_ends_between_the_looks_keeps_what_was_seen(tmp_path: Path) -> None:
    with program(tmp_path, "import time\nprint('here', flush=True)\ntime.sleep(1)\n") as one:
        (seen,) = ask(one.pid)["processes"]
    assert (seen["gone"], len(seen["samples"]) in (2, 3)) == (True, True)


@pytest.mark.usefixtures("no_py_spy")
def test_without_py_spy_the_kernel_names_each_thread_and_its_call(tmp_path: Path) -> None:
    text = "import os, threading\nthreading.Thread(target=lambda: os.read(os.pipe()[0], 1)).start()\n" + SLEEPS
    with program(tmp_path, text) as one:
        (seen,) = ask(one.pid)["processes"]
    assert (seen["py_spy"], seen["samples"], seen["error"]) == ("", [], "")
    tasks = {task["tid"] == one.pid: task for task in seen["tasks"][-1]}
    assert len(tasks) == 2
    assert (tasks[False]["state"], tasks[False]["file"][:6]) == ("S", "pipe:[")


@with_py_spy
def test_a_program_that_is_not_python_says_so_at_once() -> None:
    one = subprocess.Popen(["sleep", "600"])
    try:
        (seen,) = ask(one.pid)["processes"]
    finally:
        one.kill()
        one.wait()
    assert seen["samples"] == []
    assert "Failed to find python version" in seen["error"]


@with_py_spy
def test_a_child_is_looked_at_only_if_it_is_beneath_its_rank(tmp_path: Path) -> None:
    text = "import os, time\nif os.fork() == 0:\n    time.sleep(600)\n" + SLEEPS
    with program(tmp_path, text) as one:
        (child,) = map(int, Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text(encoding="utf-8").split())
        rank = {"pid": one.pid, "started": started(one.pid), "children": [child, os.getpid()]}
        value = answer(Sources({"PATH": ":".join(FOLDERS)}), {"ranks": [rank]}, 20.0)
    seen = [(it["pid"], it["rank"], it["gone"], len(it["samples"])) for it in value["processes"]]
    assert seen == [(one.pid, one.pid, False, 4), (child, one.pid, False, 4), (os.getpid(), one.pid, True, 0)]


AS_NOBODY = """
import json, sys
from ncheck.agent.answers.stacks import answer
from ncheck.agent.sources import Sources
print(json.dumps(answer(Sources({"PATH": sys.argv[3]}), json.loads(sys.argv[1]), float(sys.argv[2]))))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@with_py_spy
def test_an_ordinary_user_is_refused_the_processes_of_others() -> None:
    rank = {"pid": os.getpid(), "started": started(os.getpid()), "children": []}
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None or PY_SPY is None:
        pytest.skip("no python3 that every user may run")
    package = Path(module.__file__).parents[3]
    command = [python, "-c", AS_NOBODY, json.dumps({"ranks": [rank]}), "20.0", str(Path(PY_SPY).parent)]
    run = subprocess.run(
        command, capture_output=True, check=False, text=True, cwd="/", user=65534, group=65534,
        env={"PYTHONPATH": str(package)},
    )  # fmt: skip
    if run.returncode:
        pytest.skip(f"nobody may not read {package}")
    (seen,) = json.loads(run.stdout)["processes"]
    assert seen["samples"] == []
    assert "Permission" in seen["error"] or seen["py_spy"] == ""
    assert seen["tasks"][0][0]["syscall"] == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_runs_no_py_spy_that_another_user_could_have_written(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_mode & 0o022 and not parent.stat().st_mode & 0o1000:
            pytest.skip(f"others may write {parent}")
    marker, theirs = tmp_path / "ran", folder / "py-spy"
    theirs.write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
    theirs.chmod(0o755)
    os.chown(theirs, 65534, 65534)
    with program(tmp_path) as one:
        (seen,) = ask(one.pid, [str(folder)])["processes"]
        assert (seen["py_spy"] == str(theirs), seen["not_run"] in ("", str(theirs))) == (False, True)
        os.chown(theirs, 0, 0)
        theirs.chmod(0o777)
        ask(one.pid, [str(folder)])
    assert not marker.exists()


def test_what_hangs_costs_its_own_look_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    slow = folder / "py-spy"
    slow.write_text("#!/bin/sh\nsleep 600\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    monkeypatch.setattr(module._Watched, "found", lambda _: (str(slow), ""))
    with program(tmp_path) as one:
        (seen,) = ask(one.pid)["processes"]
    assert seen["samples"] == []
    assert seen["hangs"] or "time limit" in seen["error"]


def test_source_is_read_of_python_files_that_the_process_may_read(tmp_path: Path) -> None:
    source, secret, other = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "shadow"
    for path in (source, secret, other):
        path.write_text("first\nsecond\n", encoding="utf-8")
    secret.chmod(0o600)
    os.mkfifo(tmp_path / "c.py")
    user = os.getuid() + 1
    assert module._source(str(source), user) == ["first", "second", ""]
    assert module._source(str(secret), os.getuid()) == ["first", "second", ""]
    for path in (secret, other, tmp_path / "c.py", tmp_path, tmp_path / "none.py"):
        assert module._source(str(path), user) == []
