"""A report that is unpacked when somebody looks at it: most ranks never do, and memory and time are the job's."""

from __future__ import annotations

import base64
import types
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from ncheck.hook.meeting.wire import LARGEST_FROM_HUB, decoded
from ncheck.model.report import Report, no_report


class _LateReport(Report):
    """A Report that reads itself when an attribute is wanted, and is an ordinary Report from then on."""

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        if not name.startswith("__") or name in ("__dict__", "__class__"):
            _load(self)
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        return _load(self) == other

    def __hash__(self) -> int:
        return hash(_load(self))

    def __repr__(self) -> str:
        return repr(_load(self))

    def __reduce_ex__(self, protocol: Any) -> Any:  # noqa: ANN401
        return _load(self).__reduce_ex__(protocol)


_PACKED = "_packed"


def unpacked(text: str) -> Report:
    """Return the report that is packed in a verdict: see ncheck.hook.verdict."""
    report = object.__new__(_LateReport)
    object.__getattribute__(report, "__dict__")[_PACKED] = text
    return report


def _load(report: _LateReport) -> Report:
    held: dict[str, Any] = object.__getattribute__(report, "__dict__")
    try:
        whole = _read(held[_PACKED])
    except Exception as error:  # noqa: BLE001  of another ncheck: the script that looks at it goes on
        whole = no_report(f"the report of rank 0 cannot be read: {error}")
    held.clear()
    held.update(vars(whole))
    object.__setattr__(report, "__class__", Report)
    return report


def _read(text: str) -> Report:
    inflater = zlib.decompressobj()
    data = inflater.decompress(base64.b64decode(text), LARGEST_FROM_HUB)
    if inflater.unconsumed_tail:
        raise ValueError("the report is too large")
    report = _reader(Report)(decoded(data))
    assert isinstance(report, Report)  # noqa: S101  by its type
    return report


Read = Callable[[Any], Any]


@cache
def _reader(declared: Any) -> Read:  # noqa: ANN401, PLR0911  one for each kind of type
    """Return the function that makes values of a declared type from JSON. The report is ncheck's own: no doubt.

    A library for this would be imported late, when modules beside the job's script may hide those that it needs.
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        (one,) = (_reader(part) for part in inner if part is not type(None))
        return lambda value: None if value is None else one(value)
    if origin is tuple:
        parts = [_reader(part) for part in inner if part is not ...]
        if inner[-1] is ...:
            return lambda value: tuple(map(parts[0], value))
        return lambda value: tuple(part(one) for part, one in zip(parts, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        held = _reader(inner[1])
        return lambda value: {key: held(one) for key, one in value.items()}
    if isinstance(declared, type) and is_dataclass(declared):
        return _record(declared)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return declared
    return lambda value: value


def _record(declared: Any) -> Read:  # noqa: ANN401
    hints = get_type_hints(declared)
    known = [(one.name, _reader(hints[one.name])) for one in fields(declared) if one.init]
    required = {one.name for one in fields(declared) if one.default is MISSING and one.default_factory is MISSING}

    def read(value: Mapping[str, Any]) -> Any:  # noqa: ANN401
        if missing := required - value.keys():
            raise ValueError(f"{declared.__name__} without {', '.join(sorted(missing))}")
        return declared(**{name: part(value[name]) for name, part in known if name in value})

    return read
