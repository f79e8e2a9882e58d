"""What may stand in an answer passes as it is, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ncheck.facts.shapes import items, mapping, node, number, port, truth, whole, words
from ncheck.model.evidence import JsonValue


@pytest.mark.parametrize(
    ("hold", "value"),
    [
        (mapping, {"a": 1}), (items, [1]), (whole, 0), (number, 0.5), (number, 3), (port, 65535), (truth, False),
        (words, ""), (node, "node01"), (node, "fd00::1"),
    ],
)  # fmt: skip
def test_what_is_of_the_shape_passes(hold: Callable[[JsonValue], object], value: JsonValue) -> None:
    assert hold(value) == value


@pytest.mark.parametrize(
    ("hold", "value"),
    [
        (mapping, []), (mapping, {str(key): 0 for key in range(65537)}), (items, {}), (items, "abc"),
        (items, [0] * 65537), (whole, True), (whole, -1), (whole, 1.0), (whole, "1"), (number, False), (number, -0.5),
        (number, float("nan")), (number, float("inf")), (number, "1"), (port, 0), (port, 65536), (truth, 1),
        (words, None), (words, 1), (node, "a b"), (node, ""), (node, 1),
    ],
)  # fmt: skip
def test_what_is_not_is_refused(hold: Callable[[JsonValue], object], value: JsonValue) -> None:
    with pytest.raises((TypeError, ValueError)):
        hold(value)


def test_bounds_are_held_at_both_ends() -> None:
    assert [whole(value, 3, least=1) for value in (1, 3)] == [1, 3]
    assert number(1e-9, 1.0, 1e-9) == 1e-9
    for value in (0, 4):
        with pytest.raises(ValueError, match="out of range"):
            whole(value, 3, least=1)
