"""The report for programs: every field of the Report, one record per line, so that grep and diff work on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TextIO

from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Report


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  JSON has no colours
    """Write the report as JSON."""
    stream.write(as_json(report))


def as_json(report: Report) -> str:
    """Return the report as JSON in printable ASCII: text from a node cannot control a terminal through it."""
    encode = json.JSONEncoder(default=_plain).encode  # one for all: json.dumps would make one for each verdict
    return without_delete("{\n" + ",\n".join(_members(report, encode)) + "\n}\n")


def plan_as_json(plan: LaunchPlan) -> str:
    """Return a plan by itself, in the form that it has in the report."""
    return without_delete(json.dumps(plan, default=_plain, indent=2))


def without_delete(document: str) -> str:
    """Escape the one control character that json leaves as it is. It stands in strings only."""
    return document.replace("\x7f", "\\u007f")


def _members(report: Report, encode: Callable[[object], str]) -> Iterator[str]:
    """Yield the members, `schema` and `exit_code` first; each record of a list has its own line."""
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
    """Return one level of a record; the encoder calls this again for nested records."""
    return vars(value) if is_dataclass(value) else dict(value)  # type: ignore[call-overload]  # a mapping
