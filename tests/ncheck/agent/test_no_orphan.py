"""Whatever ends the head or the agent, nothing that they started goes on on the node. Real processes, real signals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from ncheck.agent.guard import descendants
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.session import Known, Request, Session, SessionTerms
from ncheck.model.evidence import Command, Evidence
from ncheck.model.node import Node

pytestmark = pytest.mark.slow

Ask = Callable[..., Evidence]

# A head of its own: it asks this machine for a command that tells its pid and then sleeps.
HEAD = """
import sys, time
from pathlib import Path
from ncheck.model.evidence import Command
from ncheck.model.node import Node
from ncheck.fleet.engines.command import LocalEngine
from ncheck.fleet.session import Known, Request, Session, SessionTerms
source = Command(("sh", "-c", sys.argv[1]), timeout=300)
known = Known(Node("here"))
wanted = SessionTerms("0123456789ab", time.monotonic() + 300, connect_timeout=60)
session = Session(LocalEngine().connect(known.node, 60), known, wanted, str)
session.greet(time.monotonic())
session.start()
session.collect(Request((source,)))
"""


class Followed:
    """Processes that tell their pids through a fifo, watched until they end."""

    def __init__(self, fifo: Path) -> None:
        self.fifo = fifo
        os.mkfifo(fifo)
        self.reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.keep = os.open(fifo, os.O_WRONLY)  # so that the fifo never reads as ended

    def next_process(self) -> int | None:
        """Wait for one process to tell its pid; return a file descriptor that tells its end, None once it has ended."""
        text = b""
        while not text.endswith(b"\n"):
            assert select.select([self.reading], [], [], 60)[0], "nothing told its pid"
            text += os.read(self.reading, 1)
        try:
            return os.pidfd_open(int(text))
        except ProcessLookupError:
            return None

    @staticmethod
    def ended(process: int | None) -> bool:
        """Tell whether it ended, as soon as it does; whoever sleeps on would do so for ten minutes."""
        if process is None:
            return True
        ready = select.select([process], [], [], 60)[0]
        os.close(process)
        return bool(ready)

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.keep)


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    watch = Followed(tmp_path / "pids")
    yield watch
    watch.close()


def head(script: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-c", HEAD, script], env=environment)


TELL = "echo $$ > {fifo}; : > {fifo}.told"
PLAIN = f"{TELL}; exec sleep 600"
OWN_SESSION = f"setsid sh -c '{TELL}; exec sleep 600' & wait"
DETACHED = f"""(setsid sh -c 'trap "" HUP TERM; {TELL}; sleep 600' >/dev/null 2>&1 </dev/null &) ; sleep 600"""
ONCE_TOLD = "until [ -e {fifo}.told ]; do sleep 0.02; done"


@pytest.mark.parametrize("script", [PLAIN, OWN_SESSION, DETACHED])
def test_a_head_that_is_killed_leaves_nothing_running(followed: Followed, script: str) -> None:
    process = head(script.format(fifo=followed.fifo))
    sleeper = followed.next_process()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert followed.ended(sleeper)


def test_an_agent_that_is_killed_leaves_nothing_running(ask: Ask, followed: Followed) -> None:
    script = f"{OWN_SESSION} & {ONCE_TOLD}; kill -9 $PPID; wait"
    ask(Command(("sh", "-c", script.format(fifo=followed.fifo))))
    assert followed.ended(followed.next_process())


@pytest.mark.parametrize("script", [PLAIN, OWN_SESSION, DETACHED])
def test_a_guard_that_is_killed_leaves_nothing_running(ask: Ask, followed: Followed, script: str) -> None:
    killing = f"{ONCE_TOLD}; kill -9 $(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)"
    ask(Command(("sh", "-c", f"({script}) & {killing}; wait".format(fifo=followed.fifo))))
    assert followed.ended(followed.next_process())


def test_a_command_whose_time_is_over_is_ended_with_what_it_started(ask: Ask, followed: Followed) -> None:
    ask(Command(("sh", "-c", f"(echo $$ > {followed.fifo}; sleep 600) & sleep 600"), timeout=3.0))
    assert followed.ended(followed.next_process())


def test_what_a_command_leaves_behind_ends_with_the_agent(ask: Ask, followed: Followed) -> None:
    ready = followed.fifo.with_name("ready")
    told = f"echo $$ > {followed.fifo}; touch {ready}; exec sleep 600"
    left = f"setsid sh -c '{told}' >/dev/null 2>&1 </dev/null & while [ ! -e {ready} ]; do sleep 0.05; done"
    evidence = ask(Command(("sh", "-c", left)))
    assert next(iter(evidence.replies.values())).succeeded
    assert followed.ended(followed.next_process())


def test_the_agents_own_deadline_ends_it_where_the_head_says_nothing(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncheck.fleet.session.AFTER_THE_RUN", 1.0)
    source = Command(("sh", "-c", PLAIN.format(fifo=followed.fifo)), timeout=300)
    wanted = SessionTerms(
        "0123456789ab", time.monotonic() + 10.0
    )  # for the agent to start and the command to tell its pid
    known = Known(Node("here"))
    stream = LocalEngine().connect(known.node, 60.0)
    session = Session(stream, known, wanted, str)
    session.greet(time.monotonic())
    session.start()
    session.posted += Request((source,)).frame
    session._send_posted()
    assert followed.ended(followed.next_process())
    stream.close()


HEADLESS = """
import ctypes, subprocess, sys, threading
def work():
    subprocess.Popen(["sh", "-c", sys.argv[1]]).wait()
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_what_is_beneath_a_process_whose_first_thread_has_ended_is_found(followed: Followed) -> None:
    others = descendants(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", HEADLESS, PLAIN.format(fifo=followed.fifo)])
    sleeper = followed.next_process()
    state = Path(f"/proc/{process.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    for pid in set(descendants(os.getpid())).difference(others):
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()
    assert followed.ended(sleeper)


def test_signals_that_come_one_after_the_other_do_not_end_the_ending(followed: Followed) -> None:
    process = head(DETACHED.format(fifo=followed.fifo))
    sleeper = followed.next_process()
    shell = descendants(process.pid)[0]
    with suppress(ProcessLookupError):
        while True:  # until the whole group has ended
            os.killpg(shell, signal.SIGHUP)
    process.wait()
    assert followed.ended(sleeper)
