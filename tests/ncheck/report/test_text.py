"""What is the same on many nodes is said once; what only looks the same is not."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.report.text import FoldedVerdicts, count, fold_findings, fold_verdicts, grouped, line, lines, node_set

NODES = ("node01", "node02", "node03")


def finding(node: str, message: str, fix: str = "true", evidence: tuple[str, ...] = ()) -> Finding:
    return Finding("NC402", "ib-port-polling", Severity.ERROR, (node,), message, evidence, fix)


def test_findings_that_differ_in_their_own_node_alone_are_one() -> None:
    (folded,) = fold_findings(
        [finding(node, f"{node}: mlx5_0 is Polling", f"ssh {node} ibstat", (f"ibstat on {node}",)) for node in NODES]
    )
    assert folded.nodes == ("node01", "node02", "node03")
    assert folded.message == "node[01-03]: mlx5_0 is Polling"
    assert folded.evidence == ("ibstat on node[01-03]",)
    assert (folded.fix, folded.example) == ("ssh node01 ibstat", "node01")


def test_findings_that_say_other_things_stay_apart() -> None:
    found = fold_findings([finding("node01", "mlx5_0 is Polling"), finding("node02", "mlx5_1 is Polling")])
    assert [folded.message for folded in found] == ["mlx5_0 is Polling", "mlx5_1 is Polling"]


def test_a_node_called_like_a_word_does_not_join_what_differs() -> None:
    found = fold_findings([finding("a", "a has a dead port"), finding("b", "b has a dead port")])
    assert [folded.message for folded in found] == ["a has a dead port", "b has a dead port"]


def test_a_name_inside_a_longer_name_is_left_alone() -> None:
    found = fold_findings([finding("node01", "node01.cluster is slow"), finding("node02", "node02.cluster is slow")])
    assert len(found) == 2


def test_evidence_that_findings_share_is_shown_once() -> None:
    shared = ("gpu01: 2.21.5", "as ncclGetVersion reports")
    first, second = finding("node01", "differs", evidence=shared), finding("node02", "differs", evidence=shared)
    (folded,) = fold_findings([first, second])
    assert (folded.nodes, folded.evidence) == (("node01", "node02"), shared)


def test_findings_that_refer_to_other_causes_stay_apart() -> None:
    first, second = finding("node01", "not reached"), replace(finding("node02", "not reached"), see=("NC111",))
    assert [(one.nodes, one.see) for one in fold_findings([first, second])] == [
        (("node01",), ()),
        (("node02",), ("NC111",)),
    ]


def test_verdicts_fold_by_reason_and_nodes_the_most_checks_first() -> None:
    unknown = [
        Verdict(check, code, (node,), Outcome.UNKNOWN, reason)
        for check, code, reason in (("x", "NC1", "slow"), ("y", "NC2", "not reached"), ("z", "NC3", "not reached"))
        for node in ("node01", "node02")
    ]
    assert fold_verdicts(unknown) == (
        FoldedVerdicts("not reached", ("y", "z"), ("node01", "node02")),
        FoldedVerdicts("slow", ("x",), ("node01", "node02")),
    )


def test_reasons_that_name_their_own_node_fold_too() -> None:
    unknown = [Verdict("x", "NC1", (node,), Outcome.UNKNOWN, f"{node} fell silent") for node in NODES]
    assert fold_verdicts(unknown) == (FoldedVerdicts("node[01-03] fell silent", ("x",), NODES),)


def test_a_reason_that_names_one_of_its_nodes_is_one_reason() -> None:
    unknown = [Verdict("x", "NC1", (node,), Outcome.UNKNOWN, "GPUs are in use on node03") for node in NODES]
    assert fold_verdicts(unknown) == (FoldedVerdicts("GPUs are in use on node03", ("x",), NODES),)


def test_values_fold_with_the_most_common_first() -> None:
    assert grouped({"a": "1", "b": "2", "c": "2"}) == (("2", ("b", "c")), ("1", ("a",)))


def test_a_node_set_too_long_to_read_says_how_many_it_holds() -> None:
    odd = [f"node{number:03d}" for number in range(1, 200, 2)]
    assert node_set(odd) == "node[001,003,005,007,009,011,013,015,017,019,...] (100 nodes)"
    assert node_set([f"node{number:03d}" for number in range(1, 200)]) == "node[001-199]"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("\x1b(Bset", "set"),
        ("bell\x07 null\x00", "bell? null?"),
        ("right\u202eto\u2066left\u200b", "right?to?left?"),
        ("two\r\nlines\tand tabs", "two lines and tabs"),
        ("lone \udc80 surrogate", "lone ? surrogate"),
        ("Grüße, 東京 ✓", "Grüße, 東京 ✓"),
    ],
)
def test_text_of_a_node_cannot_steer_a_terminal(raw: str, clean: str) -> None:
    assert line(raw) == clean


def test_the_lines_of_a_text_keep_their_spaces() -> None:
    assert lines("a  b\n\tc\x1b[1m\n") == ("a  b", "        c")


def test_counts_read_as_english() -> None:
    assert [count(number, "check") for number in (0, 1, 2)] == ["0 checks", "1 check", "2 checks"]


@pytest.mark.slow
def test_a_hundred_thousand_broken_escapes_are_cleaned_in_linear_time() -> None:
    began = time.process_time()
    assert line("\x1b]" * 100_000 + "\nend").endswith("end")
    assert time.process_time() - began < 5.0
