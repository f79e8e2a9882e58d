"""NCCL Inspector's files: who keeps the others waiting, by rank and node, of every version, and hostile lines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from ncheck.model.next_step import Action, NextStep
from ncheck.triage import inspector
from ncheck.triage.logs import LogReport, examine_logs

from tests.ncheck.triage.arrivals import calls

STEPS = 128


def header(process: int, comm: str, rank: int, size: int, version: str = "v4.0") -> dict[str, object]:
    """Return what is in each record of v4.0, and since v4.3 in a marker."""
    return {
        "header": {"id": comm, "rank": rank, "n_ranks": size, "nnodes": 2},
        "metadata": {"inspector_output_format_version": version, "git_rev": "", "rec_mechanism": "profiler_plugin",
                     "dump_timestamp_us": 1748030377748202, "hostname": f"node{1 + process // 8:02d}",
                     "pid": 1000 + process},
    }  # fmt: skip


def perf(number: int, time: float, coll: str = "AllReduce", source: str = "kernel_gpu") -> dict[str, object]:
    return {"coll": coll, "coll_sn": number, "coll_msg_size_bytes": 2**24, "coll_exec_time_us": int(time),
            "coll_timing_source": source, "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1}  # fmt: skip


def records(
    process: int, of: Sequence[dict[int, float]], comm: str = "0x7f8c", rank: int = -1, *, markers: bool = False
) -> str:
    """Return what v4.0 or v4.3 writes of a process: one of 16 ranks, or `rank` in a smaller communicator."""
    rank, size = (process, 16) if rank < 0 else (rank, len(of[0]))
    own = header(process, comm, rank, size, "v4.3" if markers else "v4.0")
    calls_ = [{"coll_perf": perf(number, call[rank])} for number, call in enumerate(of)]
    marker = [own | {"dump_stats": {"coll_records": len(of), "coll_dropped_total": 0}}]
    lines = marker + calls_ if markers else [own | call for call in calls_]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def report(folder: Path, files: Iterable[tuple[int, str]]) -> LogReport:
    for rank, text in files:
        (folder / f"node{1 + rank // 8:02d}-pid{1000 + rank}.log").write_text(text, encoding="utf-8")
    return examine_logs([str(folder)], io.BytesIO())


def test_the_rank_that_comes_last_in_most_calls_is_named_with_its_node(tmp_path: Path) -> None:
    of = calls(1, 16, STEPS, slow=(11,))
    mixed = report(tmp_path, [(rank, records(rank, of, markers=rank % 2 == 0)) for rank in range(16)])
    (found,) = mixed.diagnoses
    assert (found.cause, found.confidence, found.ranks, found.nodes) == ("slow_rank", 0.85, (11,), ("node02",))
    assert found.meaning == "rank 11 on node02 enters its collectives last, and the others wait for it"
    (line,) = found.evidence
    assert line.file == str(tmp_path / "node02-pid1011.log")
    assert line.text == (
        "rank 11 on node02 came last in 127 of 128 calls of communicator 0x7f8c (16 ranks):"
        " the others waited 9.75 ms of 29.8 ms"
    )
    assert found.next == NextStep(Action.LOOK, (), 0.77)
    assert (mixed.files, mixed.lines) == (16, 16 * STEPS + 8)
    assert mixed.notes == ("NCCL Inspector: 128 calls were compared",)


def test_jitter_alone_is_a_healthy_job(tmp_path: Path) -> None:
    of = calls(1, 16, STEPS, "lasting")
    found = report(tmp_path, [(rank, records(rank, of)) for rank in range(16)])
    assert (found.diagnoses, found.healthy, found.summary) == ((), True, "no failure: the job makes progress")
    assert found.notes == ("NCCL Inspector: 128 calls were compared, and no rank or node comes last in most of them",)


def test_files_beside_logs_are_no_sign_that_the_job_of_the_logs_makes_progress(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "gpu01:7:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 - Init START\n"
    )
    of = calls(1, 16, STEPS, "lasting")
    found = report(tmp_path, [(rank, records(rank, of)) for rank in range(16)])
    assert (found.diagnoses, found.healthy) == ((), False)


def test_a_slow_node_is_named_where_none_of_its_ranks_is(tmp_path: Path) -> None:
    of = calls(2, 16, STEPS, slow=tuple(range(8, 16)))
    (found,) = report(tmp_path, [(rank, records(rank, of)) for rank in range(16)]).diagnoses
    assert (found.meaning, found.ranks) == (
        "node02 enters its collectives last, and the others wait for it", tuple(range(8, 16)),
    )  # fmt: skip


def test_a_rank_that_is_late_because_it_waits_for_another_is_not_named(tmp_path: Path) -> None:
    """The ranks of node02 compute together, and the fourth of them is late: so the first is late in a second group."""
    inside, outside = calls(3, 8, STEPS, slow=(3,)), calls(4, 2, STEPS, slow=(1,))
    files = {process: records(process, inside, "0xab", process - 8) for process in range(8, 16)}
    files |= {0: records(0, outside, "0xcd", 0), 8: files[8] + records(8, outside, "0xcd", 1)}
    (found,) = report(tmp_path, files.items()).diagnoses
    assert found.meaning == "rank 3 on node02 enters its collectives last, and the others wait for it"


def test_ranks_of_one_process_are_told_apart(tmp_path: Path) -> None:
    of = calls(1, 16, STEPS, slow=(3,))
    one = "".join(records(rank, of) for rank in range(8)).replace("node02", "node01")
    (found,) = report(tmp_path, [(0, re.sub(r'"pid": \d+', '"pid": 7', one))]).diagnoses
    assert (found.ranks, found.nodes) == ((3,), ("node01",))


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda _, text: "".join(text.splitlines(keepends=True)[:100]), "and 100 are there"),
        (lambda rank, text: text if rank < 5 else "", "and 0 are there"),  # a third of the ranks
        (lambda _, text: text.replace("kernel_gpu", "collective_cpu"), "and 0 are there"),
        (lambda _, text: text.replace("AllReduce", "Broadcast"), "and 0 are there"),  # its root does not wait
    ],
)
def test_what_cannot_be_compared_names_nobody_and_is_said(
    tmp_path: Path, change: Callable[[int, str], str], note: str
) -> None:
    of = calls(1, 16, STEPS, slow=(11,))
    found = report(tmp_path, [(rank, change(rank, records(rank, of))) for rank in range(16)])
    assert (found.diagnoses, found.healthy) == ((), False)
    assert found.summary == "NCCL Inspector's files alone do not decide it"
    assert found.notes[0].startswith("NCCL Inspector: too few calls")
    assert found.notes[0].endswith(note)


HOSTILE = (
    "{", '{"coll_perf": 7}', '{"coll_perf": {"coll": "AllReduce", "coll_sn": -1, "coll_exec_time_us": 1}}',
    '{"coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_exec_time_us": NaN}}', "[" * 5000, '{"a":' * 5000,
    "\0\x1b]0;x", "9" * 100_000,
    '{"header": {"id": "0x1", "rank": 99, "n_ranks": 2}, "coll_perf": {"coll": "AllReduce", "coll_sn": 1}}',
    json.dumps(header(3, "0x7f8c", 3, 16) | {"metadata": {"hostname": "a; rm", "pid": 1}, "coll_perf": perf(0, 9)}),
    '{"p2p_perf": {"p2p": "Send", "p2p_sn": 4}}', '{"proxy_trace": {"record_type": "proxy_op"}}',
)  # fmt: skip


def test_hostile_damaged_and_other_records_are_left_out(tmp_path: Path) -> None:
    of = calls(1, 16, STEPS, slow=(11,))
    files = [(rank, "\n".join([records(rank, of).strip(), *HOSTILE])) for rank in range(16)]
    (found,) = report(tmp_path, files).diagnoses
    assert (found.ranks, found.nodes) == ((11,), ("node02",))


def test_records_whose_communicator_is_not_known_and_calls_of_two_runs_name_nobody(tmp_path: Path) -> None:
    """A marker is damaged where a process was ended as it wrote. By NCCL_COMM_ID two runs have one communicator."""
    slow, even = calls(1, 16, STEPS, slow=(11,)), calls(1, 16, STEPS)
    first, second = even[:3], [{rank: time / 9 if rank == 4 else time for rank, time in call.items()} for call in even]
    damaged = [
        (rank, records(rank, first, markers=True) + '{"header": {"id"' + records(rank, second, "0xcd", markers=True))
        for rank in range(16)
    ]
    assert report(tmp_path, damaged).notes[0].endswith("and 3 are there")
    again = [(rank, records(rank, slow)) for rank in range(16)]
    again += [(rank + 16, records(rank, even).replace('"pid": 10', '"pid": 20')) for rank in range(16)]
    assert report(tmp_path, again).notes[0].endswith("and 0 are there")


def test_a_time_of_nothing_is_no_time(tmp_path: Path) -> None:
    of = [call | {11: 0.0} for call in calls(1, 16, STEPS)]
    assert report(tmp_path, [(rank, records(rank, of)) for rank in range(16)]).diagnoses == ()


def test_of_a_large_file_the_last_records_are_read_and_of_too_many_files_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = [call | {11: call[11] + 30_000} for call in calls(1, 16, 300)] + calls(2, 16, STEPS, slow=(4,))
    monkeypatch.setattr(inspector, "_TAIL", 64_000)
    files = [(rank, records(rank, of)) for rank in range(16)]
    assert [one.ranks for one in report(tmp_path, files).diagnoses] == [(4,)]
    monkeypatch.setattr(inspector, "_MOST", 1000)
    found = report(tmp_path, files)
    assert found.unread[0].reason == "more than 1,000 records of NCCL Inspector: the others were not read"
