"""The report for programs: the Report word for word, one record a line, so that grep and diff work on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from doctor.model.report import Report


def as_json(report: Report) -> str:
    """Return the report as JSON in ASCII: what a node wrote cannot steer a terminal through it."""
    return "{\n" + ",\n".join(_members(report)) + "\n}\n"


def _members(report: Report) -> Iterator[str]:
    """Yield the members, `schema` and `exit_code` first, each record of a list on a line of its own."""
    names = [field.name for field in fields(report)]
    names.remove("schema")
    for name in ("schema", *names):
        value = getattr(report, name)
        if isinstance(value, tuple) and value and is_dataclass(value[0]):
            rows = ",\n    ".join(json.dumps(row, default=_plain) for row in value)
            yield f'  "{name}": [\n    {rows}\n  ]'
        else:
            yield f'  "{name}": {json.dumps(value, default=_plain)}'


def _plain(value: object) -> object:
    """Hand the encoder one level of a record; it asks again for what is inside, and only for what it cannot do."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]
