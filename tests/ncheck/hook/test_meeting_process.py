"""A meeting runs in the job's own process and leaves it as it was, however it ends."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from ncheck.hook.meeting.messages import NotMet, Told

from tests.ncheck.hook.gathering import VERDICT, Bare, Job, child, dial, nothing_left  # noqa: F401  a fixture

# Ranks as real processes, or meetings that wait.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

TOLD = Told(VERDICT)
ROOT = Path(__file__).parents[3]

STATE = """
import json, logging, os, resource, signal, socket, sys, threading

def state():
    return {
        "signals": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "mask": sorted(map(str, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
        "wakeup": signal.set_wakeup_fd(-1),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "log": [logging.root.level, len(logging.root.handlers), sorted(logging.root.manager.loggerDict)],
        "files": sorted(os.listdir("/proc/self/fd")),
        "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "timeout": socket.getdefaulttimeout(),
        "threads": threading.active_count(),
        "mode": os.umask(0o22),
        "group": os.getpgrp(),
    }
"""

MEET = """
from tests.ncheck.hook.gathering import Job, VERDICT
from ncheck.hook.meeting.messages import Told

def meet(size=3, **words):
    job = Job(size, **words)
    others = [job.start(number) for number in range(1, size)]
    assert job.meet(0) == Told(VERDICT), "rank 0"
    assert [other.result(20) for other in others] == [Told(VERDICT)] * (size - 1)
    import threading
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()
"""


def run(program: str, **words: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", program]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False, **words)  # type: ignore[call-overload,no-any-return]


def test_nothing_of_the_process_changes() -> None:
    done = run(f"{STATE}{MEET}\nbefore = state(); meet(); print(json.dumps([before, state()]))")
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert after == before


@pytest.mark.parametrize("closed", [(1, 2), (0, 1, 2)])
def test_it_works_with_standard_files_closed(closed: tuple[int, ...], tmp_path: Path) -> None:
    close = "".join(f"os.close({number}); " for number in closed)
    program = (
        f"import os, sys\n{MEET}\n{close}\nmeet()\n"
        f"left = sorted(os.listdir('/proc/self/fd'))\nopen({str(tmp_path / 'left')!r}, 'w').write(' '.join(left))"
    )
    run(program)
    left = (tmp_path / "left").read_text().split()
    assert set(left) == {"0", "1", "2"} - {str(number) for number in closed} | {str(closed[0])}  # that is the folder


def test_it_works_whatever_is_set_in_the_process() -> None:
    """A broken pipe ends it; the kernel reaps its children; sockets have a time-out; the clock jumps; signals come."""
    done = run(
        f"import itertools, signal, socket, time\n{MEET}\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "from tests.ncheck.hook.gathering import Bare, dial\n"
        "job = Job(3); first = job.start(0)\n"
        "with Bare(dial(job.ports[0]), job.token) as peer: peer.prove().enter(job.member(1))\n"
        "assert job.meet(2) == first.result(20) == Told(VERDICT)\n"
        "assert signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); meet(); signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"
        "socket.setdefaulttimeout(0.001); meet(); assert socket.getdefaulttimeout() == 0.001\n"
        "socket.setdefaulttimeout(None)\n"
        "clock, own = itertools.cycle([0.0, 4e9]), time.time\n"
        "time.time = lambda: next(clock); meet(); time.time = own\n"
        "seen = []; signal.signal(signal.SIGALRM, lambda *_: seen.append(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002); meet(); signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(bool(seen))"
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_the_limit_of_open_files_is_raised_while_many_ranks_are_to_come() -> None:
    limits = (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    program = (
        f"import resource, sys\nfrom tests.ncheck.hook.gathering import Job\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, {limits})\njob = Job(512, timeout=1.0)\nseen = []\n"
        "def examine(*words):\n"
        "    seen.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n    return job.examine(*words)\n"
        "job.meet(0, start_examiner=examine)\nprint(seen[0] > 800, resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = run(program)
    assert (done.stdout, done.returncode) == ("True 64\n", 0), done.stderr


def test_too_low_a_limit_of_open_files_is_told_to_all() -> None:
    program = (
        "import resource\nfrom tests.ncheck.hook.gathering import Job\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\njob = Job(512, timeout=1.0)\nother = job.start(1)\n"
        "print(job.meet(0).kind, other.result(20).kind)"
    )
    done = run(program)
    assert (done.stdout, done.returncode) == ("files files\n", 0), done.stderr


def test_a_child_inherits_only_its_own_socket() -> None:
    job = Job(2)
    seen: list[str] = []

    def start(sock: socket.socket) -> Popen[bytes]:
        process = child("ls", "/proc/self/fd", stdout=PIPE, pass_fds=(sock.fileno(),))
        seen.extend(process.communicate()[0].decode().split())
        return job.keep(process)

    with open(os.devnull), closing(socket.socket()):  # noqa: PTH123
        assert job.outcomes(0, 1, start_node_part=start) == [TOLD, TOLD]
    assert len(seen) == 5  # the three standard files, the socket, and the folder


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_rank_leaves_nothing_and_is_named(error: type[BaseException]) -> None:
    job = Job(3)
    first = job.start(0)
    with Bare(dial(job.ports[0]), job.token) as second:
        second.prove().enter(job.member(1))

        def interrupt(_: object) -> Popen[bytes]:
            raise error

        third = job.start(2, rank=job.rank(2), start_node_part=interrupt)
        second.hear()
    assert first.result(10) == third.result(10) == TOLD
    assert job.attendances[0].ended == (1,)


def test_a_rank_0_that_is_interrupted_is_named_to_all() -> None:
    job = Job(2)

    def interrupt(*_: object) -> Popen[bytes]:
        raise KeyboardInterrupt

    first, second = job.start(0, start_examiner=interrupt), job.start(1)
    with pytest.raises(KeyboardInterrupt):
        first.result(10)
    outcome = second.result(10)
    assert isinstance(outcome, NotMet)
    assert (outcome.kind, outcome.is_error) == ("ended", True)
    assert outcome.text.startswith(f"rank 0 (pid {os.getpid()} on ")


def test_a_bug_on_rank_0_lets_the_others_go_on() -> None:
    job = Job(3, timeout=2.0)

    def fail(_: object) -> None:
        raise RuntimeError("a bug of ncheck")

    first, second = job.start(0, show=fail, patience=60.0), job.start(1)  # it would show that it waits for rank 2
    with pytest.raises(RuntimeError):
        first.result(10)
    words = "ncheck failed on rank 0: RuntimeError('a bug of ncheck')"
    assert second.result(10) == NotMet("crashed", words)


def test_a_signal_in_the_middle_leaves_nothing() -> None:
    """A handler that raises, as those of launchers do."""

    def stop(*_: object) -> None:
        raise SystemExit(15)

    job = Job(2)
    before = signal.signal(signal.SIGTERM, stop)
    entered = threading.Event()

    def kill() -> None:
        with closing(dial(job.ports[0])):  # rank 0 waits
            entered.set()
            os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(SystemExit):
            job.meet(0)
    finally:
        signal.signal(signal.SIGTERM, before)
        killer.join()
    assert entered.is_set()


def test_a_rank_that_is_killed_during_the_checks_is_named_to_all() -> None:
    job = Job(3)
    program = "import json, sys\nfrom tests.ncheck.hook.gathering import Job\nJob(**json.loads(sys.argv[1])).meet(1)\n"
    argv = [sys.executable, "-c", program, json.dumps({**job.fields, "timeout": 30.0})]

    def kill(*words: Any) -> Popen[bytes]:
        victim.kill()
        victim.wait()
        return job.examine(*words)

    with subprocess.Popen(argv, cwd=ROOT) as victim:
        outcomes = job.outcomes(0, 2, start_examiner=kill)
    member = job.attendances[0].members[1]
    assert member.pid == victim.pid
    assert outcomes == [Told(VERDICT, ended=(member,))] * 2


def test_it_works_at_the_last_moment() -> None:
    """All ranks come when the attendance is about to end, again and again around that moment: who is heard is sent what
    rank 0 returns. On a busy machine there may be no time left to examine.
    """
    for late in (0.70, 0.74, 0.75, 0.76, 0.80):
        job = Job(2, timeout=1.0)
        first = job.start(0)
        with closing(dial(job.ports[0])) as sock:
            began = time.monotonic()
            with Bare(sock, job.token) as second:
                second.prove()
                threading.Event().wait(late - (time.monotonic() - began))
                messages: list[str] = []
                with suppress(ConnectionError):  # nobody is there any more
                    second.say({"what": "rank", "member": job.member(1), "seconds": 1.0})
                    while "verdict" not in messages and (message := second.hear()):
                        messages.append(message["what"])
        outcome = first.result(10)
        if isinstance(outcome, NotMet):
            assert (messages[-1:], outcome.kind) in ((["no verdict"], "overran"), (["no verdict"], "late"))
        else:
            assert messages in (["welcome", "open", "verdict"], ["welcome", "verdict"], [])
            assert outcome == TOLD


def test_a_hundred_and_fifty_ranks_meet() -> None:
    """Each is a process, as in a job: so many threads of one interpreter mostly wait for each other. They are more than
    may wait at the gate at once.
    """
    done = run(
        "import os\n"
        "from tests.ncheck.hook.gathering import Job, VERDICT\nfrom ncheck.hook.meeting.messages import Told\n"
        "job = Job(150, timeout=50.0)\n"
        "pids = []\n"
        "for number in range(1, 150):\n"
        "    pids.append(os.fork())\n"
        "    if not pids[-1]:\n"
        "        os._exit(job.meet(number) != Told(VERDICT))\n"
        "assert job.meet(0) == Told(VERDICT)\n"
        "print([pid for pid in pids if os.waitpid(pid, 0)[1]], job.attendances[0].missing)"
    )
    assert (done.stdout, done.stderr) == ("[] ()\n", "")


def test_the_import_is_fast_and_thin() -> None:
    heavy = "paramiko, rich, click, ClusterShell, mashumaro, subprocess, asyncio, threading, ipaddress, inspect"
    program = (
        "import sys\nbefore = set(sys.modules)\nimport ncheck.hook.meeting.sockets\n"
        f"print(sorted(set({heavy!r}.split(', ')) & (set(sys.modules) - before)))"
    )
    assert run(program).stdout == "['inspect']\n"  # dataclasses needs it
