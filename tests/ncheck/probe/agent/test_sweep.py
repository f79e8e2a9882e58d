"""Sweeping up after ranks that a launcher started: what nobody has any more goes, what somebody has stays."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.sources import Sources
from ncheck.probe.agent.sweep import answer

SHM = Path("/dev/shm")  # noqa: S108  where NCCL puts its segments
FAR = 60.0  # seconds: an end for what hangs


@pytest.fixture
def segment() -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(prefix="nccl-", dir=SHM, delete=False) as file:
        file.write(b"12345")
    path = Path(file.name)
    yield path
    path.unlink(missing_ok=True)


def swept(seconds: float, *segments: tuple[Path, int]) -> list[str]:
    asked: Any = {"segments": {str(path): inode for path, inode in segments}}
    left: list[str] = answer(Sources({}), asked, seconds)["left"]
    return left


def inode(path: Path) -> int:
    return path.stat().st_ino


def held_by(code: str, path: Path) -> subprocess.Popen[bytes]:
    """Start a process that has the segment open, and wait until it has."""
    argv = [sys.executable, "-c", f"file = open({str(path)!r}); print(flush=True); {code}"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    return process


def test_what_no_process_has_is_removed(segment: Path) -> None:
    gone = SHM / "nccl-was-never-there"
    assert swept(FAR, (segment, inode(segment)), (gone, 1)) == [f"{segment} (5 bytes) was removed"]
    assert not segment.exists()


def test_what_took_its_name_later_stays(segment: Path) -> None:
    assert swept(FAR, (segment, inode(segment) + 1)) == []
    assert segment.exists()


def test_what_is_no_segment_stays(tmp_path: Path) -> None:
    for path in (tmp_path / "nccl-elsewhere", SHM / ".." / "shm" / f"nccl-{tmp_path.name}", SHM / "mine.shm"):
        path.write_bytes(b"")
        assert swept(FAR, (path, inode(path))) == []
        assert path.exists()
        path.unlink()


def test_what_a_process_has_stays_and_is_told(segment: Path) -> None:
    with held_by("input()", segment) as job:
        assert swept(1.0, (segment, inode(segment))) == [f"{segment} stays: a process seems to have it"]
        job.communicate(b"\n")
    assert segment.exists()


def test_a_rank_that_is_about_to_end_is_waited_for(segment: Path) -> None:
    with held_by("input()", segment) as rank:
        waiter = threading.Timer(0.0, rank.communicate, (b"\n",))
        waiter.start()
        assert swept(FAR, (segment, inode(segment))) == [f"{segment} (5 bytes) was removed"]
        waiter.join()
