"""NC224: PYTHONPATH and PYTHONHOME are named where the job's Python does not work with them, and nowhere else."""

from __future__ import annotations

from ncheck.facts.interpreter import BrokenBy, InterpreterFacts
from ncheck.login_variables import where_set
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.python_broken_by_variable import python_broken_by_variable


def node(broken: BrokenBy | None) -> dict[str, Facts]:
    return {"n1": {InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "--python", {}, broken=broken)}}


def test_the_variable_its_value_and_pythons_last_words_are_named() -> None:
    broken = BrokenBy({"PYTHONPATH": "/opt/old:/opt/my lib"}, "AttributeError: module 'socket' has no attribute 'x'")
    assert judge([python_broken_by_variable], node(broken)).findings == [
        Finding("NC224", "python-broken-by-variable", Severity.ERROR, ("n1",),
                "/usr/bin/python3 does not work with PYTHONPATH='/opt/old:/opt/my lib': "
                "AttributeError: module 'socket' has no attribute 'x'", (),
                where_set("PYTHONPATH").line,
                kind="look", summary="PYTHONPATH breaks Python"),
    ]  # fmt: skip


def test_it_is_silent_where_python_works_with_them() -> None:
    judgement = judge([python_broken_by_variable], node(None))
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED]
