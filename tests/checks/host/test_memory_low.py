"""NC621: little memory, by itself or beside nodes with as much; and a node that swaps."""

from __future__ import annotations

from ncheck.facts.host_load import HostLoadFacts, Use
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.memory_low import FIX, memory_low

GIB = 2**30


def node(available: int | None, memory: int = 1000, hugepages: int = 0, **more: object) -> Facts:
    free = None if available is None else available * GIB
    return {HostLoadFacts: HostLoadFacts(96, memory * GIB, free, hugepages * GIB, **more)}  # type: ignore[arg-type]


def test_a_node_whose_memory_is_taken_is_named_with_its_huge_pages() -> None:
    assert judge([memory_low], {"a": node(20, hugepages=900)}).findings == [
        Finding("NC621", "memory-low", Severity.WARNING, ("a",), "20.0 GiB of 1000.0 GiB of memory are available",
                ("900.0 GiB are reserved for huge pages",), FIX, kind="look", summary="little memory is available"),
    ]  # fmt: skip


def test_a_node_with_less_than_its_peers_is_named() -> None:
    (found,) = judge([memory_low], {"a": node(900), "b": node(400), "c": node(950)}).findings
    assert (found.nodes, found.message) == (
        ("b",), "400.0 GiB of 1000.0 GiB of memory are available; 900.0 GiB on other nodes"
    )  # fmt: skip


def test_a_node_that_swaps_is_named() -> None:
    swapping = node(500, stalled=0.35, swap=Use(GIB, 8 * GIB))
    (found,) = judge([memory_low], {"a": swapping}).findings
    assert (found.message, found.evidence) == (
        "processes wait for memory in 35% of the time", ("1.0 GiB of 8.0 GiB of swap are in use",)
    )  # fmt: skip


def test_other_machines_used_swap_and_a_small_laptop_are_healthy() -> None:
    nodes: dict[str, Facts] = {
        "a": node(900), "b": node(60, 64), "c": node(500), "d": node(1, 8),
        "e": node(600, stalled=0.01, swap=Use(8 * GIB, 8 * GIB)),
    }  # fmt: skip
    assert {one.outcome for one in judge([memory_low], nodes).verdicts} == {Outcome.PASSED}


def test_what_is_not_shown_is_not_judged() -> None:
    nodes: dict[str, Facts] = {"a": node(None), "b": {HostLoadFacts: HostLoadFacts(8)}}
    assert {one.outcome for one in judge([memory_low], nodes).verdicts} == {Outcome.SKIPPED}
