"""What may stand in an answer: each holds a value to its shape and bounds, or raises TypeError or ValueError."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.model.evidence import JsonValue

_MOST = 65536  # of anything in one answer: more is no cluster but a flood


_LARGEST_PORT = 65535


def mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        raise TypeError("no mapping stands where one should")
    items(list(value))
    return value


def items(value: JsonValue, most: float = _MOST) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError("no list stands where one should")
    if len(value) > most:
        raise ValueError(f"{len(value)} of one kind in an answer are more than any cluster has")
    return value


def whole(value: JsonValue, most: float = math.inf, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number stands where one should")
    if not least <= value <= most:
        raise ValueError("a number in it is none of those that can be")
    return value


def number(value: JsonValue, most: float = math.inf, least: float = 0.0) -> float:
    """Return a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("no number stands where one should")
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError("a number in it is none of those that can be")
    return float(value)


def port(value: JsonValue) -> int:
    return whole(value, _LARGEST_PORT, least=1)


def truth(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false stands where one should")
    return value


def words(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError("no words stand where they should")
    return value


def node(value: JsonValue) -> str:
    """Return the name of a node, which comes to stand in lines to type."""
    if not isinstance(value, str) or not (is_name(value) or is_v6(value)):
        raise ValueError(f"{quoted(str(value))} is no node")
    return value
