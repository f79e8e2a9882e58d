"""The hook in front of a script: what the script sees, and how it ends, are what they are without the hook.

Each case runs twice, with `-m ncheck.hook` and without, and the two are compared as wholes.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ncheck
import pytest
from ncheck.hook.command_line import UsageError, read_job, split_command_line

pytestmark = pytest.mark.slow  # ranks as real processes, or meetings that wait

SEEN = Path(__file__).with_name("seen.py")
HOME = str(Path(ncheck.__file__).parent.parent)
HOOK = ("-m", "ncheck.hook")
OFF = {"NCHECK": "off"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the probe as a script, a module, a package, a folder and an archive that can be run."""
    for name in ("train.py", "jobs/train.py", "package/tool.py", "package/__main__.py", "app/__main__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(SEEN, tmp_path / name)
    (tmp_path / "package/__init__.py").touch()
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.write(SEEN, "__main__.py")
    return tmp_path


@dataclass(frozen=True)
class Case:
    """One command line. `options` are the interpreter's, `joined`: the last of them is in one word with -m."""

    words: Sequence[str] = ("train.py",)
    options: Sequence[str] = ()
    hook: Sequence[str] = HOOK
    python: str = sys.executable
    environ: dict[str, str] = field(default_factory=dict)
    front: Sequence[str] = ()
    stdin: str = "typed\n"

    def argv(self, *, hooked: bool) -> list[str]:
        if hooked:
            return [*self.front, self.python, *self.options, *self.hook, *self.words]
        if self.words[0] == "--":
            return [*self.front, *self.words[1:]]
        return [*self.front, self.python, *self.options, *self.words]


CASES = {
    "a script": Case(("train.py", "--lr", "1", "-m", "--", "--apply", "", "ü \n'\"")),
    "a script by a path": Case(("./jobs/../jobs/train.py",)),
    "a module": Case(("-m", "package.tool", "-m", "x", "--select", "NC1")),
    "a package": Case(("-m", "package")),
    "a folder": Case(("app",)),
    "an archive": Case(("app.zip", "1")),
    "standard input": Case(("-", "1"), stdin=SEEN.read_text()),
    "a command": Case(("--", sys.executable, "-u", "train.py", "--", "--apply")),
    "a command by PATH": Case(("--", "python", "train.py"), environ={"PATH": f"{Path(sys.executable).parent}:/bin"}),
    "options of the hook": Case(hook=(*HOOK, "--apply", "--probe=quick", "--select", "NC1", "--ignore=NC2")),
    "checked, and healthy": Case(hook=(*HOOK, "--select", "NC201"), environ={"NCHECK": "on"}),
    "checked, with -W error": Case(options=["-Werror"], hook=(*HOOK, "--select", "NC201"), environ={"NCHECK": "on"}),
    "-u": Case(options=["-u"]),
    "-m in one word": Case(options=["-B"], hook=("-mncheck.hook",)),
    "-O": Case(options=["-O"]),
    "-OO and -B in one word": Case(options=["-OOB"]),
    "-I": Case(options=["-I"]),
    "-E, -s": Case(options=["-E", "-s"], environ={"PYTHONOPTIMIZE": "1"}),
    "-X dev": Case(options=["-X", "dev", "-Xnosuch=1"]),
    "-X utf8=0": Case(options=["-Xutf8=0"]),
    "-W error": Case(options=["-W", "error", "-Wignore:x", "-qb"]),
    "--check-hash-based-pycs": Case(options=["--check-hash-based-pycs", "always", "-R"]),
    "PYTHON variables": Case(
        environ={
            "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "7", "PYTHONWARNINGS": "error", "PYTHONPATH": f"jobs:{HOME}:",
            "PYTHONFAULTHANDLER": "1", "PYTHONDEVMODE": "1", "PYTHONIOENCODING": "latin-1:replace",
        },
    ),
    "the C locale": Case(environ={"LANG": "C", "LC_ALL": ""}),
    "the C locale, for everything": Case(environ={"LC_ALL": "C"}),
    "a locale that is not there": Case(environ={"LC_ALL": "xx_XX.ISO-8859-1"}),
    "a relative interpreter": Case(python="./python", environ={"PYTHONPATH": HOME}),
    "another argv[0]": Case(
        python=os.path.realpath(sys.executable), front=["bash", "-c", 'exec -a other "$@"', "bash"],
        environ={"PYTHONPATH": HOME},
    ),
    "signals ignored and blocked": Case(front=["env", "--ignore-signal=INT,HUP,USR1", "--block-signal=TERM,USR2"]),
    "limits": Case(front=["bash", "-c", 'ulimit -n 200 -c 0; umask 077; exec nice -n 5 "$@"', "bash"]),
    "open files": Case(front=["bash", "-c", 'exec "$@" 7<train.py 9>>out', "bash"]),
    "no standard streams but output": Case(front=["bash", "-c", 'exec "$@" 2>&-', "bash"]),
    "secrets and bytes": Case(environ={"NCHECK_TOKEN": "secret", "BYTES": "\udcff=\n"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_script_sees_what_it_sees_without_the_hook(folder: Path, case: Case) -> None:
    (folder / "python").symlink_to(sys.executable)

    with_hook, without = (seen(folder, case, hooked=hooked) for hooked in (True, False))

    assert with_hook == without


def seen(folder: Path, case: Case, *, hooked: bool) -> dict[str, Any]:
    with started(folder, case.argv(hooked=hooked), OFF | case.environ) as process:
        out, errors = process.communicate(case.stdin, 20)
    assert process.returncode == 0, errors
    (line,) = out.splitlines()
    dump: dict[str, Any] = json.loads(line)
    assert dump.pop("pid") == process.pid
    return {**dump, "errors": errors}


@contextmanager
def started(folder: Path, argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run this in the folder; it does not outlive the block."""
    with subprocess.Popen(
        argv, cwd=folder, env={**os.environ, "PYTHONUNBUFFERED": "", **environ}, text=True,
        errors="surrogateescape", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def test_a_script_at_a_terminal_has_the_terminal(folder: Path) -> None:
    assert at_terminal(folder, *HOOK) == at_terminal(folder)


def at_terminal(folder: Path, *hook: str) -> tuple[int, dict[str, Any]]:
    """Run the probe as the leader of a session of its own, as a shell's login does."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, *hook, "train.py"], {**os.environ, **OFF})  # noqa: S606
    said = b""
    while not said.endswith(b"\n"):
        said += os.read(terminal, 65536)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    dump: dict[str, Any] = json.loads(said)
    assert dump.pop("pid") == pid
    return status, dump


SPAWNED = """
import multiprocessing, pickle, sys

class Item:
    pass

def work(queue, item):
    same = type(item) is Item
    queue.put((same, pickle.dumps(item), __name__, sys.argv, sys.path, repr(sys.flags), sorted(sys.modules)))

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(queue, Item()))
        process.start()
        answer = queue.get()
        process.join()
        print(method, process.exitcode, *answer)
"""


@pytest.mark.parametrize("words", [["train.py", "1"], ["-m", "package.tool"]], ids=["script", "module"])
def test_processes_that_a_script_starts_find_its_classes(folder: Path, words: list[str]) -> None:
    for name in ("train.py", "package/tool.py"):
        (folder / name).write_text(SPAWNED)

    with_hook, without = (ended(folder, [*hook, *words]) for hook in (HOOK, ()))

    assert with_hook == without
    assert (with_hook[0], with_hook[2], with_hook[1].count("True")) == (0, "", 3)


def ended(
    folder: Path, words: Sequence[str], environ: Mapping[str, str] = OFF, *, number: int = 0
) -> tuple[int, str, str]:
    """Run to the end; `number` is a signal that is sent when the script has said a line."""
    with started(folder, [sys.executable, *words], environ) as process:
        assert process.stdout
        said = process.stdout.readline() if number else ""
        if number:
            process.send_signal(number)
        out, errors = process.communicate(timeout=20)
    return process.returncode, said + out, re.sub("0x[0-9a-f]+", "0x", errors)


# What is sent waits until it can be told where it strikes.
NAP = (
    "signal.pthread_sigmask(signal.SIG_BLOCK, {2, 15}); print('on', flush=True)\n"
    "while not signal.sigpending(): pass\n"
    "signal.pthread_sigmask(signal.SIG_UNBLOCK, {2, 15}); signal.pause()"
)
CATCH = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))"
ENDINGS = {
    "the end": ("", 0, 0),
    "sys.exit(3)": ("sys.exit(3)", 0, 3),
    "a text": ("raise SystemExit('text')", 0, 1),
    "an exception": ("def f(): raise ValueError('x') from OSError(2, 'y')\nf()", 0, 1),
    "a syntax error": ("x = = 1", 0, 1),
    "os._exit": ("print('lost'); os._exit(7)", 0, 7),
    "an abort": ("os.abort()", 0, -signal.SIGABRT),
    "a crash": ("import faulthandler, ctypes; faulthandler.enable(); ctypes.string_at(0)", 0, -signal.SIGSEGV),
    "killed": ("os.kill(os.getpid(), 9)", 0, -signal.SIGKILL),
    "^C": (f"import atexit; atexit.register(print, 'cleaned')\n{NAP}", signal.SIGINT, -signal.SIGINT),
    "terminated": (NAP, signal.SIGTERM, -signal.SIGTERM),
    "terminated, and caught": (f"{CATCH}\n{NAP}", signal.SIGTERM, 5),
    "at exit": ("import atexit; atexit.register(print, 'bye'); sys.exit(4)", 0, 4),
    "a thread that goes on": ("threading.Timer(0.1, print, ['late']).start()", 0, 0),
    "a broken pipe": ("sys.stdout.write('x'); os.close(1)", 0, 120),
    "an open file": ("import warnings; warnings.simplefilter('always'); open('train.py')", 0, 0),
}


@pytest.mark.parametrize(("code", "number", "status"), ENDINGS.values(), ids=ENDINGS)
def test_a_script_ends_as_it_ends_without_the_hook(folder: Path, code: str, number: int, status: int) -> None:
    (folder / "train.py").write_text(f"import os, signal, sys, threading\n{code}\n")

    with_hook, without = (ended(folder, [*hook, "train.py"], number=number) for hook in (HOOK, ()))

    assert with_hook == without
    assert with_hook[0] == status


def test_a_script_that_is_not_there_ends_as_without_the_hook(folder: Path) -> None:
    for words in (["none.py"], ["-m", "none"], ["-m", "package.none"]):
        assert ended(folder, [*HOOK, *words]) == ended(folder, words)


def test_a_command_that_cannot_run_ends_as_in_a_shell(folder: Path) -> None:
    assert ended(folder, [*HOOK, "--", "no-such-command"]) == (
        127, "", "ncheck: cannot run no-such-command: No such file or directory\n",
    )  # fmt: skip
    assert ended(folder, [*HOOK, "--", "./train.py"]) == (126, "", "ncheck: cannot run ./train.py: Permission denied\n")


def test_files_of_the_current_folder_shadow_nothing_of_ours_and_for_the_script_what_they_did(folder: Path) -> None:
    of_python = subprocess.check_output([sys.executable, "-Ic", "import runpy, sys; print(*sys.modules)"], text=True)
    for name in {*sys.stdlib_module_names, "ncheck_checks"}.difference(of_python.split(), ["__future__", "this"]):
        if find_spec(name):
            (folder / f"{name}.py").write_text(f"raise SystemExit('shadowed by {name}')")
    (folder / "train.py").write_text("print('here', flush=True)\nimport typing")
    shadowed = (1, "here\n", "shadowed by typing\n")

    assert ended(folder, ["train.py"]) == shadowed
    assert ended(folder, [*HOOK, "train.py"]) == shadowed
    assert ended(folder, [*HOOK, "--select", "NC201", "train.py"], {}) == shadowed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no script to run. Usage: python -m ncheck.hook train.py ARGS; python -m ncheck.hook -h"),
        (["--apply"], "no script to run. Usage: python -m ncheck.hook train.py ARGS; python -m ncheck.hook -h"),
        (["-m"], "nothing to run after -m"),
        (["--"], "nothing to run after --"),
        (["--probe"], "--probe needs a value"),
        (
            ["--lr", "1", "train.py"],
            "no such option: --lr. The script's own options follow the script; python -m ncheck.hook -h",
        ),
    ],
)
def test_bad_usage_is_one_line_and_nothing_runs(folder: Path, words: list[str], message: str) -> None:
    assert ended(folder, [*HOOK, *words]) == (2, "", f"ncheck: {message}\n")


SECOND = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "29500"}


def test_variables_that_contradict_each_other_end_the_job_with_one_line(folder: Path) -> None:
    assert ended(folder, [*HOOK, "train.py"], SECOND | {"WORLD_SIZE": "1"}) == (
        2, "", "ncheck: RANK=1 must be below WORLD_SIZE=1\n",
    )  # fmt: skip


def test_a_check_that_is_not_there_ends_the_job_with_one_line(folder: Path) -> None:
    assert ended(folder, [*HOOK, "--select", "nosuch", "train.py"], {}) == (
        2, "", "ncheck: no check is called 'nosuch': ncheck list shows them all\n",
    )  # fmt: skip


def test_an_error_of_the_cluster_ends_the_job_with_its_words_and_no_traceback(folder: Path) -> None:
    environ = SECOND | {"MASTER_ADDR": "no.invalid", "NCHECK_TIMEOUT": "1"}

    code, out, errors = ended(folder, [*HOOK, "train.py"], environ)

    assert (code, out) == (1, "")
    assert errors.startswith("ncheck stopped this job before it started: MASTER_ADDR=no.invalid does not resolve")
    assert errors.count("\n") == 1


def test_an_interrupt_during_the_check_ends_the_process_as_an_interrupt_does(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        with started(folder, [sys.executable, *HOOK, "train.py"], SECOND | {"NCHECK_RENDEZVOUS": place}) as process:
            server.accept()[0].close()
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == -signal.SIGINT


def test_help_is_printed(folder: Path) -> None:
    code, out, errors = ended(folder, [*HOOK, "--help"])
    assert (code, out.splitlines()[0], errors) == (0, "usage: python -m ncheck.hook [OPTIONS] SCRIPT [ARGS]", "")


def test_a_program_that_runs_the_hook_is_told_to_come_after_it(folder: Path) -> None:
    (folder / "runs.py").write_text(
        "import runpy; runpy.run_module('ncheck.hook', run_name='__main__', alter_sys=True)"
    )

    code, _, errors = ended(folder, ["runs.py", *HOOK, "train.py"])

    told = "another program runs ncheck.hook; put the hook in front of it: python -m ncheck.hook -m PROGRAM train.py"
    assert (code, errors) == (2, f"ncheck: {told}\n")


def test_the_words_of_the_interpreter_the_hook_and_the_script_are_told_apart() -> None:
    assert split_command_line(["python", "-uXdev", "-W", "-m", "-Im", "ncheck.hook", "-m", "a"]) == (
        ["-uXdev", "-W", "-m", "-I"], ["-m", "a"],
    )  # fmt: skip
    for argv in (
        ["python", "-m", "pdb", "-m", "ncheck.hook"],
        ["python", "a.py", "-m", "ncheck.hook"],
        ["python", "-m"],
    ):
        with pytest.raises(UsageError):
            split_command_line(argv)
    for words, run in (
        (["t.py", "1"], ["t.py", "--local_rank=0", "1"]),
        (["-m", "t", "1"], ["-m", "t", "--local_rank=0", "1"]),
        (["--", "sh", "1"], ["sh", "1", "--local_rank=0"]),
    ):
        assert read_job(["--local_rank=0", "--apply", *words]).words == run
    assert read_job(["--local-rank=12", "t.py"]) == (["t.py", "--local-rank=12"], False, {})
    assert read_job(["--select", "a,b", "--ignore=c=n1,n2", "--probe", "quick", "--apply", "t.py", "--apply"]) == (
        ["t.py", "--apply"], False,
        {"probe": "quick", "apply": True, "select": ("a,b",), "ignore": ("c=n1,n2",)},
    )  # fmt: skip
    assert read_job(["--watch", "t.py", "--watch"]) == (["t.py", "--watch"], False, {"watch": True})
