"""Every path of the command line, missing, unreadable, a folder or binary, and closed streams: a usage error of one
line, never a bug of ncheck.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.errors import EXIT_USAGE

QUICK = ("--select", "NC001")

# Where each path of the command line stands; a path that is written has only its folder in the way.
READ = {
    "nodes": ("PATH",),
    "-i": ("-H", "localhost", *QUICK, "-i", "PATH"),
    "-F": ("-H", "localhost", *QUICK, "-F", "PATH"),
    "--config": ("local", *QUICK, "--config", "PATH"),
    "replay": ("replay", "PATH"),
    "plan": ("plan", "PATH"),
    "launch": ("launch", "PATH", "--", "true"),
    "read log": ("read", "log", "PATH"),
    "read nccl-tests": ("read", "nccl-tests", "PATH"),
}
WRITTEN = {
    "--record": ("local", *QUICK, "--record", "PATH"),
    "--good-nodes": ("-H", "localhost", *QUICK, "--good-nodes", "PATH"),
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with files of each kind; root may read no more in it than its owner may."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "file").write_text("node01\n")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "unreadable").write_text("node01\n")
    (tmp_path / "unreadable").chmod(0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\0\xff\xfe\1" * 100)
    (tmp_path / "text").write_text("node01\n")
    with as_mere_owner():
        yield tmp_path
    (tmp_path / "closed").chmod(0o700)


@contextmanager
def as_mere_owner() -> Iterator[None]:
    """Do without root's right to read and write everything: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, bits 1 and 2."""
    libc = ctypes.CDLL(None, use_errno=True)
    version3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(version3, sets) == 0
    before = sets[0]
    sets[0] = before & ~0b110
    assert libc.capset(version3, sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(version3, sets) == 0


def refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], path: Path) -> None:
    """Hold a command line with this path to one line of usage error."""
    assert main([word.replace("PATH", str(path)) for word in words]) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert err.startswith("ncheck: ")


@pytest.mark.parametrize("kind", ["missing", "closed/file", "unreadable", "text/below", "a" * 300])
@pytest.mark.parametrize("words", READ.values(), ids=READ)
def test_a_path_that_cannot_be_read_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], place: Path, words: tuple[str, ...], kind: str
) -> None:
    refused(capsys, words, place / kind)


@pytest.mark.parametrize("words", [words for name, words in READ.items() if name != "replay"])
def test_a_folder_in_place_of_a_file_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], place: Path, words: tuple[str, ...]
) -> None:
    refused(capsys, words, place / "folder")


@pytest.mark.parametrize("name", ["nodes", "--config", "plan", "launch", "replay"])
def test_a_binary_file_is_a_usage_error(capsys: pytest.CaptureFixture[str], place: Path, name: str) -> None:
    refused(capsys, READ[name], place / "binary")


@pytest.mark.parametrize("kind", ["closed/file", "text/below", "a" * 300])
@pytest.mark.parametrize("words", WRITTEN.values(), ids=WRITTEN)
def test_a_path_that_cannot_be_written_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], place: Path, words: tuple[str, ...], kind: str
) -> None:
    refused(capsys, words, place / kind)


ALL_CLOSED = "<&- >&- 2>&-"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "closed"),
    [
        ("-", 2, ALL_CLOSED), ("plan -", 2, ALL_CLOSED), ("local --select NC001", 0, ALL_CLOSED), ("list", 0, ">&-"),
        *(("read log -", 1, one) for one in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", ALL_CLOSED)),
    ],
)  # fmt: skip
def test_a_stream_that_is_closed_is_an_empty_one(command: str, code: int, closed: str) -> None:
    line = f"exec {sys.executable} -m ncheck {command} {closed}"
    done = subprocess.run(["/bin/sh", "-c", line], input=b"", capture_output=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [("- 2</dev/null", 2), ("list 1</dev/null", 2), ("- 0>/dev/null", 2), ("read log - 0>/dev/null", 2)],
)
def test_a_stream_that_is_open_the_wrong_way_is_a_usage_error(command: str, code: int) -> None:
    line = f"exec {sys.executable} -m ncheck {command}"
    done = subprocess.run(["/bin/sh", "-c", line], input=b"", capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (code, 0 if "2<" in command else 1), done.stderr


def test_a_current_folder_that_was_removed_is_a_usage_error(tmp_path: Path) -> None:
    line = f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -m ncheck local --select NC001"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (EXIT_USAGE, 1), done.stderr
