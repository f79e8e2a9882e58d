"""What programs print becomes a result, or a failure with words: never a pass, whatever a node makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.probe.facts import ProbeFacts, probed
from ncheck.probe.node_result import NodeResult, StepFailure

MIB = 2**20
ASKED: dict[str, Any] = {
    "round": 1, "stage": "inside", "method": "nccl-tests", "group": ["n1"], "ranks": [2], "sizes": [MIB], "net": "",
    "launcher": "agents", "expect": None, "planned": ["eth0"],
}  # fmt: skip
RAIL: dict[str, Any] = {
    **ASKED, "stage": "rail", "method": "rdma", "group": ["n1", "n2"], "ranks": [1, 1], "planned": ["mlx5_0:1"],
    "tool": "ib_write_bw", "serves": False,
}  # fmt: skip
HEAD = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
RANKS = "".join(f"#  Rank  {rank} Group  0 Pid 1 on n1 device  {rank} [0000:0f:00] H100\n" for rank in range(2))
ROW = "  1048576  262144  float  sum  -1  250.0  4.19  4.19  0  125.0  8.39  8.39  0\n"
END = "# Out of bounds values : 0 OK\n"


def output(stdout: str, **more: Any) -> dict[str, Any]:
    return {"stdout": stdout, "stderr": "", "exit_status": 0, "status": "ok", "reason": "", "seconds": 1.0, **more}


def result(asked: dict[str, Any], value: Any) -> NodeResult:
    reply = Reply(Status.OK, value=value, asked=asked)
    told = probed(Evidence("n1", Login(reached=True), replies={"answer:step#1": reply}))
    assert isinstance(told, ProbeFacts)
    (one,) = told.results
    return one


def test_a_whole_table_is_both_rows_of_the_size_that_was_asked_for() -> None:
    other = ROW.replace("1048576", "2097152")
    told = result(ASKED, {"rows": [], "output": output(RANKS + HEAD + ROW + other + END)})
    assert [(row.size, row.in_place, round(row.seconds * 1e6), row.wrong) for row in told.rows] == [
        (MIB, False, 250, 0),
        (MIB, True, 125, 0),
    ]
    assert told.failure is None


def test_wrong_elements_that_only_the_sum_tells_of_are_not_lost() -> None:
    wrong = ROW.replace("  0", "  N/A")
    said = output(RANKS + HEAD + wrong + END.replace("0 OK", "7 FAILED"), exit_status=1)
    assert {row.wrong for row in result(ASKED, {"rows": [], "output": said}).rows} == {7}


@pytest.mark.parametrize(
    "value",
    [
        {"rows": []},
        {"rows": [], "output": None},
        {"rows": [], "output": "text"},
        {"rows": [], "output": {}},
        {"rows": [], "output": output("")},
        {"rows": [], "output": output(HEAD + ROW + END)},  # it does not tell how many ranks there were
        {"rows": [], "output": output(RANKS + HEAD + ROW)},
        {"rows": [], "output": output(RANKS + HEAD + ROW + END, exit_status=2)},
        {"rows": [], "output": output(RANKS + HEAD + ROW + END, status="timeout")},
        {"rows": [], "output": output(RANKS + HEAD + ROW.replace("250.0", "nan") + END)},
        {"rows": [], "output": output(RANKS + HEAD + ROW.replace("1048576", "8") + END)},
        {"rows": [], "output": {"stdout": 3, "status": []}},
    ],
)
def test_what_is_not_all_of_the_test_is_a_failure_with_words(value: Any) -> None:
    told = result(ASKED, value)
    assert told.rows == ()
    assert isinstance(told.failure, StepFailure)
    assert told.failure.words


@pytest.mark.parametrize(
    "value",
    [{"rows": []}, {"rows": [], "output": 1}, {"rows": [], "output": output("")},
     {"rows": [], "output": output(" 65536 5000 97.5 97.4 0.1")}],
)  # fmt: skip
def test_a_client_that_tells_no_bandwidth_has_failed(value: Any) -> None:
    assert result(RAIL, value).failure is not None


def test_a_server_that_ended_well_need_tell_nothing() -> None:
    told = result({**RAIL, "serves": True}, {"rows": [], "output": output("remote address: LID 0x04\n")})
    assert (told.rows, told.failure) == ((), None)


def test_words_of_a_node_steer_no_terminal() -> None:
    said = output("Couldn't connect to \x1b]0;PWNED\x07\n", exit_status=1)
    failure = result(RAIL, {"rows": [], "output": said}).failure
    assert failure is not None
    assert (failure.step, "\x1b" in failure.words) == ("connect", False)


@pytest.mark.parametrize(
    "row",
    ["0 1000 1.0 1.0 0.1", "65536 5000 1 99999999999999999999 0", "65536 5000 1 1e-9 0"],
)
def test_a_bandwidth_that_cannot_be_is_that_turns_failure_alone(row: str) -> None:
    heading = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    told = result(RAIL, {"rows": [], "output": output(f"{heading} {row}\n")})
    assert told.rows == ()
    assert told.failure is not None
