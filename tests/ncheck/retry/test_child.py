"""The job as a child: its log has whole lines of both streams, and keeps the beginning and the end of a long output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ncheck.retry.child import JobEnd, Log


def logged(path: Path, *parts: tuple[int, bytes], head: int = 100, tail: int = 100) -> bytes:
    log = Log(path.open("wb"), head, tail)
    for stream, data in parts:
        log.add(stream, data)
    log.close()
    return path.read_bytes()


def test_lines_of_two_streams_do_not_cut_each_other(tmp_path: Path) -> None:
    parts = ((1, b"step 1 "), (2, b"warning\nTrace"), (1, b"loss 2\n"), (2, b"back\n"), (1, b"no end"))
    assert logged(tmp_path / "log", *parts) == b"warning\nstep 1 loss 2\nTraceback\nno end\n"


def test_of_a_long_output_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    parts = [(1, b"line %d\n" % number) for number in range(10, 20)]
    kept = logged(tmp_path / "log", *parts, head=16, tail=17)
    assert kept == b"line 10\nline 11\n[ncheck: 48 bytes are left out here]\nline 18\nline 19\n"


def test_a_full_disk_ends_the_log_and_not_the_job(tmp_path: Path) -> None:
    log = Log(Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115  closed by the log
    log.add(1, b"line\n")
    log.close()
    assert log.lost == "No space left on device"
    assert not list(tmp_path.iterdir())


# What the checks leave may be a thread that waits for an answer, such as that of a name server.
BESIDE_A_THREAD = """
import io, threading
from ncheck.retry.child import Log, run_job
threading.Thread(target=threading.Event().wait, daemon=True).start()
print([run_job(["sh", "-c", "exit 3"], Log(io.BytesIO())).code for _ in range(9)])
"""


def test_the_end_of_a_job_is_seen_though_another_thread_takes_its_signal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_A_THREAD], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    assert done.stdout == f"{[3] * 9}\n"


@pytest.mark.parametrize(("code", "words"), [(7, "exit code 7"), (-9, "ended by SIGKILL"), (-40, "ended by signal 40")])
def test_the_end_of_a_job_has_words(code: int, words: str) -> None:
    assert JobEnd(code).shown == words
