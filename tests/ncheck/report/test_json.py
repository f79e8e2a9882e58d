"""The report for programs: the whole of it, in the published schema, in ASCII."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pytest
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import SCHEMA, Measurement, Report
from ncheck.report.json import as_json, plan_as_json
from ncheck.report.schema import RECORDS, described, schema_text

from tests.report_schema import PUBLISHED, validator


@pytest.mark.slow
def test_each_report_is_valid_by_the_schema_and_has_no_member_that_it_lacks(named_report: tuple[str, Report]) -> None:
    _, report = named_report
    report = dataclasses.replace(
        report,
        verdicts=report.verdicts[:2000],  # those of a thousand nodes are alike
        measurements=(Measurement("all-reduce busbw", 371.2, 390.0, "GB/s", "NIC", ("node01", "node02")),),
    )
    validator(closed=True).validate(json.loads(as_json(report)))


def test_it_is_the_report_word_for_word(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    assert json.loads(as_json(report)) == json.loads(json.dumps(dataclasses.asdict(report)))


def test_the_schema_and_the_exit_code_come_first_and_each_record_has_a_line(reports: dict[str, Report]) -> None:
    lines = as_json(reports["healthy"]).splitlines()
    assert lines[:3] == ["{", f'  "schema": "{SCHEMA}",', '  "exit_code": 0,']
    assert sum('"outcome": "passed"' in line for line in lines) == 36


def test_what_a_node_wrote_cannot_steer_a_terminal_through_json(reports: dict[str, Report]) -> None:
    out = as_json(reports["hostile"])
    assert out.isascii()
    assert [char for char in out if not char.isprintable() and char != "\n"] == []


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_member_has_its_words_and_no_words_are_left_over(record: type[Any]) -> None:
    about, members = described(record)
    assert about
    assert [*members] == [field.name for field in dataclasses.fields(record)]


def test_the_schema_is_a_schema_of_draft_2020_12() -> None:
    schema = validator().schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_published_schema_is_the_one_that_ncheck_prints() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), "out of date: make docs"


def test_a_record_that_lacks_a_member_is_refused_by_the_schema(reports: dict[str, Report]) -> None:
    plain = json.loads(as_json(reports["healthy"]))
    del plain["verdicts"][0]["outcome"]
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(plain)


def test_no_control_character_is_written_as_it_is() -> None:
    note = "".join(map(chr, (*range(32), *range(0x7F, 0xA0), 0x202E, 0x2028)))
    document = plan_as_json(LaunchPlan(notes=(note,)))
    assert all(char.isprintable() or char == "\n" for char in document)
    assert json.loads(document)["notes"] == [note]
