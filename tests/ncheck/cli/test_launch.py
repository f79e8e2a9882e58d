"""ncheck launch: what it starts is the program itself, with its terminal, its signals and its exit code."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ncheck
import pytest
from ncheck.cli.startable import other_mpi
from ncheck.model.plan import LaunchCommand

pytestmark = pytest.mark.slow

HOME = str(Path(ncheck.__file__).parent.parent)
NCHECK = [sys.executable, "-m", "ncheck", "launch", "--config", "none"]
SECONDS = 120  # for what takes two
GLIBC = 0b11 << 31  # two signals of its own, which its posix_spawn ignores
MPIRUN = """#!/bin/bash
[ "$1" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit 0; }
printf 'word:%s\\n' "$@"
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which mpirun is a script of the test's."""
    stand_in(tmp_path, "exit 0")
    path = f"{tmp_path}:{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": HOME, "PYTHONDONTWRITEBYTECODE": "1", "TERM": "dumb", "TMPDIR": str(tmp_path)}
    return {**os.environ, **own}


def stand_in(folder: Path, script: str, name: str = "mpirun") -> None:
    (folder / name).write_text(f"{MPIRUN}{script}\n")
    (folder / name).chmod(0o755)


def launched(
    environ: dict[str, str], *args: str, typed: str = "", force: bool = True
) -> subprocess.CompletedProcess[str]:
    """Launch on this machine alone, whatever is wrong with it."""
    argv = [*NCHECK, *(["--force"] if force else []), *args]
    return subprocess.run(
        argv, env=environ, input=typed, capture_output=True, text=True, timeout=SECONDS, check=False
    )  # fmt: skip


@contextmanager
def begun(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Launch where no signal is ignored, and go on once the stand-in says that it is ready."""
    argv = ["env", "--default-signal", *NCHECK, "--force", "--", "train"]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        assert "ready\n" in iter(process.stdout.readline, "")
        try:
            yield process
        finally:
            process.kill()


def test_the_line_of_the_plan_is_run_word_for_word_and_stdout_is_the_programs_alone(environ: dict[str, str]) -> None:
    done = launched(environ, "--", "python", "train.py", "--name", "a b", "$HOME")
    planned = subprocess.run(
        [sys.executable, "-m", "ncheck", "plan", "--config", "none", "--force", "--for", "mpirun", "--", "python",
         "train.py", "--name", "a b", "$HOME"],
        env=environ, capture_output=True, text=True, timeout=SECONDS, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert [f"word:{word}" for word in shlex.split(planned.stdout)[1:]] == done.stdout.splitlines()
    assert "Ready" in done.stderr or "error" in done.stderr or "Not verified" in done.stderr
    assert f"ncheck: starting: {planned.stdout}" in done.stderr


def test_the_exit_code_is_the_programs(environ: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path, "exit 143")  # what ncheck itself would end with is another
    assert launched(environ, "--", "train").returncode == 143


def test_any_signal_ends_the_program_itself(environ: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path, f"echo $$ > {tmp_path}/pid; ulimit -c 0; echo ready; exec sleep 1000")
    with begun(environ) as process:
        assert int((tmp_path / "pid").read_text()) == process.pid
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":  # bash itself ignores SIGQUIT
            time.sleep(0.01)
        assert signals(process.pid, "SigBlk") == 0
        assert signals(process.pid, "SigIgn") & ~GLIBC == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == -signal.SIGINT


def signals(pid: int, mask: str) -> int:
    """Return a mask of signals of a process, as /proc shows it."""
    found = re.search(rf"^{mask}:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1], 16)


def test_a_program_that_handles_its_signal_ends_as_it_likes(environ: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done")
    with begun(environ) as process:
        process.terminate()
        assert process.wait(SECONDS) == 7


def test_standard_input_is_the_programs(environ: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path, "cat")
    assert launched(environ, "--", "train", typed="from here\n").stdout.endswith("from here\n")


def test_the_program_gets_the_limits_and_signals_that_ncheck_was_started_with(
    environ: dict[str, str], tmp_path: Path
) -> None:
    look = "ulimit -n; grep SigIgn /proc/$$/status"
    stand_in(tmp_path, look)
    shell = f"ulimit -S -n 200; {look}; exec {shlex.join([*NCHECK, '--force', '--', 'train'])}"
    done = subprocess.run(
        ["bash", "-c", shell], env=environ, capture_output=True, text=True, timeout=SECONDS, check=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-2:]) == ("200", lines[:2])


# It takes its signals from the queue: none comes a moment before it is waited for.
HEEDING = """
import signal, sys
heeded = signal.SIGCONT, signal.SIGINT
signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
print("ready", flush=True)
while signal.sigwait(heeded) == signal.SIGCONT:
    print("went on", flush=True)
sys.exit(9)
"""


def test_on_a_terminal_it_is_stopped_goes_on_and_is_interrupted_as_the_program_itself(
    environ: dict[str, str], tmp_path: Path
) -> None:
    stand_in(tmp_path, f"exec {shlex.join([sys.executable, '-c', HEEDING])}")
    screen = Screen(["bash", "--norc", "--noprofile", "-i"], environ)
    screen.types(f"{shlex.join([*NCHECK, '--force', '--', 'train'])}\n")
    screen.shows("ready\r\n")
    screen.types("\x1a")
    screen.shows("Stopped")
    screen.types("fg\n")
    screen.shows("went on\r\n")
    screen.types("\x03")
    screen.types("echo en''ded:$?\n")
    screen.shows("ended:9\r\n")
    screen.types("exit\n")
    screen.close()


class Screen:
    """A terminal with a program on it."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        self.pid, self.number = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, environ)  # noqa: S606  the child: a shell on its terminal
        self.seen = ""

    def types(self, text: str) -> None:
        os.write(self.number, text.encode())

    def shows(self, text: str) -> None:
        """Wait until it shows the text, after what was waited for before."""
        ends = time.monotonic() + SECONDS
        while text not in self.seen:
            ready, _, _ = select.select([self.number], [], [], max(0.0, ends - time.monotonic()))
            assert ready, self.seen
            self.seen += os.read(self.number, 4096).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]

    def close(self) -> None:
        os.close(self.number)
        os.waitpid(self.pid, 0)


def test_nothing_is_started_where_something_is_wrong_that_touches_the_plan(environ: dict[str, str]) -> None:
    done = launched(environ, "-H", "nowhere.invalid", "--", "train", force=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "NC110 name-does-not-resolve on nowhere.invalid" in done.stderr
    assert "nothing was started" in done.stderr


def test_a_launcher_whose_line_is_typed_on_every_node_is_refused_with_what_to_type(environ: dict[str, str]) -> None:
    for launcher, why in (("torchrun", "must be started on every node"), ("env", "starts nothing")):
        done = launched(environ, "-H", "a:8,b", "-p", "10001", "--for", launcher, "--", "train.py", "a b")
        line = f"ncheck plan -H a:8,b -p 10001 --for {launcher} -- train.py 'a b'"
        message = f"ncheck: {launcher} {why}; to print what to type: {line} (see ncheck launch --help)\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_without_a_program_there_is_nothing_to_launch(environ: dict[str, str]) -> None:
    done = launched(environ, force=False)
    assert (done.returncode, "missing program" in done.stderr) == (2, True)


def test_a_launcher_that_is_not_here_is_told_with_the_line_for_the_first_node(environ: dict[str, str]) -> None:
    done = launched(environ, "--with", "horovodrun", "--", "python", "train.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert "horovodrun is not installed on this machine; on the first node: ssh -t " in done.stderr


@pytest.mark.parametrize(("version", "implementation", "told"), [
    ("4.1.6", "Open MPI", ""),
    ("5.0.2", "Open MPI", "mpirun here is Open MPI 4.1.4, and the nodes have Open MPI 5.0.2"),
    ("4.1.4", "MPICH", "mpirun here is Open MPI 4.1.4, and the nodes have MPICH 4.1.4"),
    ("", "", ""),
])  # fmt: skip
def test_an_mpi_that_is_not_the_nodes_is_told_by_implementation_and_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, implementation: str, told: str
) -> None:
    stand_in(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert other_mpi(LaunchCommand(("mpirun",), "mpirun", implementation, version)) == told
