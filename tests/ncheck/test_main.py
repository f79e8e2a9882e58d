"""The door: what is answered at once, and what cannot shadow us."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import ncheck
import ncheck_checks
import pytest
from ncheck.__main__ import current_folder_last

HOME = str(Path(ncheck.__file__).parent.parent)
PACKAGES = os.pathsep.join([HOME, str(Path(ncheck_checks.__file__ or "").parent.parent)])


def run_ncheck(*args: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": HOME, "PYTHONDONTWRITEBYTECODE": "1", **environ}
    argv = [sys.executable, "-m", "ncheck", *args]
    return subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_version_is_answered_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['ncheck', '--version']; from ncheck.__main__ import main; main(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": HOME},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    answer, modules = done.stdout.splitlines()
    assert answer == f"ncheck {ncheck.__version__}"
    heavy = {"click", "rich", "dataclasses", "inspect", "pathlib", "subprocess", "paramiko", "mashumaro", "json"}
    assert heavy & set(modules.split()) == set()


@pytest.mark.slow
def test_the_pages_of_the_checks_are_there_where_python_drops_docstrings(tmp_path: Path) -> None:
    pages = [
        run_ncheck("explain", "NC125", cwd=tmp_path, PYTHONPATH=PACKAGES, PYTHONOPTIMIZE=optimize)
        for optimize in ("", "2")
    ]
    assert [page.returncode for page in pages] == [0, 0], pages[1].stderr
    assert pages[0].stdout == pages[1].stdout


@pytest.mark.parametrize("pythonpath", [HOME, os.pathsep + HOME])
def test_files_and_folders_of_the_current_folder_shadow_nothing_of_ours(tmp_path: Path, pythonpath: str) -> None:
    for name in ("json", "click", "rich", "difflib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed by " + name + "')")
    for name in ("doctor", "checks", "tests", "reports", "ncheck_checks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('shadowed by {name}')")
    done = run_ncheck("list", cwd=tmp_path, PYTHONPATH=pythonpath)
    assert (done.returncode, done.stderr) == (0, "")
    assert "NC201 nccl-version-differs" in done.stdout


@pytest.fixture
def training_folder(tmp_path: Path) -> Path:
    """Make a repository of somebody else, with packages that are called like the folders of ours."""
    for name in ("doctor", "checks", "tests", "reports"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('imported {name} of the training repository')")
    return tmp_path


def test_it_is_imported_in_a_folder_with_packages_called_like_our_folders(training_folder: Path) -> None:
    code = "import ncheck, ncheck_checks, sys; from ncheck import Report, node_check; print(ncheck.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=training_folder, env={**os.environ, "PYTHONPATH": PACKAGES},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{ncheck.__version__}\n", "")


@pytest.mark.slow
def test_it_checks_this_machine_there(training_folder: Path) -> None:
    done = run_ncheck("local", "--probe", "none", "-o", "json", cwd=training_folder)
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"]
    assert [(node["reached"], node["transport"]) for node in report["nodes"]] == [(True, "local")]
    assert [verdict for verdict in report["verdicts"] if verdict["outcome"] == "crashed"] == []


def test_the_current_folder_stays_on_the_path_behind_everything_installed() -> None:
    path = ["/here", "/lib", "", "/site-packages"]
    current_folder_last(path, "/here", "/site-packages")
    assert path == ["/lib", "/site-packages", "/here", ""]


def test_in_a_checkout_the_path_is_left_alone() -> None:
    path = ["/checkout", "/lib"]
    current_folder_last(path, "/checkout", "/checkout")
    assert path == ["/checkout", "/lib"]


def test_a_current_folder_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r}); os.rmdir({str(tmp_path)!r}); import ncheck.__main__ as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "list"], env={**os.environ, "PYTHONPATH": HOME}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "NC201" in done.stdout


def test_the_reader_of_a_pipe_may_leave_early_without_a_word(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "ncheck", "list"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        argv,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": HOME},
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full to write to")
@pytest.mark.parametrize("command", ["list", "--version"])
def test_a_full_disk_under_the_output_is_one_line(tmp_path: Path, command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncheck", command], cwd=tmp_path, env={**os.environ, "PYTHONPATH": HOME}, text=True,
            stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "ncheck: the output is incomplete: No space left on device\n")


def test_a_closed_output_is_no_traceback(tmp_path: Path) -> None:
    script = f'"{sys.executable}" -m ncheck list >&-'
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": HOME}, text=True, stderr=subprocess.PIPE,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_an_encoding_without_our_signs_is_no_reason_to_fail(tmp_path: Path) -> None:
    done = run_ncheck("explain", "NC201", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


CHECK = ("check", "-H", "127.0.0.1", "-p", "1", "--probe", "none", "-q")


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "value"), [*(("-n", at) for at in range(5, 13)), *(("-v", at) for at in (4, 5, 6))])
def test_a_machine_that_gives_too_little_is_named_and_is_no_bug(tmp_path: Path, limit: str, value: int) -> None:
    most = value if limit == "-n" else value * 10_000  # descriptors, or KiB of memory
    script = f"ulimit {limit} {most}; exec {sys.executable} -m ncheck {' '.join(CHECK)}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": HOME}, capture_output=True, text=True,
        timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode in (1, 2), done.stderr
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr
    said = "this machine lets ncheck use too little" in done.stderr
    assert said is (done.returncode == 2), done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give up its rights")
def test_a_current_folder_that_cannot_be_entered_is_as_one_without_settings(tmp_path: Path) -> None:
    """As after su or sudo -u from /root."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    os.chown(closed, 65534, 65534)
    fixture = Path(__file__).parents[2] / "fixtures/healthy-4x8-h100"
    for args in (CHECK, ("replay", str(fixture), "-q")):
        done = subprocess.run(
            ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "ncheck", *args], cwd=closed,
            env={**os.environ, "PYTHONPATH": PACKAGES}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (int(args is CHECK), "")


@pytest.mark.parametrize(
    "args", [("check", "FILE"), ("speedup", "1=FILE", "2=FILE"), ("check", "-H", "a", "--requirements", "FILE"),
             ("check", "-H", "a", "--config", "FILE"), ("history", "--oldest", "1", "FILE", "--history", "h.db"),
             ("read", "log", "FILE")],
)  # fmt: skip
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path, args: tuple[str, ...]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = run_ncheck(*(arg.replace("FILE", str(pipe)) for arg in args), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{pipe}: is a pipe that no process writes to\n")


def test_a_host_list_is_read_from_a_pipe_that_somebody_writes_to(tmp_path: Path) -> None:
    script = f"sleep 0.2; echo 127.0.0.1 port=1 | exec {sys.executable} -m ncheck check /dev/fd/0 --probe none -q"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": HOME}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "127.0.0.1: SSH refused on port 1" in done.stdout


@pytest.mark.parametrize("module", ["ncheck.cli.process", "ncheck.cli.main", "click", "ncheck.cli.check"])
def test_an_interrupt_while_ncheck_starts_is_one_line_and_130(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"""\
import signal, sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("begun", flush=True)
            signal.pause()

sys.meta_path.insert(0, Stop())
""")
    path = os.pathsep.join([str(tmp_path), PACKAGES])
    started = subprocess.Popen(
        [sys.executable, "-m", "ncheck", "local"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == "begun\n"
    started.send_signal(signal.SIGINT)
    assert (*started.communicate(timeout=60), started.returncode) == ("", "ncheck: interrupted\n", 130)
