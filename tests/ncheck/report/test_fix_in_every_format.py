"""What a finding ends in: a command is something to copy, and a sentence is not."""

from __future__ import annotations

import io
import json

import pytest
from ncheck.model.finding import Finding, Severity
from ncheck.report import show

from .conftest import node, report

SENTENCE = "start the container again with --gpus all"
FOUND = Finding("NC501", "gpu-count-differs", Severity.ERROR, ("node01",), "no GPU", (), SENTENCE, kind="do")


def printed(form: str) -> str:
    stream = io.StringIO()
    show(report([node("node01")], [FOUND], []), form, stream, {"COLUMNS": "100"})
    return stream.getvalue()


@pytest.mark.parametrize(("form", "shown"), [
    ("console", f"\n  on node01: {SENTENCE}\n"),
    ("markdown", f"\non node01: {SENTENCE}\n"),
    ("html", f'\n  <p><span class="aside">on node01:</span> {SENTENCE}</p>\n'),
    ("github", f"%0Aon node01: {SENTENCE}"),
    ("junit", f"\non node01: {SENTENCE}"),
])  # fmt: skip
def test_a_sentence_has_no_arrow_and_nothing_to_copy(form: str, shown: str) -> None:
    assert shown in printed(form)
    assert [mark for mark in ("→", 'class="fix"', f"\n{SENTENCE}\n") if mark in printed(form)] == []


def test_a_program_that_types_fixes_can_tell_a_sentence_apart() -> None:
    (found,) = json.loads(printed("json"))["findings"]
    assert (found["kind"], found["fix"]) == ("do", SENTENCE)
