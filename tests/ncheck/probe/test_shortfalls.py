"""What is held against its expectation: nodes by themselves, the best pair of each, and all; not who is blamed."""

from __future__ import annotations

from ncheck.model.check import Inconclusive, NotApplicable
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.node_result import Stage
from ncheck.probe.results import Collective
from ncheck.probe.shortfalls import compared, inside_share, without_expectation

from tests.ncheck.probe.machines import H100, board, places, rails, ran, with_rails

NAMES = ("n1", "n2", "n3", "n4")
HARDWARE = dict.fromkeys(NAMES, with_rails(board(H100, 8), *rails(8)))


def probed(*runs: Collective) -> dict[str, ProbeFacts]:
    return {name: ProbeFacts(tuple(run.results[name] for run in runs if name in run.results)) for name in NAMES}


def pair(one: str, other: str, busbw: float | None, round_: int) -> Collective:
    return ran(Stage.PAIR, (one, other), 1, busbw, planned=places(8), round_=round_)


def test_each_node_is_held_to_its_best_pair() -> None:
    runs = (pair("n1", "n2", 47.0, 1), pair("n3", "n4", 45.0, 1), pair("n2", "n3", 30.0, 2), pair("n4", "n1", 46.0, 2))
    judged = compared(probed(*runs), HARDWARE)
    assert {one.nodes[0]: round(one.busbw) for one in judged} == {"n1": 47, "n2": 47, "n3": 45, "n4": 46}


def test_a_node_that_is_blamed_already_is_left_out_with_its_pairs() -> None:
    runs = (pair("n1", "n2", 20.0, 1), pair("n3", "n4", 45.0, 1), pair("n2", "n3", 20.0, 2), pair("n4", "n1", 46.0, 2))
    judged = compared(probed(*runs), HARDWARE)
    assert {one.nodes[0]: round(one.busbw) for one in judged} == {"n1": 46, "n3": 45, "n4": 46}


def test_all_nodes_are_held_and_not_the_smaller_groups_before_them() -> None:
    two = ran(Stage.SCALING, NAMES[:2], 8, 400.0, planned=places(8))
    whole = ran(Stage.ALL, NAMES, 8, 300.0, planned=places(8), round_=2)
    assert [(one.nodes, round(one.busbw)) for one in compared(probed(two, whole), HARDWARE)] == [(NAMES, 300)]
    failed = ran(Stage.ALL, NAMES, 8, None, planned=places(8), round_=2)
    assert [one.nodes for one in compared(probed(two, failed), HARDWARE)] == [NAMES[:2]]


def test_where_nothing_can_be_expected_the_first_reason_is_given() -> None:
    bare = dict.fromkeys(NAMES, NodeHardware())
    judged = compared(probed(ran(Stage.ALL, NAMES, 8, 300.0, planned=places(8))), bare)
    reason = "no expected bandwidth (unknown: how the GPUs of n1 are connected (nvidia-smi topo -m) and 7 more)"
    assert list(without_expectation(judged, bare)) == [NotApplicable(reason, (name,)) for name in NAMES]
    none = "no bandwidth was measured that can be compared"
    assert list(without_expectation((), bare)) == [NotApplicable(none, (name,)) for name in NAMES]


def test_a_node_without_the_expectation_that_others_have_is_unknown() -> None:
    runs = [ran(Stage.INSIDE, (name,), 8, 480.0) for name in NAMES]
    garbled = {**HARDWARE, "n3": with_rails(board("NVIDIA H1#0", 8), *rails(8))}
    assert list(without_expectation(compared(probed(*runs), garbled), garbled)) == [
        Inconclusive("no expected bandwidth (unknown: how fast the NVLinks of NVIDIA H1#0 are)", ("n3",))
    ]


def test_nodes_of_a_model_that_is_not_known_are_compared_with_each_other_only() -> None:
    runs = [ran(Stage.INSIDE, (name,), 8, 480.0) for name in NAMES]
    new = dict.fromkeys(("n3", "n4"), with_rails(board("NVIDIA X900", 8), *rails(8)))
    reason = "no expected bandwidth (unknown: how fast the NVLinks of NVIDIA X900 are)"
    assert list(without_expectation(compared(probed(*runs), {**HARDWARE, **new}), {**HARDWARE, **new})) == [
        NotApplicable(reason, ("n3",)), NotApplicable(reason, ("n4",)),
    ]  # fmt: skip


def test_the_share_inside_is_of_the_expectation_else_of_the_peers() -> None:
    runs = [
        ran(Stage.INSIDE, (name,), 8, busbw) for name, busbw in zip(NAMES, (480.0, 240.0, 484.0, 476.0), strict=True)
    ]
    expected = inside_share("n2", runs, HARDWARE)
    assert expected is not None
    assert round(expected, 2) == 0.49
    beside = inside_share("n2", runs, {})
    assert beside is not None
    assert round(beside, 2) == 0.5
    new = {name: board(model, 8) for name, model in zip(NAMES, ("X900", "X900", "X800", "X800"), strict=True)}
    assert inside_share("n2", runs, new) == 240 / 480, "a node of its own model is its peer"
    assert inside_share("n2", [*runs[1:]], new) is None
    assert inside_share("n9", runs, {}) is None
    assert inside_share("n1", runs[:1], {}) is None
