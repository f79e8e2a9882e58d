"""One row per node with the same columns always: for grep and awk, and for an admin's eye."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.report import Report
from ncheck.model.system import SystemInterface, SystemPort
from ncheck.report import show
from rich.cells import cell_len

from . import measurements
from .test_html import evil

HEADS = ["NODE", "STATE", "GPUS", "DRIVER", "NCCL", "NIC", "RAILS", "BUSBW", "WORST"]
GPUS = "8 x NVIDIA H100 80GB HBM3"
WELL = [GPUS, "550.54.15", "2.21.5", "-", "8/8", "-"]


def rows_of(report: Report) -> list[list[str]]:
    """Return the cells of each row, without the heads and the answer below them."""
    stream = io.StringIO()
    show(report, "table", stream, {"COLUMNS": "40"})
    heads, *rows, _, _ = (re.split(r" {2,}", row) for row in stream.getvalue().splitlines())
    assert heads == HEADS
    return rows


def test_each_node_is_a_row_and_the_answer_is_the_last_line(reports: dict[str, Report]) -> None:
    stream = io.StringIO()
    show(reports["one_down"], "table", stream, {"COLUMNS": "40"})
    assert stream.getvalue().splitlines()[-1].startswith("Not ready: node04: ")
    assert rows_of(reports["one_down"]) == [
        *([f"node0{number}", "ready", *WELL, "-"] for number in (1, 2, 3)),
        ["node04", "unreachable", *"?????-", "NC112 connection filtered"],
    ]  # fmt: skip


def test_a_node_without_a_cause_of_its_own_is_not_blamed_for_what_follows(reports: dict[str, Report]) -> None:
    cause = Finding("NC402", "ib-port-polling", Severity.ERROR, ("node02",), "no link", (), "")
    slow = Finding("NC721", "slow", Severity.ERROR, ("node01", "node02"), "slow", (), "", see=("NC402",))
    note = Finding("NC356", "shared", Severity.INFO, ("node03",), "shared", (), "")
    let_pass = Finding("NC201", "differs", Severity.WARNING, ("node04",), "differs", (), "", ignored=True)
    rows = rows_of(replace(reports["healthy"], findings=(slow, note, let_pass, cause)))
    assert [[row[0], row[1], row[-1]] for row in rows[:4]] == [
        ["node01", "ready", "-"],
        ["node02", "failed", "NC402 no link"],
        ["node03", "ready", "NC356 shared"],
        ["node04", "ready", "NC201 differs"],
    ]


def test_the_nics_and_rails_are_those_that_carry_data_now(reports: dict[str, Report]) -> None:
    (system,) = reports["healthy"].systems
    wires = (
        SystemInterface("bond0", "bond", True, 9000, 200.0, "10.1.0.0/24"),  # noqa: FBT003  running
        SystemInterface("eno2", "physical", False, 1500, None),  # noqa: FBT003  not running
    )
    ports = tuple(
        SystemPort(f"mlx5_{at}:1", state, "", 400.0, "InfiniBand") for at, state in enumerate(("Active", "Down"))
    )
    rows = rows_of(replace(reports["healthy"], systems=(replace(system, interfaces=wires, ports=ports),)))
    assert rows[0][5:7] == ["bond0", "1/2"]


def test_the_bandwidth_is_that_of_the_largest_test_of_the_node(reports: dict[str, Report]) -> None:
    inside = replace(measurements.inside(), nodes=("node01",))
    between = measurements.between("node[01-02]", 47.0, "node01", "node02")
    lost = replace(between, nodes=("node03", "node04"), measured=None, failed="timed out")
    rows = rows_of(replace(reports["healthy"], measurements=(inside, between, lost)))
    assert [row[7] for row in rows[:4]] == ["47.0 GB/s", "47.0 GB/s", "?", "?"]


def test_a_node_of_which_a_check_is_unknown_is_no_ready_one(reports: dict[str, Report]) -> None:
    assert {row[1] for row in rows_of(reports["all_unknown"])} == {"unreachable"}
    assert [row[1] for row in rows_of(evil(reports["healthy"]))][:3] == ["failed", "unknown", "ready"]


def test_what_a_node_wrote_adds_no_row_and_no_column(reports: dict[str, Report]) -> None:
    assert [len(row) for row in rows_of(reports["hostile"])] == [len(HEADS)] * len(reports["hostile"].nodes)


def test_a_node_of_which_no_check_passed_is_unknown(reports: dict[str, Report]) -> None:
    report = reports["healthy"]
    skipped = tuple(
        replace(one, outcome=Outcome.SKIPPED, reason="no GPU") if "node02" in one.nodes else one
        for one in report.verdicts
    )
    assert [row[1] for row in rows_of(replace(report, verdicts=skipped))][:3] == ["ready", "unknown", "ready"]


def test_no_node_is_ready_after_some_checks_only(reports: dict[str, Report]) -> None:
    assert {row[1] for row in rows_of(reports["healthy"])} == {"ready"}
    assert {row[1] for row in rows_of(replace(reports["healthy"], select=("NC4",)))} == {"passed"}


def test_a_wide_character_moves_no_column(reports: dict[str, Report]) -> None:
    report = reports["healthy"]
    first, *others = report.nodes
    stream = io.StringIO()
    show(replace(report, nodes=(replace(first, name="节点1"), *others)), "table", stream, {})
    heads, wide, plain, *_ = stream.getvalue().splitlines()
    assert (cell_len(wide.partition("unknown")[0]), plain.index("ready")) == (heads.index("STATE"),) * 2
