"""NC740: a pair of HCA ports that carries nothing is told, with the end that fails with everybody."""

from __future__ import annotations

from ncheck.facts.tools import ToolFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe.node_result import StepFailure
from ncheck.steps.judge import judge
from ncheck_checks.measured.rdma_pair_fails import rdma_pair_fails

from .rails_by_hand import cluster, pair

RTR = StepFailure("write", "Failed to modify QP 0x87 to RTR")
REFUSED = StepFailure("connect", "Couldn't connect to 10.1.0.7:20011")
LINE = (
    "ssh -p 2222 train@n1 timeout 20 ib_write_bw -d mlx5_0 -i 1 -F --report_gbits & sleep 2; "
    "ssh -p 2222 train@n2 timeout 20 ib_write_bw -d mlx5_0 -i 1 -F --report_gbits n1"
)


def outcomes(nodes: dict[str, Facts]) -> dict[str, Outcome]:
    return {verdict.nodes[0]: verdict.outcome for verdict in judge([rdma_pair_fails], nodes).verdicts}


def test_two_that_met_nobody_else_are_both_named_with_the_line_that_repeats_it() -> None:
    nodes = cluster(pair(1, "n1", "n2", RTR), pair(2, "n1", "n2", 391.0, rail=1))
    assert judge([rdma_pair_fails], nodes).findings == [
        Finding("NC740", "rdma-pair-fails", Severity.ERROR, ("n1", "n2"),
                "RDMA fails between n1 mlx5_0:1 and n2 mlx5_0:1: Failed to modify QP 0x87 to RTR",
                ("Failed to modify QP 0x87 to RTR",), LINE, where="here", kind="look", summary="RDMA fails"),
    ]  # fmt: skip


def test_the_end_that_fails_with_every_partner_is_named_alone() -> None:
    nodes = cluster(
        pair(1, "n1", "n2", RTR), pair(1, "n3", "n4", 390.0), pair(2, "n1", "n3", 391.0), pair(2, "n2", "n4", RTR)
    )
    (finding,) = judge([rdma_pair_fails], nodes).findings
    assert (finding.nodes, finding.message) == (
        ("n2",), "RDMA fails at n2 mlx5_0:1 with n[1,4]: Failed to modify QP 0x87 to RTR",
    )  # fmt: skip
    assert outcomes(nodes) == {
        "n1": Outcome.PASSED, "n2": Outcome.FAILED, "n3": Outcome.PASSED, "n4": Outcome.PASSED,
    }  # fmt: skip


def test_healthy_rails_are_no_problem() -> None:
    nodes = cluster(pair(1, "n1", "n2", 391.0), pair(2, "n1", "n2", 390.0, rail=1))
    assert set(outcomes(nodes).values()) == {Outcome.PASSED}


def test_tools_that_never_met_blame_no_hca() -> None:
    assert set(outcomes(cluster(pair(1, "n1", "n2", REFUSED))).values()) == {Outcome.UNKNOWN}


def test_without_a_tool_nothing_is_known_and_nothing_is_passed() -> None:
    nodes = cluster(nodes=("n1", "n2"), tools=ToolFacts({}))
    verdicts = judge([rdma_pair_fails], nodes).verdicts
    why = "neither ib_write_bw (package perftest) nor ibv_rc_pingpong is on the PATH: RDMA was not tested"
    assert {(one.outcome, one.reason) for one in verdicts} == {(Outcome.SKIPPED, why)}
