"""Bytes in words."""

from __future__ import annotations

from ncheck.text import moved, size


def test_a_size_is_told_as_it_is_typed() -> None:
    assert [size(n) for n in (8, 1024, 1 << 20, 3 << 29)] == ["8 B", "1 KiB", "1 MiB", "1.5 GiB"]


def test_what_went_over_a_wire_is_told_as_its_rate_is() -> None:
    told = {0: "0 B", 900: "900 B", 1048576: "1.05 MB", 61_200_000_000: "61.2 GB"}
    assert {n: moved(n) for n in told} == told
