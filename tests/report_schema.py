"""The published schema of the report, which tests/ncheck/report/test_json.py holds to be the one that ncheck prints."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

PUBLISHED = Path(__file__).parents[1] / "docs" / "report.schema.json"


@cache
def validator(*, closed: bool = False) -> Any:
    """Return what validates a report. `closed`: a member that the schema does not describe is an error."""
    schema = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    for definition in schema["$defs"].values():
        if closed and "properties" in definition:
            definition["additionalProperties"] = False
    return jsonschema.Draft202012Validator(schema)
