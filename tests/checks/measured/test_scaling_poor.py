"""NC712: more nodes keep 80 % of what fewer reach, each held against what its own links should give."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.node_result import Method, Stage
from ncheck.steps.judge import judge
from ncheck_checks.measured.scaling_poor import scaling_poor

from .bandwidths import part, probed
from .results import both


def scaled(  # noqa: PLR0913
    alone: float, two: float, four: float, eight: float, method: Method = Method.NCCL, *, op: Op = Op.ALL_REDUCE
) -> dict[str, Facts]:
    names = tuple(f"n{number + 1}" for number in range(8))
    runs = [
        part(Stage.SCALING, names[:2], 8, two, op=op), part(Stage.SCALING, names[:4], 8, four, op=op),
        part(Stage.ALL, names, 8, eight, op=op), *(part(Stage.INSIDE, (name,), 8, alone, op=op) for name in names),
    ]  # fmt: skip
    runs = [replace(run, step=replace(run.step, method=method)) for run in runs]
    return {name: probed(*(run for run in runs if name in run.step.group)) for name in names}


def unknown(nodes: dict[str, Facts]) -> dict[str, Facts]:
    """Return the same without their HCAs, so that nobody can tell what the network should give."""
    return {name: {**facts, InfinibandFacts: None} for name, facts in nodes.items()}


def test_the_first_step_that_keeps_too_little_is_told_with_all_steps() -> None:
    assert judge([scaling_poor], scaled(470.0, 460.0, 385.0, 240.0)).findings == [
        Finding("NC712", "scaling-poor", Severity.WARNING, ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"),
                "scaling efficiency 62 % (minimum 80 %): 8 nodes reach 240 GB/s, 4 nodes 385 GB/s (0.60 and 0.96 of "
                "what their links should give)",
                ("1 node (n1): 470 GB/s, 0.96 of what their links should give",
                 "2 nodes (n[1-2]): 460 GB/s, 0.94 of what their links should give, efficiency 0.98",
                 "4 nodes (n[1-4]): 385 GB/s, 0.96 of what their links should give, efficiency 1.00",
                 "8 nodes (n[1-8]): 240 GB/s, 0.60 of what their links should give, efficiency 0.62"),
                "sudo iblinkinfo", where="n1", kind="look"),
    ]  # fmt: skip


def test_without_an_expectation_groups_of_nodes_are_compared_with_one_another() -> None:
    found = judge([scaling_poor], unknown(scaled(470.0, 100.0, 90.0, 60.0))).findings
    assert [(one.message, one.fix) for one in found] == [
        ("scaling efficiency 67 % (minimum 80 %): 8 nodes reach 60 GB/s, 4 nodes 90 GB/s",
         "ncheck probe nodes.txt --probe-time 300")
    ]  # fmt: skip


def test_where_data_goes_by_an_interface_no_fabric_is_to_be_looked_at() -> None:
    names = ("n1", "n2", "n3")
    whole = replace(part(Stage.ALL, names, 8, 5.0, expect=10.0), planned=("eth0",))
    nodes = {name: probed(part(Stage.INSIDE, (name,), 8, 470.0), whole) for name in names}
    (finding,) = judge([scaling_poor], nodes).findings
    assert finding.fix == "sudo ethtool -S eth0"


def test_it_is_silent_where_the_limit_changes_from_nvlink_to_nics_and_from_two_nodes_to_more() -> None:
    for nodes in (scaled(838.0 / 1.7, 460.0, 382.0, 375.0), unknown(scaled(470.0, 190.0, 100.0, 97.0))):
        verdicts = judge([scaling_poor], nodes).verdicts
        assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_it_is_skipped_on_cpus_and_where_nothing_can_be_compared() -> None:
    names = ("n1", "n2")
    two = {name: probed(part(Stage.ALL, names, 8, 300.0)) for name in names}
    for nodes in (scaled(4.0, 3.0, 2.0, 1.0, Method.GLOO), unknown(two)):
        verdicts = judge([scaling_poor], nodes).verdicts
        assert {verdict.outcome for verdict in verdicts} == {Outcome.SKIPPED}


def test_each_operation_is_compared_with_itself_and_what_shrinks_by_nature_is_not_judged() -> None:
    slow = (300.0, 30.0, 20.0, 10.0)
    nodes = both(scaled(470.0, 460.0, 385.0, 380.0), unknown(scaled(*slow, op=Op.ALL_TO_ALL)))
    assert judge([scaling_poor], unknown(nodes)).findings == []
    nodes = both(scaled(470.0, 460.0, 385.0, 240.0), scaled(362.0, 360.0, 358.0, 200.0, op=Op.ALL_GATHER))
    (finding,) = judge([scaling_poor], nodes).findings
    assert finding.message == (
        "all-reduce: scaling efficiency 62 % (minimum 80 %): 8 nodes reach 240 GB/s, 4 nodes 385 GB/s (0.60 and 0.96 "
        "of what their links should give); all-gather: scaling efficiency 55 % (minimum 80 %): 8 nodes reach 200 GB/s, "
        "1 node 362 GB/s (0.54 and 0.98 of what their links should give)"
    )
