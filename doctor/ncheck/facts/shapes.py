"""The door for what nodes say: files and folders are held to the type that they have, and facts to their records.

`misfit` compares a value with a type; what the agent answers is read by answers.py. The validators below check what a
type does not say, such as a port, or raise TypeError or ValueError.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.model.evidence import File, JsonValue, Source, Tree

_MOST = 65536  # items in one answer: no cluster has more
_KEPT = 4096  # items of lists that are known to fit
_LARGEST = 2**64  # of a whole number: a node's counters have 64 bits
_LARGEST_PORT = 65535
_TREE = Mapping[str, str | Mapping[str, object] | None]  # a folder is None, an unreadable file {"error": why}
Compare = Callable[[object], str]  # returns where a value does not fit, and why; "" if it does


def misfit(value: object, declared: object) -> str:
    """Return where a value is not of the declared type, such as "gpus[0].index: not an integer"; "" if it is.

    Whole numbers have at most 64 bits, and no number is NaN or infinite. `object` takes anything.
    """
    return _comparison(declared)(value).lstrip(".: ")


def shape_of(source: Source) -> object:
    """Return the type of a source's value; None if its reader holds it to one, or it has none."""
    return str if isinstance(source, File) else _TREE if isinstance(source, Tree) else None


@cache
def _comparison(declared: object) -> Compare:  # noqa: PLR0911  one for each kind of type
    """Return the function that compares values with a type; each type is looked at once."""
    origin, inner = get_origin(declared), get_args(declared)
    if declared in _PLAIN:
        return _PLAIN[declared]
    if origin in (Union, types.UnionType):
        return _any_of(_sure(declared), [_comparison(one) for one in inner])
    if origin is tuple and inner[-1:] != (...,):
        return _row(inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _table(*inner)
    if isinstance(origin, type) and issubclass(origin, Collection):
        return _list(origin, inner[0])
    if isinstance(declared, type):
        return _record(declared) if is_dataclass(declared) else _instance(declared)
    return _fits


@cache
def _sure(declared: object) -> frozenset[type]:
    """Return the types of which every value fits: most values are text, and are compared without a call."""
    if get_origin(declared) in (Union, types.UnionType):
        return frozenset().union(*map(_sure, get_args(declared)))
    return frozenset((declared,)) if declared in (str, bool, type(None)) else frozenset()


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
    return _node(cast("Hashable", value))


def nodes(value: JsonValue) -> frozenset[str]:
    """Return the names of nodes."""
    return frozenset(map(_node, cast("list[Hashable]", items(value))))


@lru_cache(maxsize=32768)  # every node of a cluster names all the others: each name is one object
def _node(name: Hashable) -> str:
    if isinstance(name, str) and (is_name(name) or is_v6(name)):
        return name
    raise ValueError(f"{quoted(str(name))} is not a node name")


# Comparisons


def _fits(_: object) -> str:
    return ""


def _whole(value: object) -> str:
    if type(value) is not int:
        return ": not an integer"
    return "" if -_LARGEST < value < _LARGEST else ": a number out of range"


def _real(value: object) -> str:
    if type(value) is float:
        return "" if math.isfinite(value) else ": not a finite number"
    return _whole(value) and ": not a number"


_PLAIN: Mapping[object, Compare] = {
    type(None): lambda value: "" if value is None else ": not null",
    bool: lambda value: "" if type(value) is bool else ": neither true nor false",
    str: lambda value: "" if isinstance(value, str) else ": not text",
    int: _whole,
    float: _real,
    object: _fits,
    Any: _fits,
}


def _any_of(sure: frozenset[type], choices: list[Compare]) -> Compare:
    def compare(value: object) -> str:
        if type(value) in sure:
            return ""
        first = ""
        for choice in choices:
            wrong = choice(value)
            if not wrong:
                return ""
            first = first or wrong
        return first

    return compare


def _list(kind: type[Collection[object]], declared: object) -> Compare:
    item, sure = _comparison(declared), _sure(declared)
    fitted: dict[int, object] = {}  # items that fit, by identity, kept: all nodes of a cluster name the same neighbours

    def compare(value: object) -> str:
        if not isinstance(value, kind) or isinstance(value, str):
            return ": not a list"
        if len(value) > _MOST:
            return f": {len(value)} items"
        if sure.issuperset(map(type, value)):
            return ""
        for one in [one for one in value if id(one) not in fitted]:
            if wrong := item(one):
                return f"[{[*map(id, value)].index(id(one))}]{wrong}"
            if len(fitted) >= _KEPT:
                fitted.clear()
            fitted[id(one)] = one
        return ""

    return compare


def _row(declared: tuple[object, ...]) -> Compare:
    columns = [(_sure(one), _comparison(one)) for one in declared]

    def compare(value: object) -> str:
        if not isinstance(value, tuple) or len(value) != len(columns):
            return f": not {len(columns)} values"
        for at, (sure, column) in enumerate(columns):
            if type(value[at]) not in sure and (wrong := column(value[at])):
                return f"[{at}]{wrong}"
        return ""

    return compare


def _table(of_key: object, of_item: object) -> Compare:
    key, item, sure_keys, sure_items = _comparison(of_key), _comparison(of_item), _sure(of_key), _sure(of_item)

    def compare(value: object) -> str:
        if type(value) is not dict and not isinstance(value, Mapping):
            return ": not a mapping"
        if len(value) > _MOST:
            return f": {len(value)} items"
        if sure_keys.issuperset(map(type, value)) and sure_items.issuperset(map(type, value.values())):
            return ""
        for name, one in value.items():
            if wrong := key(name) or item(one):
                return f"[{quoted(str(name))}]{wrong}"
        return ""

    return compare


def _record(kind: type[Any]) -> Compare:
    hints = _hints(kind)
    columns: list[tuple[str, frozenset[type], Compare]] = []  # at first use: a record may hold others of its kind

    def compare(value: object) -> str:
        if not isinstance(value, kind):
            return f": not a {kind.__name__}"
        if not columns:
            declared = ((field.name, hints.get(field.name, object)) for field in fields(kind))
            columns[:] = [(name, _sure(hint), _comparison(hint)) for name, hint in declared]  # whole, or not at all
        values = vars(value)
        for name, sure, column in columns:
            held = values[name]
            if type(held) not in sure and (wrong := column(held)):
                return f".{name}{wrong}"
        return ""

    return compare


def _instance(kind: type) -> Compare:
    return lambda value: "" if isinstance(value, kind) else f": not a {kind.__name__}"


def _hints(declared: object) -> dict[str, Any]:
    """Return the types that a class declares; none if it names one that exists for type checkers only."""
    try:
        return get_type_hints(declared)
    except NameError:
        return {}
