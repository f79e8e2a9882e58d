"""How deeply a value of JSON nests: what walks through it later, level by level, must come to an end."""

from __future__ import annotations

from collections.abc import Iterable


def too_deep(value: object, most: int) -> bool:
    """Tell whether lists and mappings nest deeper than `most` levels."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not level:
            return False
        level = [item for held in level for item in _inside(held) if isinstance(item, (dict, list))]
    return bool(level)


def _inside(held: list[object] | dict[str, object]) -> Iterable[object]:
    return held.values() if isinstance(held, dict) else held
