"""The matrix of checks and nodes: what is alike is folded, and nothing bad is folded into what is well."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import Report
from ncheck.report.check_matrix import CheckMatrix, check_matrix


def rows(matrix: CheckMatrix) -> dict[str, tuple[str, ...]]:
    """Return each row by its check, or by the number of its checks."""
    return {row.checks[0][0] if len(row.checks) == 1 else f"{len(row.checks)}": row.words for row in matrix.rows}


def test_healthy_nodes_are_one_column_and_what_passed_is_one_row(reports: dict[str, Report]) -> None:
    matrix = check_matrix(reports["healthy"])
    assert matrix.columns == (("node01", "node02", "node03", "node04"),)
    assert rows(matrix) == {"9": ("passed",), "NC506": ("skipped",)}
    assert list(matrix.signs) == ["skipped", "passed"]


def test_a_sick_node_has_its_own_column_and_its_check_a_row(reports: dict[str, Report]) -> None:
    matrix = check_matrix(reports["mixed_nccl"])
    assert matrix.columns == (("node01", "node03"), ("node02",), ("node04",))
    assert rows(matrix) == {
        "NC201": ("passed", "passed", "error"),
        "NC402": ("passed", "warning", "passed"),
        "7": ("passed",) * 3,
        "NC506": ("skipped",) * 3,
    }


def test_of_a_node_that_was_not_reached_the_checks_are_not_run(reports: dict[str, Report]) -> None:
    matrix = check_matrix(reports["one_down"])
    assert rows(matrix)["NC112"] == ("passed", "error")
    (folded,) = [row for row in matrix.rows if row.words == ("passed", "not run")]
    assert "NC201" in {code for code, _ in folded.checks}  # in one row, not in one of its own


def test_unknown_and_crashed_are_never_folded_into_what_passed(reports: dict[str, Report]) -> None:
    report = reports["healthy"]
    for outcome in (Outcome.UNKNOWN, Outcome.CRASHED):
        dark = tuple(
            replace(one, outcome=outcome, reason="why") if one.code == "NC501" else one for one in report.verdicts
        )
        assert rows(check_matrix(replace(report, verdicts=dark)))["NC501"] == (outcome.value,)


def test_what_is_ignored_or_only_worth_knowing_says_so(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    nccl, ib = report.findings
    lowered = (replace(nccl, severity=Severity.INFO, ignored=True), replace(ib, severity=Severity.INFO))
    found = rows(check_matrix(replace(report, findings=lowered)))
    assert (found["NC201"], found["NC402"]) == (("passed", "passed", "ignored"), ("passed", "info", "passed"))


def test_a_thousand_nodes_are_two_columns_and_too_many_are_counted(reports: dict[str, Report]) -> None:
    assert [len(column) for column in check_matrix(reports["thousand_lost"]).columns] == [300, 700]
    few = check_matrix(reports["mixed_nccl"], most=2)
    assert (few.columns, few.left_out) == ((("node02",), ("node04",)), 2)
