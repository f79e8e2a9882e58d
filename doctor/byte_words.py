"""Bytes in words: a size as it is typed, in powers of two; what went over a wire in powers of ten, as its rate is."""

from __future__ import annotations


def size(number: int) -> str:
    """Return bytes a rank as they are typed: "64 MiB"."""
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << unit:
            return f"{number / (1 << unit):.4g} {name}"
    return f"{number} B"


def moved(number: float) -> str:
    """Return bytes that went over a wire: "61.2 GB"."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= unit:
            return f"{number / unit:.3g} {name}" if number < 1000 * unit else f"{number / unit:.0f} {name}"
    return f"{number:.0f} B"
