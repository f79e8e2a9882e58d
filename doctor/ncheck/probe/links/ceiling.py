"""A ceiling: the most that one part of the chain lets through, and why it is not more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from enum import Enum

from ncheck.lazy_dataclass import dataclass


class Component(Enum):
    """Which part of a node or of the network limits a bandwidth, or lowers it."""

    NVLINK = "nvlink"
    DOMAIN = "nvlink between nodes"
    PCIE = "pcie"
    NIC = "nic"
    GPUDIRECT = "gpudirect"
    OTHER = ""


@dataclass(frozen=True)
class Ceiling:
    """Bus bandwidth in GB/s, None if something about it is `unknown`.

    `term` names what sets it, `component` is its part of the node; `lowered_by` are observed facts that make it lower
    than it could be, `narrow` tells that a PCIe link with too few lanes is among them.
    """

    busbw: float | None
    term: str = ""
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    component: Component = field(default=Component.OTHER, compare=False)
    narrow: bool = field(default=False, compare=False)


def unknown(*what: str) -> Ceiling:
    """Return a ceiling of unknown height."""
    return Ceiling(None, unknown=what)


def lowest(ceilings: Iterable[Ceiling]) -> Ceiling:
    """Return the ceiling that limits; unknown if any of them is, because that one may be lower."""
    every = tuple(ceilings)
    missing = tuple(dict.fromkeys(what for one in every for what in one.unknown))
    if missing or not every:
        return unknown(*missing)
    least = min(every, key=_height)
    alike = [one for one in every if one.busbw == least.busbw and one.term == least.term]
    lowered_by = tuple(dict.fromkeys(why for one in alike for why in one.lowered_by))
    return replace(least, lowered_by=lowered_by, narrow=any(one.narrow for one in alike))


def _height(ceiling: Ceiling) -> float:
    return ceiling.busbw if ceiling.busbw is not None else 0.0
