"""What ranks leave in /dev/shm: what is provably theirs is removed, and nothing of anybody else's."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ncheck.fleet.bootstrap import rank_program
from ncheck.probe.agent import segments

SHM = Path("/dev/shm")  # noqa: S108  where NCCL puts its segments
FAR = 60.0  # seconds: an end for what hangs


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder of shared memory: other file systems tell other inodes in a process's maps."""
    made = Path(tempfile.mkdtemp(dir=SHM))
    yield made
    shutil.rmtree(made)


def made(folder: Path, *names: str) -> dict[str, int]:
    for name in names:
        (folder / name).write_bytes(b"12345")
    return {str(folder / name): (folder / name).stat().st_ino for name in names}


def test_only_what_came_meanwhile_and_was_seen_with_our_ranks_is_removed(folder: Path) -> None:
    old = made(folder, "nccl-before")
    before = segments.here(str(folder))
    assert before == old
    ours = made(folder, "nccl-ours", "cuda.shm.0.1a.1")
    theirs = made(folder, "nccl-theirs", "cuda.shm.0.1.1", "other")
    words = segments.removed(before, {**old, **ours}, str(folder))
    assert words == [f"{path} (5 bytes) was removed" for path in sorted(ours)]
    assert {str(path) for path in folder.iterdir()} == {*old, *theirs}


def test_a_name_that_another_job_took_after_us_is_not_removed(folder: Path) -> None:
    ours = made(folder, "nccl-ours")
    (folder / "other").write_bytes(b"")  # takes the next inode
    Path(*ours).unlink()
    theirs = made(folder, "other2", "nccl-ours")
    assert theirs[next(iter(ours))] != ours[next(iter(ours))]
    assert segments.removed({}, ours, str(folder)) == []
    assert (folder / "nccl-ours").exists()


def test_what_a_process_has_mapped_or_open_is_its_own(folder: Path) -> None:
    mapped, opened = made(folder, "nccl-mapped"), made(folder, "nccl-open")
    made(folder, "nccl-theirs", "other")
    with (folder / "nccl-mapped").open("rb") as file:
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with held, (folder / "nccl-open").open("rb"), (folder / "other").open("rb"):
        (folder / "nccl-gone").write_bytes(b"")
        with (folder / "nccl-gone").open("rb"):
            (folder / "nccl-gone").unlink()
            found = segments.used_by(os.getpid(), str(folder))
    assert {path: inode for path, inode in found.items() if "gone" not in path} == {**mapped, **opened}
    assert segments.used_by(folder=str(folder)) == {}


def test_what_nobody_here_has_is_told_and_stays(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"f = open({str(folder / 'nccl-held')!r}, 'w'); print(flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as job:  # fmt: skip
        assert job.stdout
        job.stdout.readline()
        made(folder, "nccl-nobodys")
        assert segments.doubtful({}, str(folder), FAR) == [
            f"{folder}/nccl-nobodys appeared meanwhile and its owner is unknown: it was not removed"
        ]
        assert (folder / "nccl-nobodys").exists()
        job.communicate(b"\n")


def wait_for(what: Callable[[], object]) -> None:
    """Wait for what happens by itself; the bound is for what hangs."""
    ends = time.monotonic() + FAR
    while not what():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.05)


@pytest.fixture
def launched(standins: Callable[..., Path], alone_in_shm: None) -> Iterator[Callable[[str], list[dict[str, object]]]]:  # noqa: ARG001  for as long as it runs
    """Return a function that ends a rank as a launcher does, once it hangs; it returns the rank's last lines."""
    mark = os.urandom(8).hex()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "NCCL_", "CUDA_"))}
    spec = {"rank": 0, "local": 0, "world": 1, "gpus": [0], "sizes": [8], "seconds": 300.0}

    def run(standin: str) -> list[dict[str, object]]:
        job = {"LD_LIBRARY_PATH": str(standins()), "STANDIN_MARK": mark, "STANDIN_NCCL": standin}
        more = {"NCCL_SOCKET_IFNAME": "=lo", "NCHECK_RANK": json.dumps(spec)}
        argv = [sys.executable, "-B", "-S", "-c", rank_program()]
        with subprocess.Popen(argv, env={**plain, **job, **more}, stdout=subprocess.PIPE, text=True) as rank:
            assert rank.stdout
            lines = []
            for line in rank.stdout:
                ours, _, text = line.partition("ncheck:")
                lines += [json.loads(text)] if text and not ours else []
                if text and "hang" in standin and lines[-1].get("step", "").startswith("all-reduce"):
                    rank.send_signal(signal.SIGTERM)
        return lines

    yield run
    assert list(SHM.glob(f"nccl-{mark}*")) == []


def test_a_rank_under_a_launcher_removes_what_it_leaves_when_it_is_told_to_end(
    launched: Callable[[str], list[dict[str, object]]],
) -> None:
    lines = launched("shm=leave,hang=collective,at=4")
    (held,) = {path for line in lines if line["is"] == "held" for path in line["segments"]}  # type: ignore[attr-defined]
    assert [{**line, "rank": None} for line in lines if line["is"] == "removed"] == [
        {"is": "removed", "rank": None, "gone": [held]},
        {"is": "removed", "rank": None, "words": [f"{held} (4096 bytes) was removed"]},
    ]


def test_a_rank_that_fails_by_itself_tells_what_it_had_and_leaves_it_to_the_sweep(
    launched: Callable[[str], list[dict[str, object]]],
) -> None:
    lines = launched("shm=leave,fail=collective,at=4")
    (held,) = {path for line in lines if line["is"] == "held" for path in line["segments"]}  # type: ignore[attr-defined]
    assert [line for line in lines if line["is"] == "removed"] == []
    assert Path(held).exists()
    Path(held).unlink()


def test_a_rank_under_a_launcher_says_that_all_is_gone_where_nccl_removed_it_itself(
    launched: Callable[[str], list[dict[str, object]]],
) -> None:
    lines = launched("hang=collective,at=4")
    (held,) = {path for line in lines if line["is"] == "held" for path in line["segments"]}  # type: ignore[attr-defined]
    assert {**next(line for line in lines if line["is"] == "removed"), "rank": 0} == {
        "is": "removed", "rank": 0, "gone": [held],
    }  # fmt: skip
