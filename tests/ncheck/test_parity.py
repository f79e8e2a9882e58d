"""Majorities, ties and checks that are declared by a value; and what else a check may say of one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ncheck import (
    Absent,
    Cluster,
    Inconclusive,
    NodeView,
    NotApplicable,
    Problem,
    Severity,
    cluster_check,
    node_check,
    parity_check,
)
from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Verdict
from ncheck.parity import nodes_by_value, split
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge


@dataclass(frozen=True)
class Paint:
    colour: str | None
    tin: str = "t1"


@parity_check(
    "NC811", Severity.ERROR, Paint, what="the paint differs", fix="paint {wanted}", shown=lambda paint: paint.tin
)
def paint_differs(paint: Paint) -> str | None:
    return paint.colour


@parity_check("NC814", Severity.ERROR, Paint, by_kind=True, what="the finish differs", fix="polish it")
def finish_differs(paint: Paint) -> str | None:
    return paint.colour


@node_check("NC812", Severity.ERROR, Paint)
def paint_is_dry(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    if node[Paint].colour is None:
        yield NotApplicable("no paint in the tin")
    if node[Paint].tin == "shut":
        yield Inconclusive("the tin is shut")


@cluster_check("NC813", Severity.INFO, Paint, alone=True)
def paint_is_there(cluster: Cluster) -> Iterator[Problem]:
    yield Problem(f"{len(cluster.nodes)} tins", "open it")


def node(colour: str | None, tin: str = "t1", model: str = "") -> Facts:
    gpus = GpuFacts((Gpu(0, model),), "550", "12.4", "nvml") if model else Absent("no GPU")
    return {Paint: Paint(colour, tin), GpuFacts: gpus}


def test_equal_values_do_not_part_and_neither_does_one_node_or_none() -> None:
    assert [split(values) for values in ({}, {"a": 1}, {"a": 1, "b": 1})] == [None, None, None]


def test_the_odd_are_those_outside_the_majority_and_all_where_there_is_none() -> None:
    three, tie = split({"a": 1, "b": 2, "c": 1}), split({"a": 1, "b": 2})
    assert three
    assert tie
    assert (three.majority, three.odd, three.wanted) == (1, ("b",), 1)
    assert (tie.majority, tie.odd, tie.wanted) == (None, ("a", "b"), 1)
    assert three.summary() == "1 on a,c, 2 on b (2 to 1)"


def test_the_largest_side_is_no_majority_unless_it_is_more_than_half() -> None:
    parted = split({"a": 1, "b": 1, "c": 2, "d": 3})
    assert parted
    assert (parted.majority, parted.odd) == (None, ("a", "b", "c", "d"))


def test_gathered_keeps_the_order_of_the_listing() -> None:
    assert nodes_by_value({"b": "x", "a": "y", "c": "x"}) == {"x": ("b", "c"), "y": ("a",)}


def test_a_declared_check_names_the_odd_node_with_evidence_and_the_value_to_come_to() -> None:
    nodes = {"a": node("dark blue"), "b": node("dark blue"), "c": node("red", "t2"), "d": node(None)}
    assert judge([paint_differs], nodes).findings == [
        Finding("NC811", "paint-differs", Severity.ERROR, ("c",),
                "the paint differs: dark blue on a,b, red on c (2 to 1)", ("t1 on a,b,d", "t2 on c"),
                "paint 'dark blue'", summary="the paint differs"),
    ]  # fmt: skip


def test_a_declared_check_compares_all_gpu_models_unless_it_says_otherwise() -> None:
    nodes = {"a": node("blue", model="H100"), "b": node("red", model="T4")}
    assert [found.nodes for found in judge([paint_differs], nodes).findings] == [("a", "b")]
    assert judge([finish_differs], nodes).findings == []


def test_what_is_moot_is_skipped_and_a_doubt_outweighs_it() -> None:
    assert judge([paint_is_dry], {"a": node(None), "b": node(None, "shut"), "c": node("red")}).verdicts == [
        Verdict("paint-is-dry", "NC812", ("a",), Outcome.SKIPPED, "no paint in the tin"),
        Verdict("paint-is-dry", "NC812", ("b",), Outcome.UNKNOWN, "the tin is shut"),
        Verdict("paint-is-dry", "NC812", ("c",), Outcome.PASSED),
    ]


def test_a_cluster_check_that_says_so_speaks_of_one_node_alone() -> None:
    assert [found.message for found in judge([paint_is_there], {"a": node("red")}).findings] == ["1 tins"]
