"""NC741: a rail below 0.9 of its rate is told; a port that is fast with another partner is not named."""

from __future__ import annotations

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome
from ncheck.probe.node_result import StepFailure
from ncheck.probe.rails import gate
from ncheck.steps.judge import judge
from ncheck_checks.measured.rdma_pair_slow import rdma_pair_slow

from .rails_by_hand import cluster, pair


def outcomes(nodes: dict[str, Facts]) -> dict[str, Outcome]:
    return {verdict.nodes[0]: verdict.outcome for verdict in judge([rdma_pair_slow], nodes).verdicts}


def test_a_port_that_is_slow_with_two_partners_is_named_alone() -> None:
    nodes = cluster(
        pair(1, "n1", "n2", 190.0), pair(1, "n3", "n4", 390.0), pair(2, "n1", "n3", 391.0), pair(2, "n2", "n4", 195.0)
    )
    (finding,) = judge([rdma_pair_slow], nodes).findings
    assert (finding.nodes, finding.message) == (
        ("n2",), "RDMA is slow at n2 mlx5_0:1 with n[1,4]: 190 of 400 Gb/s (minimum 360)",
    )  # fmt: skip


def test_a_pair_that_met_nobody_else_is_named_with_both_ends() -> None:
    (finding,) = judge([rdma_pair_slow], cluster(pair(1, "n1", "n2", 100.0))).findings
    assert (finding.nodes, finding.message) == (
        ("n1", "n2"),
        "RDMA is slow between n1 mlx5_0:1 and n2 mlx5_0:1: 100 of 400 Gb/s (minimum 360)",
    )


def test_healthy_rails_are_no_problem() -> None:
    nodes = cluster(pair(1, "n1", "n2", 361.0), pair(2, "n1", "n2", 390.0, rail=1))
    assert set(outcomes(nodes).values()) == {Outcome.PASSED}


def test_a_pair_that_failed_is_not_called_slow_nor_fast() -> None:
    nodes = cluster(pair(1, "n1", "n2", StepFailure("write", "Completion with error at client")))
    assert set(outcomes(nodes).values()) == {Outcome.SKIPPED}


@pytest.mark.parametrize(("rate", "least"), [(100.0, 90.0), (200.0, 175.0), (400.0, 360.0)])
def test_the_gates_are_those_of_published_acceptance_tests(rate: float, least: float) -> None:
    assert gate(rate) == least
