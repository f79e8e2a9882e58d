"""The one door: whatever comes from outside as JSON becomes records here, and nothing is copied key by key.

The declaration is a dataclass, whose fields are the keys. A key that it declares is there, unless its type is marked
OPTIONAL: then the field's default stands for it, or else null. Other keys do not matter. A record with LEAN is written
by ncheck itself, without its defaults: a field with a default may be missing, and another key is refused.
JSON's lists become tuples or frozen sets. What is not of the declared type raises MisfitError, with its place. Where a
type allows Unread, {"error": why} becomes that; a "path" beside it is named.

`Annotated[T, read]`: the value is of the type of `read`'s parameter, and the field is what `read` returns. It may raise
ValueError. `Annotated[T, Key("class")]`: what the key is called. `Annotated[T, Null(value)]`: what null stands for.
"""

from __future__ import annotations

import inspect
import math
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache, partial
from itertools import repeat
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from ncheck.expression import expression
from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import JsonValue
from ncheck.model.fact import Absent, Unread
from ncheck.text import LONGEST_MESSAGE, printable

T = TypeVar("T")

_MOST = 65536  # items of one list: no cluster has more
_LARGEST = 2**64  # of a whole number: a node's counters have 64 bits
_LARGEST_PORT = 65535
_SHAPES = 64  # of one record: combinations of its values' types that are remembered

Decoder: TypeAlias = Callable[[Any], Any]  # raises MisfitError


class MisfitError(ValueError):
    """A value is not of the declared type: where, and why, as "gpus[0].index: not an integer"."""


@dataclass(frozen=True)
class Key:
    """What an answer calls a field."""

    name: str


@dataclass(frozen=True)
class Null:
    """What null stands for."""

    value: object


@dataclass(frozen=True)
class AtMost:
    """So many items are read, and the others are left out."""

    items: int

    def __call__(self, found: tuple[T, ...]) -> tuple[T, ...]:
        return found[: self.items]


@dataclass(frozen=True)
class Within:
    """A number that is neither less nor more."""

    least: float
    most: float = math.inf

    def __call__(self, value: T) -> T:
        if not self.least <= value <= self.most:  # type: ignore[operator]  # it is a number
            raise ValueError("a number is out of range")
        return value


@dataclass(frozen=True)
class Text:
    """A node's own words, made safe for a terminal, on one line, of at most so many characters."""

    longest: int

    def __call__(self, value: str) -> str:
        return printable(value, self.longest)


@dataclass(frozen=True)
class Bounded:
    """A list or mapping of at most so many items."""

    most: int

    def __call__(self, found: T) -> T:
        if len(found) > self.most:  # type: ignore[arg-type]  # it is a list or a mapping
            raise ValueError(f"{len(found)} items")  # type: ignore[arg-type]
        return found


OPTIONAL = object()  # the key may be missing


def decoded(value: object, declared: Any) -> Any:  # noqa: ANN401  of the declared type
    """Return a JSON value as the declared type. Raises MisfitError."""
    try:
        return _decoder(declared)(value)
    except MisfitError as wrong:
        raise MisfitError(str(wrong).lstrip(".: ")) from None


# Types of fields

# enp3s0f0np0, bond0.100, eth0:1, mlx5_0:1
_DEVICE = expression(r"[^\s/-][^\s/]{0,63}")


@lru_cache(maxsize=4096)  # the nodes of a cluster have the same few names
def device_name(value: str) -> str:
    """Return the name of an interface or adapter, which becomes part of commands: no kernel has one like an option."""
    if not _DEVICE.fullmatch(value) or not value.isprintable():
        raise ValueError(f"{quoted(value)} is not an interface name, nor an adapter's")
    return value


_LONGEST_PATH = 4096


def absolute_path(value: str) -> str:
    """Return the path of a file or folder, which becomes part of commands: no option begins with a slash."""
    if not value.startswith("/") or not value.isprintable() or len(value) > _LONGEST_PATH:
        raise ValueError(f"{quoted(value)} is not an absolute path")
    return value


def not_empty(found: tuple[T, ...]) -> tuple[T, ...]:
    if not found:
        raise ValueError("nothing in it")
    return found


def _cut(value: str) -> str:
    return value[:LONGEST_MESSAGE]


def _ip(value: str) -> str:
    from ipaddress import ip_address  # a rank of a job never needs it

    return str(ip_address(value))


def _path_or_empty(value: str) -> str:
    return absolute_path(value) if value else ""


def _device_or_empty(value: str) -> str:
    return device_name(value) if value else ""


def hca_port(name: str) -> str:
    """Return the name of a port, such as mlx5_0:1. Raises ValueError for one that cannot be part of a command."""
    device, _, port = name.partition(":")
    if not port.isdecimal():
        raise ValueError(f"{quoted(name)} is no port of an HCA")
    return f"{device_name(device)}:{port}"


@lru_cache(maxsize=32768)  # every node of a cluster names all the others: each name is one object
def node_name(name: str) -> str:
    """Return the name of a node, which becomes part of commands."""
    if is_name(name) or is_v6(name):
        return name
    raise ValueError(f"{quoted(name)} is not a node name")


Count = Annotated[int, Within(0)]
HowMany = Annotated[int, Within(0, _MOST)]  # of parts of a node: not more than a list may hold
Seconds = Annotated[float, Within(0)]
Words = Annotated[str, _cut]  # a node's own words for people
Shown = Annotated[str, Text(LONGEST_MESSAGE)]  # the same, on one line
Flag = Annotated[bool, OPTIONAL, Null(value=False)]
OrEmpty = Annotated[str, OPTIONAL, Null("")]
Ip = Annotated[str, _ip]  # as ipaddress writes it
Path = Annotated[str, absolute_path]
PathOrEmpty = Annotated[str, _path_or_empty]
Positive = Annotated[int, Within(1)]
NodeName = Annotated[str, node_name]
Port = Annotated[int, Within(1, _LARGEST_PORT)]
PortOrNone = Annotated[int, Within(0, _LARGEST_PORT)]
Device = Annotated[str, device_name]
DeviceOrEmpty = Annotated[str, _device_or_empty]
Maybe: TypeAlias = Annotated[T | None, OPTIONAL]


# The decoder


@cache
def _decoder(declared: Any) -> Decoder:  # noqa: ANN401, PLR0911  one for each kind of type
    origin, inner = get_origin(declared), get_args(declared)
    if origin is Annotated:
        read = _converted(inner[0], tuple(filter(callable, inner[1:])))
        null = next((one for one in inner[1:] if isinstance(one, Null)), None)
        return (lambda value: null.value if value is None else read(value)) if null else read
    if declared in _PLAIN:
        return _PLAIN[declared]
    if origin in (Union, types.UnionType):
        return _union(inner)
    if origin is Literal:
        return _literal(inner)
    if origin is tuple and inner[-1:] != (...,):
        return _row(inner)
    if origin in (tuple, frozenset):
        return _list(origin, inner[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _table(*inner)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return _converted(str, (declared,))
    if not is_dataclass(declared):
        raise TypeError(f"{declared} cannot be decoded")
    return _record(declared)


def _misfit(why: str) -> Any:  # noqa: ANN401  it never returns
    raise MisfitError(f": {why}")


def _whole(value: object) -> object:
    if type(value) is not int:
        _misfit("not an integer")
    elif not -_LARGEST < value < _LARGEST:
        _misfit("a number out of range")
    return value


def _real(value: object) -> object:
    if type(value) is float:
        return value if math.isfinite(value) else _misfit("not a finite number")
    return _whole(value) if type(value) is int else _misfit("not a number")


_PLAIN: Mapping[object, Decoder] = {
    type(None): lambda value: value if value is None else _misfit("not null"),
    bool: lambda value: value if type(value) is bool else _misfit("neither true nor false"),
    str: lambda value: value if type(value) is str else _misfit("not text"),
    int: _whole,
    float: _real,
    object: lambda value: value,
    JsonValue: lambda value: value,
}
_SURE = frozenset((str, bool, type(None)))  # a value of this type needs no call


@cache
def _choices(declared: object) -> tuple[object, ...]:
    """Return the types that a value may have as it is; what functions make of it is none of them."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return tuple(one for choice in inner for one in _choices(choice))
    if origin is not Annotated:
        return (declared,)
    if any(map(callable, inner[1:])):
        return ()
    without_null = any(isinstance(one, Null) for one in inner[1:])
    return tuple(one for one in _choices(inner[0]) if one is not type(None) or not without_null)


def _sure(declared: object) -> frozenset[object]:
    """Return the types of which every value is decoded already: most values are text."""
    return _SURE.intersection(_choices(declared))


def _converted(declared: object, functions: tuple[Callable[[Any], Any], ...]) -> Decoder:
    if not functions:
        return _decoder(declared)
    first, *others = functions
    taken = _taken(first, declared)
    read, sure = _decoder(taken), _sure(taken)

    def convert(value: object) -> object:
        if type(value) not in sure:
            value = read(value)
        try:
            value = first(value)
            for function in others:
                value = function(value)
        except (ValueError, TypeError) as wrong:
            _misfit(str(wrong)[:LONGEST_MESSAGE])
        return value

    return convert


def _taken(function: Callable[[Any], Any], otherwise: object) -> object:
    """Return the type of a function's parameter."""
    if not inspect.isfunction(function):
        return otherwise
    name, *_ = function.__code__.co_varnames
    hint = _evaluated(function.__module__, function.__annotations__[name])
    return otherwise if _generic(hint) else hint


@cache
def _evaluated(module: str, declared: Any) -> Any:  # noqa: ANN401  a type, or its text
    """Return the type that a module names; each text is evaluated once, where get_type_hints does it for each field."""
    return eval(declared, vars(sys.modules[module])) if isinstance(declared, str) else declared  # noqa: S307  our own


def _generic(hint: object) -> bool:
    return isinstance(hint, TypeVar) or any(map(_generic, get_args(hint)))


def _union(choices: tuple[object, ...]) -> Decoder:
    sure = _SURE.intersection(one for choice in choices for one in _choices(choice))
    reads = [_decoder(one) for one in choices if one not in _FAILED]
    may_fail = len(reads) < len(choices)

    def read_union(value: Any) -> object:  # noqa: ANN401
        if type(value) in sure:
            return value
        if may_fail and type(value) is dict and (why := _within(".error", _PLAIN[str], value.get("error", ""))):
            return Unread(
                f"{_decoder(Path)(value['path'])}: {why[:LONGEST_MESSAGE]}"
                if "path" in value
                else why[:LONGEST_MESSAGE]
            )
        first = None
        for read in reads:
            try:
                return read(value)
            except MisfitError as wrong:  # noqa: PERF203
                first = first or wrong
        raise first or MisfitError(": not a value that it can have")

    return read_union


_FAILED = (Unread, Absent)


def _literal(choices: tuple[object, ...]) -> Decoder:
    kinds = {(type(one), one) for one in choices}
    return lambda value: value if (type(value), value) in kinds else _misfit("not a value that it can have")


def _row(columns: tuple[object, ...]) -> Decoder:
    reads = tuple(map(_decoder, columns))

    def read_row(value: object) -> tuple[object, ...]:
        if type(value) is not list or len(value) != len(reads):
            return _misfit(f"not {len(reads)} values")  # type: ignore[no-any-return]
        try:
            return tuple([read(one) for read, one in zip(reads, value, strict=True)])
        except MisfitError:
            return tuple([_within(f"[{at}]", *one) for at, one in enumerate(zip(reads, value, strict=True))])

    return read_row


def _within(place: str, read: Decoder, value: object) -> Any:  # noqa: ANN401  what `read` returns
    try:
        return read(value)
    except MisfitError as wrong:
        raise MisfitError(f"{place}{wrong}") from None


def _list(kind: Callable[[Any], object], declared: object) -> Decoder:
    read, sure, whole = _decoder(declared), _sure(declared), int in _choices(declared)

    def read_list(value: object) -> object:
        if type(value) is not list:
            return _misfit("not a list")
        if len(value) > _MOST:
            return _misfit(f"{len(value)} items")
        kinds = set(map(type, value))
        if kinds <= sure or (whole and kinds == _INT and min(value) > -_LARGEST and max(value) < _LARGEST):
            return kind(value)
        try:
            return kind(map(read, value))
        except MisfitError:
            return kind([_within(f"[{at}]", read, one) for at, one in enumerate(value)])  # names the place

    return read_list


_INT = {int}


def _table(of_key: object, of_item: object) -> Decoder:
    read_key, read, sure = _decoder(of_key), _decoder(of_item), _sure(of_item)

    def read_table(value: object) -> object:
        if type(value) is not dict:
            return _misfit("not a mapping")
        if len(value) > _MOST:
            return _misfit(f"{len(value)} items")
        as_it_is = sure.issuperset(map(type, value.values()))
        if of_key is str and as_it_is:
            return value
        try:
            if as_it_is:
                return dict(zip(map(read_key, value), value.values(), strict=True))
            return {name if of_key is str else read_key(name): read(one) for name, one in value.items()}
        except MisfitError:
            for name, one in value.items():
                _within(f"[{quoted(name)}]", read_key, name)
                _within(f"[{quoted(name)}]", read, one)
            raise

    return read_table


_NOTHING = object()


def _record(kind: Any) -> Decoder:  # noqa: ANN401  a dataclass
    made: tuple[list[str], tuple[_Column, ...]] | None = None
    lean = hasattr(kind, "LEAN")
    to_read: dict[tuple[type, ...], list[tuple[int, _Column]]] = {}  # by the types of all values: most need no call

    def read_record(value: object) -> object:
        nonlocal made
        if type(value) is not dict:
            return _misfit("not a mapping")
        if made is None:  # at first use: a record may hold its own kind; at once, for other threads may read it, too
            every = tuple(_columns(kind))
            made = [key for key, *_ in every], every
        keys, columns = made
        if lean and (others := value.keys() - keys):
            return _misfit(f"unknown field {quoted(min(others))}")
        held = list(map(value.get, keys, repeat(_NOTHING)))
        kinds = tuple(map(type, held))
        if (left := to_read.get(kinds)) is None:
            left = [(at, column) for at, column in enumerate(columns) if kinds[at] not in column[1]]
            if len(to_read) < _SHAPES:
                to_read[kinds] = left
        for at, (key, _, whole, read, missing) in left:
            one = held[at]
            if whole and type(one) is int and -_LARGEST < one < _LARGEST:
                continue
            try:
                held[at] = read(one) if one is not _NOTHING else missing()
            except MisfitError as wrong:
                raise MisfitError(f".{key}{wrong}") from None
        return kind(*held)

    return read_record


_Column: TypeAlias = tuple[str, frozenset[object], bool, Decoder, Callable[[], object]]


def _columns(kind: type[Any]) -> Iterator[_Column]:
    """Yield of each field: its key, the types that need no call, whether integers need none, and what reads it."""
    lean = hasattr(kind, "LEAN")
    for field in fields(kind):
        declared: Any = field.type
        hint = _evaluated(kind.__module__, declared)
        marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
        key = next((mark.name for mark in marks if isinstance(mark, Key)), field.name)
        read = _decoder(hint)
        optional = OPTIONAL in marks or (lean and not (field.default is field.default_factory is MISSING))
        missing = partial(_default, field, read) if optional else partial(_misfit, "missing")
        yield key, _sure(hint), int in _choices(hint), read, missing


def _default(field: Field[Any], read: Decoder) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return read(None) if field.default is MISSING else field.default
