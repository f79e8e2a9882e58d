"""NC710: a node is blamed by two partners at least, and told with where in it to look; a switch is not a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS
from ncheck.probe.node_result import Carried, Method, NodeResult, Row, Stage, Step, StepFailure
from ncheck.steps.judge import judge
from ncheck_checks.measured.node_slow import node_slow

from .results import both

GIB = 2**30
RINGS = {
    2: [("n1", "n2", 1)],
    4: [("n1", "n2", 1), ("n3", "n4", 1), ("n2", "n3", 2), ("n4", "n1", 2)],
    8: [("n1", "n2", 1), ("n3", "n4", 1), ("n5", "n6", 1), ("n7", "n8", 1),
        ("n2", "n3", 2), ("n4", "n5", 2), ("n6", "n7", 2), ("n8", "n1", 2)],
}  # fmt: skip
ACROSS = [("n5", "n1", 3), ("n6", "n2", 3), ("n7", "n3", 3), ("n8", "n4", 3)]


def result(step: Step, busbw: float | None, **more: object) -> NodeResult:
    if busbw is None:
        return NodeResult(step, (), failure=StepFailure("init", "connection refused"), seconds=20.0)
    seconds = GIB * step.op.bus_factor(step.world) / (busbw * 1e9)
    row = Row(GIB, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds)
    return NodeResult(step, (row,), seconds=20.0, **more)  # type: ignore[arg-type]


def cluster(  # noqa: PLR0913
    count: int,
    slow: Mapping[str, float | None],
    method: Method = Method.NCCL,
    inside: Mapping[str, float] | None = None,
    again: Sequence[tuple[str, str, int]] = (),
    *,
    op: Op = Op.ALL_REDUCE,
) -> dict[str, Facts]:
    """Return nodes that met in a ring, at 24 GB/s but for the slow ones (None: nothing with them comes to its end)."""
    results: dict[str, list[NodeResult]] = {f"n{number + 1}": [] for number in range(count)}
    for node, busbw in (inside or {}).items():
        results[node].append(result(Step(1, Stage.INSIDE, method, (node,), (8,), (GIB,), op=op), busbw))
    for one, other, number in (*RINGS[count], *(ACROSS if count == 8 else ()), *again):
        step = Step(number + 1, Stage.PAIR, method, (one, other), (1, 1), (GIB,), op=op)
        known = [slow.get(node, 1.0) for node in (one, other)]
        reached = None if None in known else 24.0 * min(share for share in known if share is not None)
        part = result(step, reached, planned=("mlx5_0:1",), carried={"mlx5_0:1": Carried(GIB, GIB)})
        for node in (one, other):
            results[node].append(part)
    return {node: facts(ProbeFacts(tuple(held))) for node, held in results.items()}


def facts(probed: ProbeFacts) -> Facts:
    return {ProbeFacts: probed, **dict.fromkeys(HARDWARE_FACTS)}


def outcomes(nodes: Mapping[str, Facts]) -> list[Outcome]:
    return [verdict.outcome for verdict in judge([node_slow], nodes).verdicts]


def test_a_node_that_is_slow_with_two_partners_is_named_with_them() -> None:
    assert judge([node_slow], cluster(4, {"n2": 0.5})).findings == [
        Finding("NC710", "node-slow", Severity.ERROR, ("n2",),
                "n2 is slow with every partner through mlx5_0:1: 12 GB/s of 24 usual (0.50); n[1,3] are "
                "fast with other nodes",
                ("round 2: n1 with n2: 12 GB/s, 0.50 of the usual",
                 "round 3: n2 with n3: 12 GB/s, 0.50 of the usual"),
                "sudo mlxlink -d mlx5_0 -p 1 -m -c", where="n2", kind="look", summary="slow with every partner"),
    ]  # fmt: skip


def test_the_evidence_says_whether_the_node_is_slow_by_itself() -> None:
    well = {"n1": 480.0, "n2": 478.0, "n3": 470.0, "n4": 482.0}
    network = judge([node_slow], cluster(4, {"n2": 0.5}, inside=well)).findings[0]
    assert network.evidence[2:] == ("inside n2 the GPUs reach 1.00 of what they should: check its network",)
    own = judge([node_slow], cluster(4, {"n2": 0.5}, inside={**well, "n2": 240.0})).findings[0]
    assert own.evidence[2:] == (
        "inside n2 the GPUs reach 0.50 of what they should: they are slow without the network, too",
    )
    assert own.fix == "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE"


def test_a_rail_that_carried_nothing_is_named() -> None:
    nodes = cluster(4, {"n2": 0.5})
    rails = {f"mlx5_{index}:1": Carried(0 if index == 3 else GIB, 0) for index in range(4)}
    whole = result(Step(9, Stage.ALL, Method.NCCL, ("n1", "n2", "n3", "n4"), (8,) * 4, (GIB,)), 90.0,
                 planned=tuple(rails), carried=rails)  # fmt: skip
    held = nodes["n2"][ProbeFacts]
    assert isinstance(held, ProbeFacts)
    found = judge([node_slow], {**nodes, "n2": facts(replace(held, results=(*held.results, whole)))}).findings[0]
    assert found.evidence[-1] == "mlx5_3:1 of n2 carried almost nothing, while its other rails did"
    assert found.fix == "sudo mlxlink -d mlx5_3 -p 1 -m -c"


def test_a_node_with_which_nothing_comes_to_its_end_costs_its_partners_nothing() -> None:
    found = judge([node_slow], cluster(4, {"n2": None})).findings
    assert [(one.nodes, one.fix) for one in found] == [(("n2",), "ncheck nodes.txt --mesh all --probe none")]
    assert found[0].message == "n2 fails with every partner (n[1,3]); n[1,3] are fast with other nodes"


def test_a_slow_half_is_one_finding_about_what_they_share() -> None:
    half = dict.fromkeys(("n5", "n6", "n7", "n8"), 0.5)
    found = judge([node_slow], cluster(8, half)).findings
    assert [one.nodes for one in found] == [("n5", "n6", "n7", "n8")]
    assert found[0].message == (
        "4 of 8 nodes (n[5-8]) are slow with the others, which are fast with each other: first check what the slow "
        "nodes share, such as a switch, a cable run or a setting"
    )


def test_who_has_too_few_partners_that_are_fast_is_unknown_and_not_blamed() -> None:
    assert outcomes(cluster(4, {"n1": None, "n2": None, "n3": None})) == [Outcome.UNKNOWN] * 4


def test_of_two_nodes_nobody_is_blamed_and_none_has_passed() -> None:
    assert outcomes(cluster(2, {"n1": 0.5})) == [Outcome.SKIPPED] * 2


def test_it_is_silent_about_healthy_nodes_and_about_all_that_are_equally_slow() -> None:
    for slow in ({}, dict.fromkeys(("n1", "n2", "n3", "n4"), 0.5)):
        assert outcomes(cluster(4, slow)) == [Outcome.PASSED] * 4


def test_it_leaves_what_was_measured_without_gpus_to_another_check() -> None:
    for method in (Method.TCP, Method.GLOO):
        judgement = judge([node_slow], cluster(4, {"n2": 0.2}, method))
        assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED] * 4
        assert judgement.findings == []


def test_it_is_skipped_where_no_pair_was_measured() -> None:
    assert outcomes({"n1": facts(ProbeFacts(())), "n2": facts(ProbeFacts(()))}) == [Outcome.SKIPPED] * 2


def test_a_node_that_is_slow_in_each_operation_is_one_finding() -> None:
    nodes = both(cluster(4, {"n2": 0.5}), cluster(4, {"n2": 0.25}, op=Op.ALL_TO_ALL))
    assert judge([node_slow], nodes).findings == [
        Finding("NC710", "node-slow", Severity.ERROR, ("n2",),
                "all-reduce: n2 is slow with every partner through mlx5_0:1: 12 GB/s of 24 usual (0.50); n[1,3] are "
                "fast with other nodes; all-to-all: n2 is slow with every partner through mlx5_0:1: 6 GB/s of 24 "
                "usual (0.25); n[1,3] are fast with other nodes",
                ("all-reduce, round 2: n1 with n2: 12 GB/s, 0.50 of the usual",
                 "all-reduce, round 3: n2 with n3: 12 GB/s, 0.50 of the usual",
                 "all-to-all, round 2: n1 with n2: 6 GB/s, 0.25 of the usual",
                 "all-to-all, round 3: n2 with n3: 6 GB/s, 0.25 of the usual"),
                "sudo mlxlink -d mlx5_0 -p 1 -m -c", where="n2", kind="look", summary="slow with every partner"),
    ]  # fmt: skip


def test_a_node_that_is_slow_in_one_operation_alone_is_said_to_be_fine_in_the_other() -> None:
    nodes = both(cluster(4, {}), cluster(4, {"n2": 0.5}, op=Op.ALL_TO_ALL))
    assert [(one.nodes, one.message) for one in judge([node_slow], nodes).findings] == [
        (("n2",),
         ("all-to-all: n2 is slow with every partner through mlx5_0:1: 12 GB/s of 24 usual (0.50); n[1,3] are fast "
         "with other nodes; only all-to-all shows it: all-reduce between the same nodes is fine"))
    ]  # fmt: skip


def test_operations_that_differ_by_nature_accuse_nobody() -> None:
    everywhere = dict.fromkeys(("n1", "n2", "n3", "n4"), 0.2)
    assert outcomes(both(cluster(4, {}), cluster(4, everywhere, op=Op.ALL_TO_ALL))) == [Outcome.PASSED] * 4
