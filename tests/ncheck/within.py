"""Values inside what a node answers: each place of one, what stands there, and the same answer with another value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Yield every place in lists and dictionaries, the outermost first."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield from places(held, (*here, key))


def at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def put(value: Any, place: Place, new: Any) -> Any:
    """Return the value with another one at this place; what it is made of is not changed."""
    if not place:
        return new
    first, *rest = place
    copy = value.copy()
    copy[first] = put(value[first], tuple(rest), new)
    return copy
