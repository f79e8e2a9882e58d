"""A ceiling: what one part of the chain lets through at most, and why it is not more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ceiling:
    """Bus bandwidth in GB/s, None where something about it is `unknown`.

    `term` says in words what sets it; `lowered_by` are the observed facts that make it less than it could be.
    """

    busbw: float | None
    term: str = ""
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def unknown(*what: str) -> Ceiling:
    """Return a ceiling of which nobody can tell how high it is."""
    return Ceiling(None, unknown=what)


def lowest(ceilings: Iterable[Ceiling]) -> Ceiling:
    """Return the one that limits; unknown where any of them is, for that one may be lower."""
    held = tuple(ceilings)
    missing = tuple(dict.fromkeys(what for one in held for what in one.unknown))
    if missing or not held:
        return unknown(*missing)
    least = min(held, key=_height)
    alike = (one for one in held if one.busbw == least.busbw and one.term == least.term)
    return replace(least, lowered_by=tuple(dict.fromkeys(why for one in alike for why in one.lowered_by)))


def _height(ceiling: Ceiling) -> float:
    return ceiling.busbw if ceiling.busbw is not None else 0.0
