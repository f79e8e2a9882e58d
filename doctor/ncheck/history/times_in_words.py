"""Times and numbers of the history in words."""

from __future__ import annotations

from datetime import datetime

PART = {"gpu": "GPU", "hca": "HCA"}
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_BARS = "▁▂▃▄▅▆▇█"


def ordinal(number: int) -> str:
    """Return "third"; "23rd" above ten."""
    if number < len(_ORDINALS):
        return _ORDINALS[number]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def day(time: float) -> str:
    """Return the local date."""
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d")


def minute(time: float) -> str:
    """Return the local date and time."""
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M")


def sparkline(values: list[float], most: int = 40) -> str:
    """Return a bar for each of the last values, from 0 to the largest."""
    shown = values[-most:]
    top = max(shown, default=0.0)
    return "".join(
        _BARS[max(min(int(value / top * len(_BARS)), len(_BARS) - 1), 0)] if top > 0 else _BARS[0] for value in shown
    )
