"""`ncheck triage --logs` and `ncheck read log` against real logs of failures.

A floor under what is right, a ceiling over what is not.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ncheck.read.text import read_text
from ncheck.triage.certainty import SURE
from ncheck.triage.logs import LogReport, examine_logs

SETS = ("hangs", "hangs4")
FOLDERS = [Path(os.environ["NCHECK_CORPUS"]) / name for name in SETS]
LEAST_RIGHT, MOST_WRONG = 0.85, 0.05  # among the lines of many ranks
LEAST_FIRST, MOST_SURE = 0.98, 0.10  # of decidable cases the first answer is right, of others few are sure

Row = Mapping[str, Any]


def rows(folders: Sequence[Path] = FOLDERS) -> list[Row]:
    found: list[Row] = []
    for folder in folders:
        index = folder / "INDEX.jsonl"
        lines = index.read_text(encoding="utf-8").splitlines() if index.is_file() else []
        found += [{**json.loads(line), "log": folder / json.loads(line)["case"] / "log.txt"} for line in lines]
    return found


def record(row: Row, around: str = "") -> Row:
    text = row["log"].read_bytes().decode("utf-8", "replace")
    return read_text("log", f"{around}\n{text}\n{around}")


# Lines of ranks that start well, and of the others after one has failed.
AROUND = "\n".join(
    f"other{rank % 4}:{rank}:{rank} [{rank % 8}] {words}"
    for rank in range(8)  # two on each of four hosts
    for words in (
        "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "NCCL INFO Failed to open libibverbs.so[.1]",
        "NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0",
        "NCCL WARN socketProgress: Connection closed by remote peer node03<51159>",
        "[E ProcessGroupNCCL.cpp:475] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, N",
    )
)


def right(row: Row, cause: str | None) -> bool:
    """Return whether the cause is the true one, or another that a careful reader could give."""
    return cause in (row["cause"], *row["also_ok"])


@pytest.mark.slow
@pytest.mark.parametrize("around", ["", AROUND], ids=["as it is", "among the lines of many ranks"])
def test_most_causes_are_found_and_few_wrong_ones_are_named(around: str) -> None:
    judged = [row for row in rows() if row["decidable_from_log"] and not (around and row["cause"] == "healthy")]
    decidable = [(row, record(row, around)["cause"]) for row in judged]
    good = [row for row, cause in decidable if right(row, cause)]
    wrong = [(row["case"], cause) for row, cause in decidable if cause and not right(row, cause)]
    assert len(good) >= LEAST_RIGHT * len(decidable)
    assert len(wrong) <= MOST_WRONG * len(decidable), wrong


@pytest.mark.parametrize("row", [row for row in rows() if row["cause"] == "healthy"], ids=lambda row: row["case"])
def test_a_healthy_job_is_given_no_other_cause(row: Row) -> None:
    assert record(row)["cause"] in ("healthy", None)


@pytest.mark.parametrize("row", [row for row in rows() if not row["decidable_from_log"]], ids=lambda row: row["case"])
def test_what_a_log_does_not_decide_has_low_confidence(row: Row) -> None:
    read = record(row)
    assert right(row, read["cause"]) or read["confidence"] == "low"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["case"])
def test_every_answer_has_evidence_and_a_fix(row: Row) -> None:
    read = record(row)
    assert read["fix"] or read["cause"] == "rank_crashed"  # of an error of the program itself, its lines say it
    assert read["evidence"] or read["cause"] in ("healthy", None)


def triage(row: Row) -> LogReport:
    return examine_logs([str(row["log"])], io.BytesIO())


@pytest.mark.parametrize("folder", FOLDERS, ids=SETS)
def test_the_first_answer_is_right_where_the_log_decides(folder: Path) -> None:
    judged = [(row, triage(row)) for row in rows([folder]) if row["decidable_from_log"] and row["cause"] != "healthy"]
    wrong = [row["case"] for row, found in judged if not (found.diagnoses and right(row, found.diagnoses[0].cause))]
    assert len(wrong) <= (1 - LEAST_FIRST) * len(judged), wrong


def test_where_the_log_does_not_decide_few_answers_are_sure_and_others_have_candidates() -> None:
    judged = [(row, triage(row)) for row in rows() if not row["decidable_from_log"]]
    sure = [row["case"] for row, found in judged if found.diagnoses and found.diagnoses[0].confidence >= SURE]
    assert len(sure) <= MOST_SURE * len(judged), sure


@pytest.mark.parametrize("row", [row for row in rows() if row["cause"] == "healthy"], ids=lambda row: row["case"])
def test_a_healthy_job_gives_no_diagnosis(row: Row) -> None:
    assert triage(row).diagnoses == ()
