"""NC720: from 0.75 to 0.85 of what the links should give, with the term that limits it and what lowers it."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Stage
from ncheck.steps.judge import judge
from ncheck_checks.measured.bandwidth_low import bandwidth_low

from .bandwidths import board, inside, part, probed, together
from .results import both


def test_expected_measured_ratio_and_the_limiting_term_are_told() -> None:
    assert judge([bandwidth_low], inside(n1=401.0, n2=455.0, n3=399.0)).findings == [
        Finding("NC720", "bandwidth-low", Severity.WARNING, ("n1", "n3"),
                "all-reduce inside n[1,3]: 399 to 401 GB/s of 490 expected (0.81), limited by NVLS over 8 GPUs: "
                "18 NVLinks x 20.6 GB/s", (), "nvidia-smi nvlink -s",
                kind="look", summary="all-reduce inside nodes at 81% of expected"),
    ]  # fmt: skip


def test_what_lowers_the_expectation_is_told() -> None:
    nodes = together(4, 285.0)
    nodes["n3"] = {**board(down=1), ProbeFacts: nodes["n3"][ProbeFacts]}
    found = judge([bandwidth_low], nodes).findings
    assert found[0].message == (
        "all-reduce on 4 nodes: 285 GB/s of 350 expected (0.81), limited by NIC sum: 7 x 400 Gb/s, lowered by: "
        "7 of 8 rails on n3, mlx5_7 port 1 is Down"
    )


def test_one_node_alone_is_judged() -> None:
    assert [found.nodes for found in judge([bandwidth_low], inside(n1=400.0)).findings] == [("n1",)]


def test_what_the_user_expects_counts() -> None:
    assert judge([bandwidth_low], together(4, 285.0, expect=300.0)).findings == []
    found = judge([bandwidth_low], together(4, 390.0, expect=480.0)).findings
    assert [one.message for one in found] == [
        "all-reduce on 4 nodes: 390 GB/s of 480 expected (0.81), set by --expect"
    ]  # fmt: skip


def test_pairs_that_all_fall_short_are_told_as_one() -> None:
    results = {
        pair: part(Stage.PAIR, pair, 1, 40.0) for pair in (("n1", "n2"), ("n2", "n3"), ("n3", "n1"))
    }  # fmt: skip
    nodes = {node: probed(*(result for pair, result in results.items() if node in pair)) for node in ("n1", "n2", "n3")}
    found = judge([bandwidth_low], nodes).findings
    assert [(one.nodes, one.message) for one in found] == [
        (("n1", "n2", "n3"),
         "all-reduce between pairs with n[1-3]: 40 GB/s of 50 expected (0.80), limited by one NIC: 1 x 400 Gb/s")
    ]  # fmt: skip


def test_it_is_silent_about_what_healthy_systems_reach_and_about_what_is_worse() -> None:
    for nodes in (inside(n1=449.5, n2=471.2), together(4, 382.0), inside(n1=300.0, n2=310.0)):
        assert {verdict.outcome for verdict in judge([bandwidth_low], nodes).verdicts} == {Outcome.PASSED}


def test_it_is_skipped_where_nobody_can_tell_what_to_expect() -> None:
    nodes = {"n1": probed(part(Stage.INSIDE, ("n1",), 8, 100.0), model="NVIDIA X900")}
    verdicts = judge([bandwidth_low], nodes).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED]
    assert verdicts[0].reason == ("no expected bandwidth (unknown: how fast the NVLinks of NVIDIA X900 are)")
    assert [verdict.outcome for verdict in judge([bandwidth_low], {"n1": probed()}).verdicts] == [Outcome.SKIPPED]


def test_nodes_that_are_low_in_several_operations_are_one_finding() -> None:
    (finding,) = judge([bandwidth_low], both(together(4, 320.0), together(4, 44.0, op=Op.ALL_TO_ALL))).findings
    assert (finding.nodes, finding.message, finding.summary) == (
        ("n1", "n2", "n3", "n4"),
        (
            "all-reduce on 4 nodes: 320 GB/s of 400 expected (0.80), limited by NIC sum: 8 x 400 Gb/s; all-to-all 44 "
            "GB/s of 54.9 expected (0.80)"
        ),
        "all-reduce between nodes at 80% of expected",
    )


def test_what_is_low_in_several_operations_on_one_node_of_many_is_one_finding_of_it() -> None:
    nodes = both(inside(n1=400.0, n2=401.0, n3=470.0), inside(Op.ALL_GATHER, n1=300.0, n2=362.0, n3=362.0))
    ring = "limited by NVLS over 8 GPUs: 18 NVLinks x 20.6 GB/s"
    assert [(one.nodes, one.message) for one in judge([bandwidth_low], nodes).findings] == [
        (("n1",), ("all-gather inside n1: 300 GB/s of 371 expected (0.81), limited by ring over NVLink: 18 NVLinks x "
                  "20.6 GB/s; all-reduce 400 GB/s of 490 expected (0.82)")),
        (("n2",), (f"all-reduce inside n2: 401 GB/s of 490 expected (0.82), {ring}; only all-reduce shows it: "
                  "all-gather inside the same nodes is fine")),
    ]  # fmt: skip


def test_what_is_low_in_one_operation_alone_is_said_to_be_fine_in_the_others() -> None:
    nodes = both(together(4, 385.0), together(4, 44.0, op=Op.ALL_TO_ALL))
    (finding,) = judge([bandwidth_low], nodes).findings
    assert (finding.message, finding.summary) == (
        (
            "all-to-all on 4 nodes: 44 GB/s of 54.9 expected (0.80), limited by 0.85 of one NIC: 1 x 400 Gb/s for the "
            "77% of the data that leaves the node; only all-to-all shows it: all-reduce on the same nodes is fine"
        ),
        "all-to-all between nodes at 80% of expected",
    )


def test_an_operation_without_an_expectation_is_not_low() -> None:
    nodes = both(together(4, 385.0), together(4, 20.0, op=Op.SEND_RECV))
    verdicts = judge([bandwidth_low], nodes).verdicts
    reason = "no expected bandwidth of send-recv (unknown: how many channels NCCL has for one pair of 32 ranks)"
    assert {(verdict.outcome, verdict.reason) for verdict in verdicts} == {(Outcome.SKIPPED, reason)}
