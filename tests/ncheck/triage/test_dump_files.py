"""Flight recorder dumps beside logs: read by their rank, and joined with what the logs say."""

from __future__ import annotations

import io
import os
from pathlib import Path

from ncheck.triage.dump_files import dump_files
from ncheck.triage.logs import LogReport, examine_logs

from tests.ncheck.triage.dumps import as_json, pickled, steps, value

WATCHDOG = (
    "[rank1]:[E1122 10:20:30.123456789 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600029 "
    "milliseconds before timing out.\n"
)


def examined(*paths: Path) -> LogReport:
    return examine_logs(map(str, paths), io.BytesIO())


def write(folder: Path) -> None:
    """Rank 0 has not called the fourth all-reduce, in which the others wait."""
    (folder / "nccl_trace_rank_0").write_bytes(pickled(value(steps(3), 3)))
    (folder / "nccl_trace_rank_1").write_bytes(pickled(value(steps(4, "scheduled"), 3)))
    (folder / "nccl_trace_rank_2.json").write_bytes(as_json(value(steps(4, "scheduled"), 3)))


def test_the_rank_that_never_came_is_named_from_the_dumps_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path)
    report = examined(tmp_path)
    best = report.diagnoses[0]
    assert (best.cause, best.ranks, best.evidence[0].file) == (
        "slow_rank_timeout", (0,), str(tmp_path / "nccl_trace_rank_0"),
    )  # fmt: skip
    assert (report.files, report.lines, report.unread, report.healthy) == (3, 0, (), False)


def test_dumps_and_logs_are_one_answer(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "job.log").write_text(WATCHDOG)
    report = examined(tmp_path)
    assert [one.cause for one in report.diagnoses].count("slow_rank_timeout") == 1
    best = report.diagnoses[0]
    assert (best.ranks, {os.path.basename(one.file) for one in best.evidence}) == (  # noqa: PTH119
        (0,), {"nccl_trace_rank_0", "job.log"},
    )  # fmt: skip
    assert report.files == 4


def test_a_dump_that_cannot_be_read_is_said_and_no_log(tmp_path: Path) -> None:
    broken = tmp_path / "nccl_trace_rank_7"
    broken.write_bytes(pickled(value(steps(3), 3))[:60] + b"entries" + b"\xff" * 50)
    report = examined(broken)
    why = "no dump of the flight recorder: its pickle has the opcode 0x6e, which builds more than plain data"
    assert [(one.name, one.reason) for one in report.unread] == [(str(broken), why)]
    assert (report.diagnoses, report.lines) == ((), 0)


def test_of_two_dumps_of_one_rank_the_newer_one_counts(tmp_path: Path) -> None:
    for name, count, time in (("old", 3, 100.0), ("new", 5, 200.0)):
        path = tmp_path / name / "rank_0"
        path.parent.mkdir()
        path.write_bytes(pickled(value(steps(count), 1)))
        os.utime(path, (time, time))
    found = dump_files([str(tmp_path / "new"), str(tmp_path / "old")])
    assert (found.names, found.dumps[0].entries) == ({0: str(tmp_path / "new" / "rank_0")}, 5)


def test_logs_pipes_and_other_pickles_are_no_dumps(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_text("step 1 loss 0.2\n")
    (tmp_path / "rank_1").write_bytes(b"\x80\x02}q\x00.")
    os.mkfifo(tmp_path / "rank_2")
    found = dump_files([str(tmp_path), "-", str(tmp_path / "none")])
    assert (found.dumps, found.unread, found.paths) == ({}, {}, set())
