"""The report for programs: the Report word for word, one record a line, so that grep and diff work on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass

from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Report


def as_json(report: Report) -> str:
    """Return the report as JSON in ASCII: what a node wrote cannot steer a terminal through it."""
    encode = json.JSONEncoder(default=_plain).encode  # one for all: json.dumps would make one for each verdict
    return "{\n" + ",\n".join(_members(report, encode)) + "\n}\n"


def plan_as_json(plan: LaunchPlan) -> str:
    """Return a plan as it stands in the report, by itself."""
    return json.dumps(plan, default=_plain, indent=2)


def _members(report: Report, encode: Callable[[object], str]) -> Iterator[str]:
    """Yield the members, `schema` and `exit_code` first, each record of a list on a line of its own."""
    names = [field.name for field in fields(report)]
    names.remove("schema")
    for name in ("schema", *names):
        value = getattr(report, name)
        if isinstance(value, tuple) and value and is_dataclass(value[0]):
            rows = ",\n    ".join(map(encode, value))
            yield f'  "{name}": [\n    {rows}\n  ]'
        else:
            yield f'  "{name}": {encode(value)}'


def _plain(value: object) -> object:
    """Hand the encoder one level of a record; it asks again for what is inside, and only for what it cannot do."""
    return vars(value) if is_dataclass(value) else dict(value)  # type: ignore[call-overload]  # a mapping of some kind
