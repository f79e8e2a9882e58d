"""Validators for the values of an answer: each checks type and bounds, or raises TypeError or ValueError."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.model.evidence import JsonValue

_MOST = 65536  # items in one answer: no cluster has more


_LARGEST_PORT = 65535


def mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        raise TypeError("expected a mapping")
    items(list(value))
    return value


def items(value: JsonValue, most: float = _MOST) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    if len(value) > most:
        raise ValueError(f"{len(value)} items in one answer: more than any cluster has")
    return value


def whole(value: JsonValue, most: float = math.inf, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("expected an integer")
    if not least <= value <= most:
        raise ValueError("a number is out of range")
    return value


def number(value: JsonValue, most: float = math.inf, least: float = 0.0) -> float:
    """Return a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("expected a number")
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError("a number is out of range")
    return float(value)


def port(value: JsonValue) -> int:
    return whole(value, _LARGEST_PORT, least=1)


def truth(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def words(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def node(value: JsonValue) -> str:
    """Return the name of a node, which becomes part of commands."""
    if not isinstance(value, str) or not (is_name(value) or is_v6(value)):
        raise ValueError(f"{quoted(str(value))} is not a node name")
    return value
