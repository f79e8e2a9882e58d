"""Bytes in words."""

from __future__ import annotations

from ncheck.text import moved, rates, size


def test_a_size_is_told_as_it_is_typed() -> None:
    assert [size(n) for n in (8, 1024, 1 << 20, 3 << 29)] == ["8 B", "1 KiB", "1 MiB", "1.5 GiB"]


def test_what_went_over_a_wire_is_told_as_its_rate_is() -> None:
    told = {0: "0 B", 900: "900 B", 1048576: "1.05 MB", 61_200_000_000: "61.2 GB"}
    assert {n: moved(n) for n in told} == told


def test_a_slow_network_is_told_in_smaller_units_and_what_is_compared_in_the_same() -> None:
    told = {(118.0, 121.2): "118 to 121 GB/s", (120.9, 121.1): "121 GB/s", (0.00171, 0.0194): "1.71 to 19.4 MB/s",
            (2e-6,): "2 kB/s", (0.9999,): "1 GB/s", (0.0,): "0 GB/s"}  # fmt: skip
    assert {reached: rates(reached) for reached in told} == told
    assert [rates([0.05], of=12.0), rates([0.05], of=0.12)] == ["0.05 GB/s of 12", "50 MB/s of 120"]
