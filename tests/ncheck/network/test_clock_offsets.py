"""Whose clock is off: the odd one, never the others."""

from __future__ import annotations

from ncheck.facts.clock import ClockFacts
from ncheck.network.clock_offsets import skew_text, skews


def clocks(**offsets: float) -> dict[str, ClockFacts]:
    return {node: ClockFacts(offset, 0.25) for node, offset in offsets.items()}


def test_the_odd_clock_is_named_less_what_could_not_be_measured() -> None:
    assert skews(clocks(a=0.0, b=0.0, c=3600.0)) == {"a": 0.0, "b": 0.0, "c": 3599.75}


def test_a_head_whose_own_clock_is_off_blames_no_node() -> None:
    assert skews(clocks(a=500.0, b=500.0, c=500.0)) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_of_two_nodes_the_head_tells_which_is_off() -> None:
    assert skews(clocks(a=0.0, b=-60.25)) == {"a": 0.0, "b": -60.0}


def test_a_single_node_is_compared_with_the_head() -> None:
    assert skews(clocks(a=10.25)) == {"a": 10.0}


def test_a_slow_network_is_no_wrong_clock() -> None:
    assert skews({"a": ClockFacts(0.9, 5.0)}) == {"a": 0.0}


def test_a_skew_is_formatted_in_seconds_and_direction() -> None:
    assert (skew_text(3600.0), skew_text(-2.5)) == ("3600.0 s ahead", "2.5 s behind")
