from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.model.fact import Unread
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.log_tails import LogTail, LogTailsFacts
from ncheck.triage.judge import diagnoses_of
from ncheck.triage.live.logs import signs
from ncheck.triage.logs import examine_logs

from .jobs import cluster, job, process, rank

JOB = job(rank(0, "gpu01"), rank(1, "gpu02"))
TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    x()\nValueError: bad batch\n'
)
STEPS = "step 10 loss 2.5\nstep 11 loss 2.4\nstep 12 loss 2.3\n"
WATCHDOG = (
    "[rank0]:[E817 17:53:34.227 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600004 milliseconds"
    " before timing out.\n"
)


def tail(pid: int, text: str | Unread, **words: Any) -> LogTail:
    return LogTail(f"/logs/{pid}.txt", (pid,), text, **words)


def of(**nodes: LogTail) -> list[Sign]:
    return list(signs(JOB, cluster({name: {LogTailsFacts: LogTailsFacts((one,), {})} for name, one in nodes.items()})))


def test_logs_that_report_steps_are_no_clue() -> None:
    assert of(gpu01=tail(4000, STEPS), gpu02=tail(4001, STEPS)) == []


def test_a_log_that_grows_by_steps_is_motion() -> None:
    assert of(gpu01=tail(4000, STEPS, grown=17)) == [
        Motion("logs", None, "gpu01", moves=True, text="rank 0 (pid 4000 on gpu01) reports progress in"
               " /logs/4000.txt: step 12 loss 2.3"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["still waiting for rank 1\n", STEPS + "waiting\nwaiting\nwaiting\n"])
def test_a_log_that_grows_without_steps_is_no_motion(text: str) -> None:
    assert of(gpu01=tail(4000, text, grown=8)) == []


def test_an_exception_counts_in_any_case_only_where_the_rank_has_ended() -> None:
    (found,) = of(gpu01=tail(4000, STEPS), gpu02=tail(4001, STEPS + TRACEBACK))
    assert isinstance(found, Clue)
    assert (found.cause, found.grade, found.ranks, found.nodes, found.kind, found.still) == (
        "rank_crashed", Grade.LIKELY, (1,), ("gpu02",), "exception", True
    )  # fmt: skip
    ended = job(JOB.ranks[0], replace(JOB.ranks[1], process=process(4001, state="Z")))
    tails = LogTailsFacts((tail(4001, STEPS + TRACEBACK),), {})
    (gone,) = signs(ended, cluster({"gpu02": {LogTailsFacts: tails}}))
    assert isinstance(gone, Clue)
    assert not gone.still
    assert found.text == "gpu02:/logs/4001.txt:7: ValueError: bad batch"


def test_an_exception_counts_only_in_a_standstill_while_another_rank_reports_progress() -> None:
    found, _ = of(gpu01=tail(4000, STEPS, grown=17), gpu02=tail(4001, STEPS + TRACEBACK))
    assert isinstance(found, Clue)
    assert found.still


def test_a_line_of_a_part_is_counted_from_the_end() -> None:
    (found,) = of(gpu02=tail(4001, STEPS + TRACEBACK + "bye\n", whole=False))
    assert isinstance(found, Clue)
    assert found.text == "gpu02:/logs/4001.txt, 2 lines before its end: ValueError: bad batch"


def test_a_rank_that_went_on_after_an_exception_is_not_accused() -> None:
    assert of(gpu01=tail(4000, TRACEBACK + STEPS + STEPS, grown=17))[0].source == "logs"
    assert [one for one in of(gpu01=tail(4000, TRACEBACK + STEPS + STEPS)) if isinstance(one, Clue)] == []


def test_a_watchdog_of_a_rank_that_waits_names_no_culprit() -> None:
    (found,) = [one for one in of(gpu01=tail(4000, WATCHDOG)) if isinstance(one, Clue)]
    assert (found.ranks, found.still) == ((), True)


def test_a_secret_in_a_log_is_not_shown() -> None:
    (found,) = of(gpu01=tail(4000, "RuntimeError: login failed, password=hunter2secret\n"))
    assert isinstance(found, Clue)
    assert "hunter2secret" not in found.text


def test_a_log_that_cannot_be_read_says_nothing() -> None:
    assert of(gpu01=tail(4000, Unread("Permission denied"))) == []


def test_what_a_launcher_prints_is_of_no_single_rank() -> None:
    text = "[1,1]<stderr>:ValueError: bad batch\n"
    (found,) = signs(JOB, cluster({"gpu01": {LogTailsFacts: LogTailsFacts((tail(77, text),), {})}}))
    assert isinstance(found, Clue)
    assert (found.ranks, found.nodes) == ((1,), ("gpu02",))


OOM = "gpu01:7:8 [0] NCCL WARN Cuda failure 2 'out of memory'\n"
NO_ROUTE = "gpu01:7:8 [0] NCCL WARN Net : Connect to 10.1.0.9<401> failed : No route to host\n"


@pytest.mark.parametrize("text", [
    TRACEBACK, OOM, NO_ROUTE, TRACEBACK + OOM,
    "n1:7:8 [0] NCCL WARN GDRCOPY failure 3\n",  # its command replaces the fix of the cause
    "n1:7:8 [0] NCCL WARN NET/IB: Got completion from peer 10.0.1.23<4> with status=12 opcode=0 len=0\n",
])  # fmt: skip
def test_one_log_has_one_answer_be_it_a_file_or_of_a_running_job(text: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    alone = examine_logs([str(tmp_path / "log")], io.BytesIO()).diagnoses
    running = diagnoses_of([one for one in of(gpu01=tail(77, text)) if isinstance(one, Clue)], JOB)
    assert [(one.cause, one.confidence, one.meaning, one.fix) for one in running] == [
        (one.cause, one.confidence, one.meaning, one.fix) for one in alone
    ]
