"""What was not measured is not passed: what a probe lost, left out or never verified is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.op import Op
from ncheck.probe.expected import Expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.measurements import measured_with
from ncheck.probe.node_result import Method, NodeResult, Row, Skipped, Stage, Step, StepFailure, Timing
from ncheck.probe.results import collectives, failure_report, gaps, missing_sizes, unverified, verified

KIB, MIB = 2**10, 2**20
SIZES = (8, MIB)
INSIDE = Step(1, Stage.INSIDE, Method.NCCL, ("n1",), (8,), SIZES)
PAIR = Step(2, Stage.PAIR, Method.NCCL, ("n1", "n2"), (1, 1), SIZES)
ALL = Step(3, Stage.ALL, Method.NCCL, ("n1", "n2"), (8, 8), SIZES)


def row(size: int, seconds: float = 1e-3, wrong: int | None = 0) -> Row:
    return Row(size, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds, wrong=wrong)


def result(step: Step, *rows: Row) -> NodeResult:
    return NodeResult(step, rows or tuple(row(size) for size in step.sizes))


def probed(*of_nodes: ProbeFacts) -> Mapping[str, ProbeFacts]:
    return {f"n{number}": facts for number, facts in enumerate(of_nodes, 1)}


def test_a_probe_of_all_stages_has_no_gap() -> None:
    inside = replace(INSIDE, group=("n2",))
    first, second = (ProbeFacts((result(alone), result(PAIR), result(ALL))) for alone in (INSIDE, inside))
    whole = probed(first, second)
    assert list(gaps(whole)) == []


def test_a_node_that_tells_of_fewer_sizes_than_the_others_leaves_a_gap() -> None:
    held = probed(ProbeFacts((result(PAIR, row(8)),)), ProbeFacts((result(PAIR),)))
    why = "it reported fewer sizes than the other nodes of the step measured"
    assert list(gaps(held)) == [(why, ("n1",))]


def test_where_pairs_and_nodes_were_measured_and_nothing_tells_of_all_that_is_a_gap() -> None:
    held = probed(ProbeFacts((result(INSIDE), result(PAIR))), ProbeFacts((result(PAIR),)))
    assert list(gaps(held)) == [("there is no result for the all-reduce on all nodes together", ("n1", "n2"))]
    said = ProbeFacts((result(INSIDE), result(PAIR)), (Skipped(ALL, "the time was over"),))
    assert list(gaps(probed(said, ProbeFacts((result(PAIR),))))) == []


def test_a_node_of_several_ranks_that_lacks_what_others_have_by_themselves_leaves_a_gap() -> None:
    held = probed(ProbeFacts((result(INSIDE), result(ALL))), ProbeFacts((result(ALL),)))
    assert list(gaps(held)) == [("there is no result for the all-reduce inside the node, as other nodes have", ("n2",))]
    one = replace(ALL, ranks=(8, 1))
    assert list(gaps(probed(ProbeFacts((result(INSIDE), result(one))), ProbeFacts((result(one),))))) == []


@pytest.mark.parametrize("method", [Method.TCP, Method.RDMA, Method.DIAGNOSTICS])
def test_what_is_no_sum_is_none_of_it(method: Method) -> None:
    step = replace(PAIR, method=method)
    held = probed(ProbeFacts((result(step, row(8, wrong=None)),)), ProbeFacts((result(step, row(MIB, wrong=None)),)))
    assert (list(gaps(held)), missing_sizes(collectives(held))) == ([], {})
    assert not unverified(held["n1"])
    assert not verified(held["n1"])


def test_sizes_that_everybody_left_out_are_told_of() -> None:
    held = probed(ProbeFacts((result(PAIR, row(8)),)), ProbeFacts((result(PAIR, row(8)),)))
    assert missing_sizes(collectives(held)) == {(Op.ALL_REDUCE, Stage.PAIR): (MIB,)}
    assert notes(held) == ("sizes not measured between some pairs of nodes: 1 MiB",)
    other = replace(PAIR, op=Op.ALL_TO_ALL)
    whole = (result(PAIR, row(8), row(MIB)), result(other, row(8)))
    held = probed(ProbeFacts(whole), ProbeFacts(whole))
    assert missing_sizes(collectives(held)) == {(Op.ALL_TO_ALL, Stage.PAIR): (MIB,)}
    assert notes(held) == ("all-to-all: sizes not measured between some pairs of nodes: 1 MiB",)


def test_a_result_that_nobody_verified_is_told_of() -> None:
    held = probed(ProbeFacts((result(PAIR, row(8), row(MIB, wrong=None)),)), ProbeFacts((result(PAIR),)))
    assert [unverified(facts) for facts in held.values()] == [True, False]
    assert notes(held) == ("not all results were verified on n1",)


def test_a_figure_beyond_what_links_can_carry_is_told_of() -> None:
    both = ProbeFacts((result(PAIR, row(8), row(MIB, 1e-9)),))
    held = probed(both, both)
    (said,) = notes(held, 50.0)
    assert said == (
        "all-reduce between two nodes, one rank each, n[1-2]: 1.05e+06 GB/s is more than the limit of 50 (the "
        "NICs): the measurement or the detected hardware is wrong"
    )


def test_a_node_that_claims_to_be_through_long_before_the_others_makes_nobody_faster() -> None:
    fast, slow = (ProbeFacts((result(PAIR, row(8), row(MIB, seconds)),)) for seconds in (1e-6, 2e-3))
    held = probed(fast, slow)
    (one,) = collectives(held)
    assert one.largest == row(MIB, 2e-3)


def test_a_node_that_timed_a_size_often_was_busy_and_did_not_hang() -> None:
    failure = StepFailure("all-reduce of 1048576 bytes", "", late=True)
    late = NodeResult(PAIR, (row(MIB, 1.0),), failure=failure, seconds=60.0)
    often = replace(late, rows=(replace(row(MIB, 1.0), timing=Timing(2, 50)),))
    assert [failure_report("n1", one, failure).hung for one in (late, often)] == [True, False]


def notes(held: Mapping[str, ProbeFacts], busbw: float | None = None) -> tuple[str, ...]:
    known: dict[str, Facts] = {node: {ProbeFacts: facts} for node, facts in held.items()}
    return measured_with(known, lambda _: Expected(busbw, "the NICs"))[1].notes
