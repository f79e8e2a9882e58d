"""NC223: a folder that was named and is not there."""

from __future__ import annotations

from ncheck.facts.code import CodeFacts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.workdir_missing import workdir_missing as check

from tests.checks.expected.nodes import said


def test_a_folder_that_is_not_there_is_an_error_on_one_node_alone_too() -> None:
    assert judge([check], {"n1": {CodeFacts: CodeFacts("/my code", exists=False)}}).findings == [
        Finding("NC223", "workdir-missing", Severity.ERROR, ("n1",), "/my code (--workdir) does not exist", (),
                "ls -ld '/my code'", kind="look", summary="the job's folder is missing"),
    ]  # fmt: skip


def test_it_is_silent_where_the_folder_is_there_or_none_was_named() -> None:
    assert said(judge([check], {"n1": {CodeFacts: CodeFacts("/code")}})) == ("passed", [""])
    assert said(judge([check], {"n1": {CodeFacts: Absent("--workdir")}})) == ("skipped", ["--workdir"])
