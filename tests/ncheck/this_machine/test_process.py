from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from ncheck.this_machine.process import Other, end_tree, owner_of, ready, run_all

HERE = {"PATH": os.environ["PATH"]}


def gone(pid: int) -> bool:
    """Wait for the end of a process that is no child of ours."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_all_run_at_once_and_each_says_its_own() -> None:
    meet = "import os,sys;sys.stdout.write(sys.argv[1]);sys.stderr.write('e'+sys.argv[1]);sys.exit(int(sys.argv[1]))"
    ended = run_all([[sys.executable, "-c", meet, str(number)] for number in (0, 7)], 60.0, HERE)
    assert [(one.stdout, one.stderr, one.exit_status, one.late) for one in ended] == [
        ("0", "e0", 0, False),
        ("7", "e7", 7, False),
    ]


def test_a_child_that_outlives_its_parent_and_holds_its_output_is_not_waited_for_and_is_ended() -> None:
    script = "sleep 600 & echo $!; echo said"
    (one,) = run_all([["sh", "-c", script]], 60.0, HERE)
    pid, said = one.stdout.split()
    assert (said, one.exit_status, one.late) == ("said", 0, False)
    assert gone(int(pid))


def test_one_that_left_the_session_is_ended_all_the_same_and_nobody_else() -> None:
    script = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as bystander:
        (one,) = run_all([[sys.executable, "-c", script]], 60.0, HERE)
        assert gone(int(one.stdout))
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.slow
def test_one_that_heeds_no_signal_is_killed_with_all_of_its_session_when_its_time_is_over() -> None:
    script = "trap '' TERM; sleep 600 & echo $!; while :; do sleep 1; done"
    (one,) = run_all([["sh", "-c", script]], 3.0, HERE)
    assert (one.exit_status, one.late) == (None, True)
    assert gone(int(one.stdout.split()[0]))


@pytest.mark.slow
def test_one_that_is_asked_to_end_may_still_say_why() -> None:
    script = "trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    (one,) = run_all([["sh", "-c", script]], 4.0, HERE)
    assert (one.stdout.split(), one.exit_status, one.late) == (["ready", "ended"], 3, True)


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)

    def press() -> None:
        with told.open() as pipe:
            pids.append(int(pipe.read()))
        os.kill(os.getpid(), signal.SIGINT)

    pids: list[int] = []
    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_all([["sh", "-c", f"echo $$ > {told}; sleep 600"]], 60.0, HERE)
    thread.join()
    assert gone(pids[0])


def test_a_flood_is_bounded_and_its_end_is_kept() -> None:
    flood = "import sys\nfor _ in range(40): sys.stdout.write('x' * 2**20)\nsys.stdout.write('end')"
    (one,) = run_all([[sys.executable, "-c", flood]], 60.0, HERE)
    assert (len(one.stdout), one.stdout[-3:], one.exit_status) == (8 * 2**20, "end", 0)


def test_a_program_that_is_not_there_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        run_all([["/nowhere/mpirun"]], 5.0, HERE)


def test_without_psutil_as_in_the_single_file_a_program_is_run_and_its_group_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    (one,) = run_all([["sh", "-c", "sleep 600 & echo $!"]], 60.0, HERE)
    assert (one.exit_status, gone(int(one.stdout))) == (0, True)
    with pytest.raises(FileNotFoundError):
        run_all([["no-such-program"]], 60.0, HERE)


def test_a_process_that_proc_hides_is_there_and_its_user_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))  # as hidepid=2 does for processes of other users
    assert owner_of(1) == ""


def test_a_child_is_ended_where_proc_denies_other_users_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise psutil.AccessDenied(1)

    monkeypatch.setattr(psutil.Process, "children", denied)  # as hidepid=1 does
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    end_tree(child)
    assert child.returncode == -signal.SIGTERM


@pytest.mark.parametrize("old", [False, True])
def test_the_end_of_another_process_ends_the_wait_for_something_to_read(
    monkeypatch: pytest.MonkeyPatch,
    old: bool,  # noqa: FBT001
) -> None:
    if old:  # as of a Python that was built for an older kernel
        monkeypatch.delattr(os, "pidfd_open")
    read_end, write_end = os.pipe()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        other = Other(child.pid)
        assert (other.is_over(), other.number < 0) == (False, old)
        os.write(write_end, b".")
        assert ready(read_end, other)
        os.read(read_end, 1)
        assert child.stdin
        child.stdin.close()
        while not other.is_over():
            assert not ready(read_end, other)
        assert Other(child.pid).is_over()  # it has ended, and nobody took note of that yet
    other.close()
    os.close(read_end)
    os.close(write_end)
