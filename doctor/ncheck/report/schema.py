"""The published JSON Schema of the report, built from the records and their docstrings."""

from __future__ import annotations

import inspect
import json
from typing import Any

from ncheck.model.board import Board, Domain
from ncheck.model.finding import Finding, Verdict
from ncheck.model.next_step import NextStep
from ncheck.model.plan import Blocker, LaunchCommand, LaunchPlan, Setting
from ncheck.model.report import (
    SCHEMA,
    BadNode,
    EarlierProblem,
    GpuAlone,
    GpuFigure,
    LookedAgain,
    Measurement,
    MeshSample,
    NcclChoice,
    NodeSummary,
    Pair,
    Point,
    Probe,
    Protocol,
    Report,
    RunPart,
    Traffic,
)  # fmt: skip
from ncheck.model.system import Hardware, System, SystemDisk, SystemGpus, SystemInterface, SystemMachine, SystemPort

RECORDS = (
    Report,
    NodeSummary,
    System,
    SystemGpus,
    SystemPort,
    SystemInterface,
    SystemMachine,
    SystemDisk,
    Hardware,
    MeshSample,
    RunPart,
    Verdict,
    Finding,
    NextStep,
    Board,
    Domain,
    BadNode,
    LookedAgain,
    EarlierProblem,
    LaunchPlan,
    LaunchCommand,
    Blocker,
    Setting,
    Measurement,
    Protocol,
    Point,
    GpuAlone,
    GpuFigure,
    Probe,
    Pair,
    Traffic,
    NcclChoice,
)


def schema_text() -> str:
    """Return the text of docs/report.schema.json."""
    return json.dumps(report_schema(), indent=2) + "\n"


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of what -o json writes."""
    from mashumaro.jsonschema import DRAFT_2020_12, build_json_schema

    built = build_json_schema(Report, dialect=DRAFT_2020_12, all_refs=True, with_definitions=True).to_dict()
    definitions = built["$defs"]
    for record in RECORDS:
        _describe(definitions[record.__name__], record)
    definitions["Report"]["properties"]["schema"] |= {"const": SCHEMA}
    return {
        "$schema": DRAFT_2020_12.uri,
        "$id": "urn:ncheck:report:2",
        "title": "ncheck report",
        "$ref": built["$ref"],
        "$defs": definitions,
    }


def _describe(definition: dict[str, Any], record: type[object]) -> None:
    """Add the descriptions. All members are always written (required); later versions may add some (none forbidden)."""
    about, members = described(record)
    definition["description"] = about
    definition["required"] = list(definition["properties"])
    del definition["additionalProperties"]
    for name, member in definition["properties"].items():
        member.pop("default", None)
        member["description"] = members[name]


def described(record: type[object]) -> tuple[str, dict[str, str]]:
    """Return what a record of the report is, and each of its members, by the lines "name: text" of its docstring."""
    about, _, lines = (inspect.getdoc(record) or "").partition("\n\n")
    members: dict[str, str] = {}
    for line in lines.splitlines():
        if line.startswith(" "):
            members[next(reversed(members))] += " " + line.strip()
        else:
            name, _, text = line.partition(": ")
            members[name] = text
    return " ".join(about.split()), members
