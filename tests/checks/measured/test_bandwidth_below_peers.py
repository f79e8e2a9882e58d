"""NC722: where nobody can tell what nodes should reach inside, those of one kind are held against one another."""

from __future__ import annotations

from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step
from ncheck.steps.judge import judge
from ncheck_checks.measured.bandwidth_below_peers import bandwidth_below_peers

from .bandwidths import inside, part, probed
from .results import both

NEW = "NVIDIA X900"


def new(op: Op = Op.ALL_REDUCE, **reached: float) -> dict[str, Facts]:
    return {node: probed(part(Stage.INSIDE, (node,), 8, busbw, op=op), model=NEW) for node, busbw in reached.items()}


def test_a_node_below_its_peers_is_named() -> None:
    assert judge([bandwidth_below_peers], new(n1=900.0, n2=905.0, n3=700.0, n4=898.0)).findings == [
        Finding("NC722", "bandwidth-below-peers", Severity.WARNING, ("n3",),
                "all-reduce inside n3: 700 GB/s, its peers 900 GB/s (0.78)", (),
                "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE", kind="look", summary="slow GPUs"),
    ]  # fmt: skip


def test_of_two_nodes_the_slower_one_is_named() -> None:
    assert [one.nodes for one in judge([bandwidth_below_peers], new(n1=900.0, n2=450.0)).findings] == [("n2",)]


def test_it_is_silent_about_peers_that_differ_by_a_few_percent() -> None:
    verdicts = judge([bandwidth_below_peers], new(n1=900.0, n2=860.0, n3=915.0)).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED] * 3


def test_it_is_skipped_where_an_expectation_judges_or_no_peer_is_there() -> None:
    for nodes in (inside(n1=450.0, n2=300.0), {**new(n1=900.0), **inside(n2=450.0)}):
        verdicts = judge([bandwidth_below_peers], nodes).verdicts
        assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED] * 2


def test_a_node_that_is_compared_with_none_has_not_passed() -> None:
    broken = probed(part(Stage.INSIDE, ("n3",), 4, 900.0), model=NEW)
    verdicts = judge([bandwidth_below_peers], {**new(n1=900.0, n2=905.0), "n3": broken}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED]


def test_each_operation_is_compared_with_itself() -> None:
    well, slow = new(n1=900.0, n2=905.0, n3=898.0), {"n1": 600.0, "n2": 610.0, "n3": 300.0}
    assert judge([bandwidth_below_peers], both(well, new(Op.ALL_TO_ALL, n1=600.0, n2=610.0, n3=620.0))).findings == []
    (finding,) = judge([bandwidth_below_peers], both(well, new(Op.ALL_TO_ALL, **slow))).findings
    assert (finding.nodes, finding.message) == (("n3",), "all-to-all inside n3: 300 GB/s, its peers 605 GB/s (0.50)")


def test_small_messages_whose_start_up_is_most_of_their_time_are_not_compared() -> None:
    """Boards whose links are known have no expectation for these either."""
    sizes = (1024, 65536)
    nodes = {
        node: probed(
            NodeResult(
                Step(1, Stage.INSIDE, Method.NCCL, (node,), (8,), sizes),
                tuple(Row(size, in_place=False, seconds=time, fastest=time, slowest=time) for size in sizes
                      for time in [start + size / 300e9]),
            )
        )
        for node, start in (("n1", 20e-6), ("n2", 21e-6), ("n3", 26e-6))
    }  # fmt: skip
    judgement = judge([bandwidth_below_peers], nodes)
    assert (judgement.findings, {one.outcome for one in judgement.verdicts}) == ([], {Outcome.SKIPPED})


def test_a_node_that_had_no_time_for_the_largest_messages_is_compared_by_the_largest_that_all_have() -> None:
    sizes = (1 << 26, 1 << 28, 1 << 30)

    def node(name: str, count: int, rate: float) -> Facts:
        rows = (Row(size, in_place=False, seconds=time, fastest=time, slowest=time) for size in sizes[:count]
                for time in [size / rate + 2e-4])  # fmt: skip
        return probed(NodeResult(Step(1, Stage.INSIDE, Method.NCCL, (name,), (8,), sizes), tuple(rows)), model=NEW)

    well = {"n1": node("n1", 3, 900e9), "n2": node("n2", 3, 900e9)}
    assert judge([bandwidth_below_peers], {**well, "n3": node("n3", 2, 890e9)}).findings == []
    (finding,) = judge([bandwidth_below_peers], {**well, "n3": node("n3", 2, 450e9)}).findings
    assert (finding.nodes, finding.message) == (("n3",), "all-reduce inside n3: 590 GB/s, its peers 943 GB/s (0.63)")
