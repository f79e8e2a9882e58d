"""What /proc shows of a process: of this one, of one that has ended, and of one that this user may not look into."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ncheck.agent import proc

GONE = 1 << 22  # no Linux has so many processes


def everything(pid: int) -> dict[str, object]:
    """Return what each function says of a process."""
    return {
        "stat": proc.stat(pid), "status": proc.status(pid), "threads": proc.threads(pid),
        "above": list(proc.above(pid)), "text": proc.text(pid, "wchan"), "link": proc.link(pid, "cwd"),
        "environment": proc.environment(pid), "command": proc.command(pid), "descriptors": proc.descriptors(pid),
        "position": proc.position(pid, 1), "sockets": proc.sockets(pid), "moved": proc.moved(pid),
        "mapped": proc.mapped(pid, "/"),
    }  # fmt: skip


NOTHING: dict[str, object] = {
    "stat": None, "status": {}, "threads": [], "above": [], "text": "", "link": "", "environment": {}, "command": [],
    "descriptors": {}, "position": None, "sockets": set(), "moved": None, "mapped": {},
}  # fmt: skip


def test_a_process_that_is_gone_has_nothing() -> None:
    assert everything(GONE) == NOTHING
    assert not proc.is_still(GONE, 1)


def test_a_process_that_has_ended_has_its_figures_until_its_parent_notices() -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        stat = proc.stat(child.pid)
        assert stat is not None
        assert (stat.state, stat.ended, stat.parent, stat.exit_code) == ("Z", True, os.getpid(), 3 << 8)
        assert not proc.is_still(child.pid, stat.started)
        assert proc.environment(child.pid) == {}
    assert proc.stat(child.pid) is None


def as_somebody_else(work: Callable[[], object]) -> object:
    """Return what `work` returns to a user who may look into none of our processes."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    return json.loads(data)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_what_another_user_hides_is_not_the_same_as_nothing() -> None:
    here = os.getpid()
    looked = as_somebody_else(lambda: (
        proc.environment(here), proc.descriptors(here), proc.sockets(here), proc.mapped(here, "/"),
        proc.link(here, "cwd"), proc.moved(here), proc.position(here, 1), here in proc.pids(), proc.stat(here) is None,
        proc.command(here)[:1],
    ))  # fmt: skip
    assert looked == [None, None, None, None, "", None, None, True, False, proc.command(here)[:1]]


def test_a_name_may_have_spaces_parentheses_and_any_bytes(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/cat")
    command = [str(program), "-"]
    with subprocess.Popen(
        command, env={b"\xff": b"a=b", b"EMPTY": b""}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"x")
        child.stdin.flush()
        assert child.stdout.read(1) == b"x"  # before it runs, it shows neither words nor variables
        child_stat = proc.stat(child.pid)
        assert child_stat is not None
        assert (child_stat.name, child_stat.parent) == ("a) S 1 (b", os.getpid())
        assert proc.command(child.pid) == [str(program), "-"]
        assert proc.environment(child.pid) == {"\\xff": "a=b", "EMPTY": ""}
        assert proc.environment(child.pid, errors="surrogateescape") == {"\udcff": "a=b", "EMPTY": ""}


def test_the_figures_are_those_that_the_system_gives_by_other_means() -> None:
    stat = proc.stat("self")
    assert stat is not None
    assert (stat.state, stat.parent, stat.of_kernel) == ("R", os.getppid(), False)
    assert proc.is_still(os.getpid(), stat.started)
    assert not proc.is_still(os.getpid(), stat.started + 1)
    assert proc.status("self")["Uid"].split()[:2] == [str(os.getuid()), str(os.geteuid())]
    assert proc.link("self", "cwd") == str(Path.cwd())
    assert next(proc.above(os.getpid())) == os.getppid()
    assert set(proc.threads(os.getpid())) >= {os.getpid(), threading.get_native_id()}
    thread = proc.stat(os.getpid(), thread=threading.get_native_id())
    assert thread is not None
    assert thread.state == "R"
    moved = proc.moved(os.getpid())
    assert moved is not None
    assert moved[0] > 0


def test_a_line_that_is_cut_off_is_no_process(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    for line in ("", "7 (python", "7 (python) S 1 7 7", f"7 (python) S x{' 1' * 48}"):
        (tmp_path / "7/stat").write_text(line)
        assert proc.stat(7, str(tmp_path)) is None
    (tmp_path / "7/stat").write_text(f"7 (python) S 1{' 1' * 4} 2097153{' 1' * 15}")  # before Linux 3.5
    stat = proc.stat(7, str(tmp_path))
    assert stat is not None
    assert (stat.name, stat.parent, stat.exit_code, stat.of_kernel) == ("python", 1, 0, True)


def test_what_is_open_or_mapped_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    with (
        (tmp_path / "file").open("r+b") as writer, (tmp_path / "file").open("rb") as reader,
        closing(socket.socket()) as sock, mmap.mmap(reader.fileno(), 0, access=mmap.ACCESS_READ),
    ):  # fmt: skip
        os.lseek(writer.fileno(), 4, os.SEEK_SET)
        opened, path, inode = proc.descriptors("self"), str(tmp_path / "file"), str(os.fstat(sock.fileno()).st_ino)
        assert opened is not None
        assert [opened[file.fileno()] for file in (writer, reader, sock)] == [path, path, f"socket:[{inode}]"]
        assert proc.descriptors("self", most=2) == dict(list(opened.items())[:2])
        assert [proc.position(os.getpid(), file.fileno()) for file in (writer, reader)] == [4, None]
        assert inode in (proc.sockets("self") or ())
        assert os.getpid() in list(proc.holders(inode))
        assert proc.mapped("self", str(tmp_path)) == {path: os.fstat(reader.fileno()).st_ino}
    assert list(proc.holders(inode)) == []


def test_what_is_beneath_comes_level_by_level_and_a_circle_ends() -> None:
    parents = {2: 1, 3: 1, 4: 2, 5: 4, 6: 9, 9: 6}
    assert proc.beneath([1], parents) == [2, 3, 4, 5]
    assert proc.beneath([2, 6], parents) == [4, 9, 5]
    assert proc.beneath([7], parents) == []


def test_without_proc_there_is_no_list_of_processes() -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.raises(FileNotFoundError):
        proc.pids(folder + "/proc")
