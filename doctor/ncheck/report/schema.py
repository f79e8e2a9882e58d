"""The published JSON Schema of the report, made of the records themselves and of the words below."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from ncheck.model.finding import Finding, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import SCHEMA, Measurement, NodeSummary, Pair, Point, Probe, Report, Traffic

RECORDS = (Report, NodeSummary, Verdict, Finding, LaunchPlan, Setting, Measurement, Point, Probe, Pair, Traffic)


MEMBERS: Mapping[str, Mapping[str, str]] = {
    "Report": {
        "schema": "This format. A member may be added under the same number; none is changed or taken away.",
        "exit_code": "What the process ends with: 0 clean, 1 findings or unknown verdicts that fail_on names, "
        "130 interrupted. (A demo ends with 0 and keeps its report's own here.)",
        "nodes": "Every node of the list, in its order, reached or not.",
        "verdicts": "One for every node and selected check, so that nothing is silent.",
        "findings": "What is wrong, the worst first, ignored ones last.",
        "plan": "How to start the job.",
        "measurements": "What the bandwidth probe saw; empty where none ran.",
        "probe": "Whether a bandwidth probe ran, and why not.",
        "version": "ncheck's own version.",
        "seconds": "How long the run took.",
        "fail_on": "What made exit code 1: error, warning, info, unknown.",
        "interrupted": "True after ^C: this is what was known so far.",
        "recorded": "True when any node was read from a recording, not measured now.",
        "dropped": "The bad nodes that --drop-bad went on without, and why; all else here is of the other nodes.",
    },
    "NodeSummary": {
        "name": "The name as it was listed.",
        "reached": "Host key verified, logged in, and a shell answered.",
        "address": "The address that was connected to; empty when it never came to that.",
        "port": "The port that was connected to; 0 when it never came to that.",
        "user": "The user that was logged in as.",
        "transport": "The way in: paramiko, openssh, rsh, local or recorded.",
        "host_name": "What the node calls itself.",
        "interpreter": "The job's interpreter: its path, its version, and why this one.",
        "container": "The container that the job runs in; empty for none.",
        "slots": "Slots of the list; null where it says none.",
        "seconds": "From the first attempt to the shell's first answer, or to the failure.",
        "recorded": "Read from a recording, not measured now.",
        "cause": "Why it was not reached, or not wholly, such as host-key-changed; empty when all went well.",
        "detail": "The cause in the words of the library, of ssh or of the node.",
        "facts": "One line a topic, such as GPUs or NCCL.",
    },
    "Verdict": {
        "check": "The check's name.",
        "code": "The check's code.",
        "node": "The node.",
        "outcome": "failed: it has the problem. crashed: the check itself broke. unknown: what should have been "
        "readable was not. skipped: nothing there to check, or root is needed. passed: it was looked at, and is well.",
        "reason": "Why; never empty unless it passed.",
        "needs_root": "Skipped because no ordinary user can read it (--sudo).",
    },
    "Finding": {
        "code": "The check's code, for life.",
        "check": "The check's name.",
        "severity": "error: the job will fail, hang or be wrong. warning: it may run. info: worth knowing.",
        "nodes": "The nodes that have it.",
        "message": "What is wrong.",
        "evidence": "What it was seen by, one line each.",
        "fix": "Something to type.",
        "ignored": "Named by --ignore: lowered, and still here.",
    },
    "LaunchPlan": {
        "env": "Variables for the job, by name.",
        "lines": "The line to type, by launcher, such as mpirun.",
        "notes": "What could not be decided, and why.",
        "reasons": "Why each line says what it says, by launcher.",
        "per_node": "Variables whose value is each node's own, by node; in env they are null.",
    },
    "Setting": {
        "value": "What to set it to; null: leave it unset.",
        "reason": "Why.",
        "evidence": "What it was seen by, one line each.",
        "decided": "False: what is right could not be told.",
    },
    "Measurement": {
        "what": "What was measured.",
        "measured": "The value seen; null when it could not be measured.",
        "expected": "The value that the hardware should give; null when that is not known.",
        "unit": "The unit of both, such as GB/s (1e9 bytes a second).",
        "limited_by": "What limits the expected value.",
        "nodes": "The nodes that took part.",
        "by": "What carried the data, such as NCCL 2.21.5, torch 2.5.1 gloo on CPUs, or sockets, no library.",
        "stage": "Where it was measured: inside one node, pair, rail, scaling, all; empty when it is none of them.",
        "ranks": "How many ranks took part, on all nodes together; 0 where there were none.",
        "lowered_by": "What makes the expected value less than the hardware's best, such as 7 of 8 rails.",
        "unknown": "What would have been needed to tell the expected value.",
        "curve": "Every size that was measured, out of place and in place.",
        "failed": "Why there is no value; empty when there is one.",
        "efficiency": "Scaling efficiency: the share of the bandwidth of fewer nodes that is kept; null if unknown.",
        "standing": "How the value compares with what it should be: ok, low, far too low, failed, or unknown.",
    },
    "Point": {
        "size": "Bytes a rank.",
        "in_place": "Whether the result overwrote what was sent.",
        "seconds": "One all-reduce, the median of the repeats.",
        "algbw": "size over seconds, in GB/s (1e9 bytes a second).",
        "busbw": "algbw as every link sees it, times 2(n-1)/n for n ranks, in GB/s.",
        "wrong": "Elements that were not what they should be; null when they were not verified.",
    },
    "Probe": {
        "ran": "Whether one ran.",
        "reason": "Why not, or what ran.",
        "means": "What carried the data: nccl, nccl-tests, gloo or tcp; empty where none ran.",
        "launcher": "What started the ranks: agents or mpirun; empty where none ran.",
        "version": "The version of the library that carried the data; empty where there is none.",
        "rounds": "How many rounds of collectives were run, one after another.",
        "pairs": "Every pair of nodes that was measured by itself, for a picture of node by node.",
        "traffic": "What every interface and HCA port carried while all nodes ran together, or else in all steps.",
        "notes": "What was left out, and why: nodes, steps that were not begun, GPUs that could not be measured.",
    },
    "Pair": {
        "nodes": "The two nodes.",
        "busbw": "GB/s between them; null when it was tried and failed.",
        "standing": "How it compares with what it should be: ok, low, far too low, failed, or unknown.",
    },
    "Traffic": {
        "node": "The node.",
        "device": "The interface, or the HCA and its port, such as mlx5_0:1.",
        "sent": "Bytes that left by it.",
        "received": "Bytes that came in by it.",
        "planned": "Whether the plan means the job to use it.",
    },
}


def schema_text() -> str:
    """Return the schema as the text that docs/report.schema.json holds."""
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
        "$id": "urn:ncheck:report:1",
        "title": "ncheck report",
        "$ref": built["$ref"],
        "$defs": definitions,
    }


def _describe(definition: dict[str, Any], record: type[object]) -> None:
    """Add the words. Every member is always written, and a later version may add one: so all required, none barred."""
    definition["description"] = " ".join((inspect.getdoc(record) or "").split())
    definition["required"] = list(definition["properties"])
    del definition["additionalProperties"]
    for name, member in definition["properties"].items():
        member.pop("default", None)
        member["description"] = MEMBERS[record.__name__][name]
