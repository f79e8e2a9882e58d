"""The stacks of real processes, by the real py-spy: whatever state they are in, they are left as they were."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ncheck.agent.sources import Sources
from ncheck.decode import decoded
from ncheck.triage.agent import own_files
from ncheck.triage.agent import stacks as module
from ncheck.triage.agent.stacks import answer
from ncheck.triage.facts.stacks import STACKS

pytestmark = pytest.mark.slow

FOLDERS = [os.path.dirname(sys.executable), *os.environ["PATH"].split(":")]  # noqa: PTH120  a word of PATH
PY_SPY = shutil.which("py-spy", path=":".join(FOLDERS))
with_py_spy = pytest.mark.skipif(PY_SPY is None, reason="no py-spy here")
SLEEPS = "import time\ndef train():\n    print('here', flush=True)\n    time.sleep(600)\ntrain()\n"


@contextmanager
def program(
    folder: Path, text: str = SLEEPS, python: str = sys.executable, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program, wait until it says that it is there, and end it."""
    (folder / "job.py").write_text(text, encoding="utf-8")
    started = subprocess.Popen(
        [python, str(folder / "job.py")], stdout=subprocess.PIPE, start_new_session=True, env=env
    )
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
    assert decoded(value, STACKS.shape)
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


ON_A_RANK = range(4, 9)  # looks; on a busy node some of them are left out


@with_py_spy
def test_a_process_is_looked_at_several_times_with_the_lines_that_it_is_at(tmp_path: Path) -> None:
    with program(tmp_path) as one:
        while state(one.pid) != "S":  # what it printed is here before it sleeps
            assert one.poll() is None
        value = ask(one.pid)
        assert state(one.pid) == "S"
    looks = functions(value)
    assert looks == [[["train", "<module>"]]] * len(looks)
    assert len(looks) in ON_A_RANK
    assert value["processes"][0]["samples"][1:] == [None] * (len(looks) - 1)
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
    looks = functions(value)
    assert looks == [[["train", "<module>"]]] * len(looks)
    assert len(looks) in ON_A_RANK
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
    assert (seen["gone"], len(seen["samples"]) in range(2, 8)) == (True, True)


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
    seen = [(it["pid"], it["rank"], it["gone"]) for it in value["processes"]]
    looks = [len(it["samples"]) for it in value["processes"]]
    assert seen == [(one.pid, one.pid, False), (child, one.pid, False), (os.getpid(), one.pid, True)]
    assert (looks[0] in ON_A_RANK, looks[1:]) == (True, [4, 0])


def test_who_holds_the_lock_on_a_file_that_a_rank_waits_for_is_said(tmp_path: Path) -> None:
    text = f"import fcntl, time\nfile = open({str(tmp_path / 'lock')!r}, 'w')\n"
    takes, tells = "fcntl.flock(file, fcntl.LOCK_EX)\n", "print('here', flush=True)\n"
    with (
        program(tmp_path, text + takes + tells + "time.sleep(600)") as holder,
        program(tmp_path, text + tells + takes) as waiter,
    ):
        while f"-> FLOCK  ADVISORY  WRITE {waiter.pid} " not in Path("/proc/locks").read_text(encoding="utf-8"):
            time.sleep(0.01)
        (lock,) = ask(waiter.pid, [])["locks"]
    assert (lock["waits"], lock["holds"]) == (waiter.pid, holder.pid)
    assert lock["name"].endswith("job.py")


def test_a_lock_file_is_known_that_a_rank_has_open_and_one_that_nobody_has(tmp_path: Path) -> None:
    """As torch's extensions are built: who makes the file builds, and the others wait until it is gone."""
    folder = tmp_path / "extensions/py311_cpu/ops"
    library = tmp_path / "torch/utils"
    for one in (folder, library):
        one.mkdir(parents=True)
    (folder / "lock").touch()
    (library / "file_baton.py").write_text("import time\ndef wait():\n    while True: time.sleep(0.1)\n")
    path = f"import sys; sys.path.insert(0, {str(library)!r}); import file_baton\n"
    with program(tmp_path, "import os\n" + path + "print('here', flush=True)\nfile_baton.wait()\n",
                 env={**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path / "extensions")}) as waiter:  # fmt: skip
        (left,) = ask(waiter.pid, [])["locks"]
        with (folder / "lock").open(encoding="utf-8"):  # this process builds
            assert ask(waiter.pid, [])["locks"] == []
            assert ask(os.getpid(), [])["held"] == [{"pid": os.getpid(), "file": str(folder / "lock")}]
    assert left == {"waits": waiter.pid, "holds": 0, "name": "", "file": str(folder / "lock")}


AS_NOBODY = """
import json, sys
from ncheck.triage.agent.stacks import answer
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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("way", ["VIRTUAL_ENV", "cmdline"])
def test_root_runs_nothing_that_another_users_rank_names(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_owner", lambda _: own_files.Owner("", 65534, 65534))
    folder = tmp_path / "venv/bin"
    folder.mkdir(parents=True)
    marker, theirs = tmp_path / "ran", folder / "py-spy"
    theirs.write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
    theirs.chmod(0o755)
    python = folder / "python"
    python.symlink_to(sys.executable)
    environment = dict(os.environ) | ({"VIRTUAL_ENV": str(tmp_path / "venv")} if way == "VIRTUAL_ENV" else {})
    with program(tmp_path, python=str(python) if way == "cmdline" else sys.executable, env=environment) as one:
        (seen,) = ask(one.pid, ["/usr/bin"])["processes"]
    assert (seen["py_spy"] != str(theirs), marker.exists()) == (True, False)


_FOLDERS = module._Watched.folders


def watched(user: int, monkeypatch: pytest.MonkeyPatch) -> module._Watched:
    """Return this process, as an agent of that user sees it."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr("ncheck.agent.commands.SYSTEM_FOLDERS", "/none")
    monkeypatch.setenv("HOME", "/none")
    if module._Watched.folders is _FOLDERS:  # those of the interpreter that runs the tests
        monkeypatch.setattr(module._Watched, "folders", lambda _: [])
    return module._Watched(Sources({"PATH": "/none"}), os.getpid(), os.getpid())


def a_py_spy(folder: Path) -> Path:
    folder.mkdir(parents=True)
    made = folder / "py-spy"
    made.write_text("#!/bin/sh\n", encoding="utf-8")
    made.chmod(0o755)
    return made


def test_a_link_is_resolved_once_and_what_was_checked_is_what_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = a_py_spy(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    one = watched(os.geteuid(), monkeypatch)
    one.sources = Sources({"PATH": str(tmp_path / "link")})
    assert one.found() == (str(real.resolve()), "")


def test_what_the_rank_names_is_used_for_this_users_own_rank_on_this_node_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = a_py_spy(tmp_path / "bin").resolve()
    monkeypatch.setattr(module._Watched, "folders", lambda _: [str(made.parent)])
    found = []
    for root, user, agent in (("", 1000, 1000), ("", 1001, 1000), ("/proc/7/root", 1000, 1000), ("", 0, 0), ("", 7, 0)):
        owner = own_files.Owner(root, user, 1000)
        monkeypatch.setattr(module, "_owner", lambda _, it=owner: it)
        found.append(watched(agent, monkeypatch).found()[0])
    assert found == [str(made), None, None, str(made), None]


def test_nothing_beneath_proc_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a_py_spy(tmp_path / "bin")
    monkeypatch.setattr(os.path, "realpath", lambda path: path)  # as where a link there leads on into a container
    for user in (os.getuid(), 0):
        one = watched(user, monkeypatch)
        inside = f"/proc/{os.getpid()}/root{tmp_path}/bin"
        one.sources = Sources({"PATH": inside})
        assert one.found() == (None, inside + "/py-spy")


def test_a_process_with_a_thread_that_sleeps_in_the_kernel_is_not_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    monkeypatch.setattr(module._Watched, "sampled", lambda *told, **_: ran.append(told[2]))
    with program(tmp_path) as one:
        seen = module._Watched(Sources(), one.pid, one.pid)
        seen.samples, far = [[]], time.monotonic() + 60
        frames = module._Frames()
        for states in ({"S", "D"}, {"S", "T"}, {"S", "t"}):
            with monkeypatch.context() as patched:
                patched.setattr(module, "_states", lambda *_, it=states: it)
                seen.look_deeper(frames, far)
        seen.look_deeper(frames, time.monotonic() + 5)  # too little time is left for what must not be ended
        assert ran == []
        seen.look_deeper(frames, far)
    assert ran == [["--native"]]


def test_what_py_spy_leaves_stopped_is_said_and_left_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(process: Any, *_: object, **__: object) -> None:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        process.error = "ended because of its time limit"

    monkeypatch.setattr(module._Watched, "sampled", stops)
    with program(tmp_path) as one:
        seen = module._Watched(Sources(), one.pid, one.pid)
        seen.samples = [[]]
        seen.look_deeper(module._Frames(), time.monotonic() + 60)
        assert state(one.pid) == "T"
        said = f"process {one.pid} was left stopped by py-spy --native: kill -CONT {one.pid}"
        assert (seen.described()["error"], seen.described()["samples"]) == (said, [])


def test_a_stop_that_waits_for_a_thread_counts(tmp_path: Path) -> None:
    for tid, task_state in ((7, "D"), (8, "S")):
        task = tmp_path / f"7/task/{tid}"
        task.mkdir(parents=True)
        (task / "stat").write_text(f"{tid} (python) {task_state}{' 1' * 49}", encoding="utf-8")
        (task / "status").write_text("SigPnd:\t0000000000000000\nShdPnd:\t0\n", encoding="utf-8")
    assert not module._left_stopped(7, str(tmp_path))
    (tmp_path / "7/task/8/status").write_text("SigPnd:\t0000000000040000\nShdPnd:\t0\n", encoding="utf-8")
    assert module._left_stopped(7, str(tmp_path))


def test_of_very_many_processes_most_are_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: dict[int, int] = {}
    monkeypatch.setattr(module._Watched, "look", lambda one, *_: looks.update({one.pid: looks.get(one.pid, 0) + 1}))
    monkeypatch.setattr(module, "WATCHED", 0.1)
    first, rank = 1 << 30, {"started": 1, "children": []}
    ranks = [dict(rank, pid=first + at) for at in range(60)]
    ranks[0]["children"] = [first + 100 + at for at in range(10)]
    value = answer(Sources({}), {"ranks": ranks}, 20.0)
    assert {looks[first + at] for at in range(60)} <= set(ON_A_RANK)
    assert [looks[first + 100 + at] for at in range(10)] == [4] * 4 + [2] * 6
    assert value["left_out"] == 0


def read_as(user: int, path: Path, seconds: float = 20.0) -> list[tuple[int, str]]:
    reader = own_files.Reader(own_files.Owner("", user, user), {str(path): [(1, 7), (9, 8)]})
    lines: list[tuple[int, str]] = reader.lines(time.monotonic() + seconds)
    return lines


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_reads_source_with_the_rights_of_the_rank() -> None:
    with TemporaryDirectory() as folder:  # not tmp_path: that lies in a folder that only its user may enter
        source = Path(folder, "a.py")
        source.write_text("text = 1\n", encoding="utf-8")
        read = [(7, "text = 1")]
        Path(folder).chmod(0o755)
        assert (read_as(0, source), read_as(65534, source)) == (read, read)
        Path(folder).chmod(0o700)
        assert (read_as(0, source), read_as(65534, source)) == (read, [])
        Path(folder).chmod(0o755)
        source.chmod(0o600)
        assert (read_as(0, source), read_as(65534, source)) == (read, [])
        os.chown(source, 65534, 65534)
        assert (read_as(0, source), read_as(65534, source)) == ([], read)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_link_in_a_container_leads_to_no_file_of_the_node(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.py").write_text("text = 1\n", encoding="utf-8")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    (tmp_path / "root/b.py").write_text("text = 2\n", encoding="utf-8")
    owner = own_files.Owner(str(tmp_path / "root"), 0, 0)
    reader = own_files.Reader(owner, {"/link/a.py": [(1, 1)], "/../b.py": [(1, 2)], "b.py": [(1, 3)]})
    assert reader.lines(time.monotonic() + 20.0) == [(2, "text = 2")]


def test_no_device_or_pipe_is_opened_to_see_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    really = os.open

    def noted(path: str, flags: int, *more: int) -> int:
        opened.append(flags)
        return really(path, flags, *more)

    monkeypatch.setattr(os, "open", noted)
    os.mkfifo(tmp_path / "a.py")
    (tmp_path / "b.py").symlink_to("/dev/null")
    for name in ("a.py", "b.py"):
        assert own_files.source(str(tmp_path / name), os.getuid()) == []
    assert [bool(flags & os.O_PATH) for flags in opened] == [True, True]


def test_a_file_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "source", lambda *_: time.sleep(600))
    assert read_as(os.getuid(), tmp_path / "a.py", seconds=0.2) == []


def test_source_is_read_of_python_files_that_the_process_may_read(tmp_path: Path) -> None:
    source, secret, other = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "shadow"
    for path in (source, secret, other):
        path.write_text("first\nsecond\n", encoding="utf-8")
    secret.chmod(0o600)
    os.mkfifo(tmp_path / "c.py")
    user = os.getuid() + 1
    assert own_files.source(str(source), user) == ["first", "second", ""]
    assert own_files.source(str(secret), os.getuid()) == ["first", "second", ""]
    for path in (secret, other, tmp_path / "c.py", tmp_path, tmp_path / "none.py"):
        assert own_files.source(str(path), user) == []
