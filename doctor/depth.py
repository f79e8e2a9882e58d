"""How deeply a value of JSON nests: what walks through it later, level by level, must come to an end."""

from __future__ import annotations

from collections.abc import Iterable


def too_deep(value: object, most: int) -> bool:
    """Tell whether lists and mappings nest deeper than `most` levels."""
    level = [value]
    for _ in range(most):
        inner = [item for held in level for item in _inside(held)]
        if not inner:
            return False
        level = inner
    return True


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
