"""What real processes of this machine do, seen by the agent: each is started here in the state that is asserted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Unread
from ncheck.triage.agent import activity as answers
from ncheck.triage.facts.activity import ACTIVITY, ActivityFacts, ProcessActivity, Space, activity

READY = "print(1, flush=True); "
SLEEPS = f"import signal; {READY}signal.pause()"


@contextmanager
def running(program: str, *more: str) -> Iterator[int]:
    """Start a Python program and wait until it prints a line; end it afterwards."""
    process = subprocess.Popen([sys.executable, "-c", program, *more], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def wait_for(pid: int, state: str) -> None:
    """Look until a process is in this state."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        os.sched_yield()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def looked_at(*pids: int, begun: int | None = None) -> ActivityFacts:
    ranks: list[Any] = [
        {"rank": rank, "pid": pid, "started": started(pid) if begun is None else begun, "inner_pid": pid,
         "namespace": "", "children": children(pid)}
        for rank, pid in enumerate(pids)
    ]  # fmt: skip
    value = answers.answer(None, {"ranks": ranks}, 10.0)
    facts = activity(Evidence("n", Login(reached=True), replies={ACTIVITY.key: Reply(Status.OK, value=value)}))
    assert isinstance(facts, ActivityFacts)
    return facts


def of(facts: ActivityFacts, pid: int) -> ProcessActivity:
    found = facts.of(pid)
    assert isinstance(found, ProcessActivity)
    return found


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WATCHED", 0.5)


def test_a_process_that_is_stopped_one_that_computes_and_one_that_sleeps_are_told_apart() -> None:
    with (
        running(SLEEPS) as still,
        running(READY + "x = 0\nwhile True: x += 1") as busy,
        running(SLEEPS) as stopped,
    ):
        wait_for(still, "S")
        os.kill(stopped, signal.SIGSTOP)
        wait_for(stopped, "T")
        facts = looked_at(still, busy, stopped)
    assert [of(facts, pid).states for pid in (still, stopped)] == ["SS", "TT"]
    assert (of(facts, still).cpu_seconds, of(facts, still).grown("read")) == (0.0, 0)
    assert of(facts, busy).cpu_seconds > 0.05
    assert of(facts, busy).threads[0].tid == busy


def test_a_child_that_ended_is_a_zombie_with_its_exit_code_beneath_its_rank() -> None:
    program = "import os, signal; os.fork() or os._exit(7); os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT); "
    with running(program + READY + "signal.pause()") as rank:
        (child,) = children(rank)
        facts = looked_at(rank)
    (found,) = facts.beneath(rank)
    assert (found.pid, found.states, found.ended) == (child, "ZZ", True)
    assert found.looks[-1].exit_code == 7 << 8


def test_a_thread_that_sleeps_in_the_kernel_is_listed_with_the_function_that_it_waits_in() -> None:
    # The parent of vfork waits, uninterruptible, until its child ends or runs another program.
    program = "import ctypes; libc = ctypes.PyDLL(None); libc.vfork() or (libc.write(1, b'1\\n', 2), libc.sleep(60))"
    with running(program) as rank:
        wait_for(rank, "D")
        facts = looked_at(rank)
    (thread,) = of(facts, rank).threads
    assert (thread.tid, thread.states, thread.ran) == (rank, ("D", "D"), 0)
    assert thread.wait
    assert [one.pid != rank for one in facts.beneath(rank)] == [True]


def test_a_file_that_grows_is_told_with_its_positions_and_the_room_beside_it(tmp_path: Path) -> None:
    program = f"import os, sys; os.chdir(sys.argv[1]); f = open('ckpt.pt', 'wb', 0); f.write(b'x'); {READY}"
    with running(program + "\nwhile True: f.write(b'x' * 4096)", str(tmp_path)) as rank:
        facts = looked_at(rank)
    own = of(facts, rank)
    (file,) = (one for one in own.written if one.path == str(tmp_path / "ckpt.pt"))
    assert file.start
    assert file.grown > 0
    assert own.cwd == str(tmp_path)
    assert any(str(tmp_path).startswith(mount.point) and mount.used for mount in own.mounts)
    assert facts.spaces
    assert isinstance(facts.spaces[str(tmp_path)], Space)


def test_a_process_with_the_number_of_one_that_ended_is_not_taken_for_it() -> None:
    with running(SLEEPS) as other:
        facts = looked_at(other, begun=1)
    assert (facts.processes, facts.of(other)) == ({}, Unread("it had ended"))


def test_a_process_that_ends_between_the_looks_has_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(SLEEPS) as rank:

        def end(_: float) -> None:
            os.kill(rank, signal.SIGKILL)
            os.waitpid(rank, 0)

        monkeypatch.setattr(answers, "time", SimpleNamespace(sleep=end, monotonic=time.monotonic))
        facts = looked_at(rank)
    assert (len(of(facts, rank).looks), of(facts, rank).ended) == (1, True)


def mounts_that_hang() -> bool:
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


# A file system in user space that never answers: what touches it waits until the descriptor is closed.
HANGS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x00020000)
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
device = os.open("/dev/fuse", os.O_RDWR)
options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % device
assert libc.mount(b"stuck", sys.argv[1].encode(), b"fuse", 0, options.encode()) == 0, os.strerror(ctypes.get_errno())
print(1, flush=True)
os.listdir(sys.argv[1])
"""


def test_a_thread_that_sleeps_for_a_file_system_beside_the_main_one_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a checkpoint that is written meanwhile. Here another function stands for those of FUSE."""
    program = "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); "
    with running(program + f"{READY}threading.Event().wait()") as rank:
        wait_for(rank, "S")
        assert [one.tid for one in of(looked_at(rank), rank).threads] == [rank]
        monkeypatch.setattr(answers, "_OF_STORAGE", re.compile("nanosleep"))
        threads = of(looked_at(rank), rank).threads
    assert [(one.tid == rank, one.states, one.ran) for one in threads] == [
        (True, ("S", "S"), 0), (False, ("S", "S"), 0)
    ]  # fmt: skip


@pytest.mark.skipif(not mounts_that_hang(), reason="needs root and /dev/fuse")
def test_a_file_system_that_does_not_answer_holds_its_process_and_not_the_agent(tmp_path: Path) -> None:
    with running(HANGS, str(tmp_path)) as rank:
        wait_for(rank, "D")
        facts = looked_at(rank)
    own = of(facts, rank)
    assert own.states == "DD"
    assert ("fuse", str(tmp_path)) in [(mount.kind, mount.point) for mount in own.mounts]
