"""What `ncheck read` prints: the readings of a saved text, for people or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.read.reading import Reading


def as_json(readings: Sequence[Reading]) -> str:
    """Return one JSON object: the first reading's facts with `kind`, `tool` and `remarks`; `more` has the others."""
    first, *others = (_object(reading) for reading in readings)
    return json.dumps({**first, "more": others} if others else first, indent=2)


def _object(reading: Reading) -> dict[str, object]:
    named = {"kind": reading.kind, "tool": reading.tool or None, **({"part": reading.part} if reading.part else {})}
    remarks = [{"level": remark.level, "text": remark.text} for remark in reading.remarks]
    return {**named, **reading.facts, "remarks": remarks}


def as_text(readings: Sequence[Reading]) -> str:
    """Return the readings for people: what ncheck says first, then the drawing, then the facts."""
    return "\n\n".join("\n".join(_lines(reading)) for reading in readings) + "\n"


def _lines(reading: Reading) -> Iterator[str]:
    part = f" ({printable(reading.part)})" if reading.part else ""
    yield f"{reading.kind}: {reading.tool or 'not recognised'}{part}"
    texts = {remark.text for remark in reading.remarks}
    for remark in sorted(reading.remarks, key=lambda remark: _LEVELS.get(remark.level, len(_LEVELS))):
        yield f"  {remark.level:<8} {printable(remark.text, _LONGEST)}"
    problem = reading.facts.get("error")
    if problem and not any(str(problem) in text for text in texts):
        yield f"  {'error':<8} {printable(str(problem), _LONGEST)}"
    for line in reading.drawing:
        yield f"  {printable(line, _LONGEST)}"
    for key, value in reading.facts.items():
        if key not in _SAID and value not in (None, [], {}, ()) and not (reading.drawing and key in _DRAWN):
            yield from _fact(key, value)


_LEVELS = {"error": 0, "warning": 1, "info": 2}
_LONGEST = 400
_SAID = ("error", "format", "tool")

_DRAWN = ("pairs", "nics", "nic_legend", "closest_nics_gpu0", "closest_level_gpu0", "numa_affinity_gpu0",
          "cpu_affinity_gpu0", "gpu_numa_id_gpu0", "has_gpu_numa_id_column")  # fmt: skip

_MOST = 64  # lines of one list


def _fact(key: str, value: object, indent: int = 2) -> Iterator[str]:
    title = " " * indent + key
    if isinstance(value, Mapping):
        yield f"{title}:"
        for name, inner in list(value.items())[:_MOST]:
            yield from _fact(printable(str(name)), inner, indent + 2)
    elif table := _table(value):
        yield f"{title}:"
        for inner in table[:_MOST]:
            yield f"{' ' * indent}  {_row(inner)}"
            for row in _inner_rows(inner):
                yield f"{' ' * indent}    {row}"
        if len(table) > _MOST:
            yield f"{' ' * indent}  and {len(table) - _MOST} more"
    else:
        yield f"{title}: {_cell(value)}"


def _row(record: object) -> str:
    if not isinstance(record, dict):
        return _cell(record)
    shown = {key: value for key, value in record.items() if value not in (None, [], {}) and not _table(value)}
    return ", ".join(f"{key} {_cell(value)}" for key, value in shown.items())


def _inner_rows(record: object) -> Iterator[str]:
    tables = [_table(value) for value in record.values()] if isinstance(record, dict) else []
    return (_row(row) for table in tables for row in table[:_MOST])


def _table(value: object) -> list[object]:
    """Return a list of records, [] if the value is none."""
    return value if isinstance(value, list) and any(isinstance(inner, dict) for inner in value) else []


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_cell(inner) for inner in value[:_MOST])
    return printable(str(value), _LONGEST)
