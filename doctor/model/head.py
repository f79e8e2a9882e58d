"""The machine that ncheck runs on, as far as a line that is typed there depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Head:
    """`interfaces` are its interfaces' names by IP address, `variables` the names that its environment sets; `root`
    tells whether its user is root, as whom mpirun does not start unasked.
    """

    interfaces: Mapping[str, str]
    variables: frozenset[str] = frozenset()
    root: bool = False
