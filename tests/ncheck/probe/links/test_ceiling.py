"""The lowest ceiling limits, and one that nobody knows may be the lowest."""

from __future__ import annotations

from ncheck.probe.links.ceiling import Ceiling, lowest, unknown


def test_the_lowest_limits_with_all_that_lowers_its_like() -> None:
    held = (Ceiling(50.0, "NICs", ("a",)), Ceiling(40.0, "ring", ("b",)), Ceiling(40.0, "ring", ("c", "b")))
    assert lowest(held) == Ceiling(40.0, "ring", ("b", "c"))


def test_where_one_is_unknown_all_is_unknown_and_each_is_named_once() -> None:
    held = (Ceiling(50.0, "NICs"), unknown("the HCAs of n1"), unknown("the HCAs of n1", "the GPUs of n2"))
    assert lowest(held) == Ceiling(None, unknown=("the HCAs of n1", "the GPUs of n2"))


def test_of_nothing_nothing_is_known() -> None:
    assert lowest(()) == Ceiling(None)
