"""NC307: NCCL would start in a network that does not carry, and there is one that does."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_picks_broken_network import nccl_picks_broken_network

from .linked import ALL, cluster, ways


def test_the_network_that_nccl_picks_and_that_does_not_carry_is_named_with_the_name_to_set() -> None:
    (finding,) = judge([nccl_picks_broken_network], cluster({1: ways(ALL, [3]), 2: {}})).findings
    assert finding.nodes == ("n3",)
    assert finding.message == (
        "n3 cannot be reached on 10.1.0.0/24 by any node: no answer; "
        "NCCL would pick this subnet and hang; 10.2.0.0/24 connects all nodes"
    )
    assert (finding.where, finding.fix) == ("here", "ncheck plan nodes.txt")


def test_it_is_silent_where_nccl_picks_the_network_that_carries() -> None:
    verdicts = judge([nccl_picks_broken_network], cluster({1: {}, 2: ways(ALL, ALL)})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_it_is_silent_where_a_setting_keeps_nccl_to_the_network_that_carries() -> None:
    wise = EnvironmentFacts({"NCCL_SOCKET_IFNAME": "=eth2"}, {})
    nodes = {name: {**facts, EnvironmentFacts: wise} for name, facts in cluster({1: ways(ALL, [3]), 2: {}}).items()}
    assert judge([nccl_picks_broken_network], nodes).findings == []
