"""NC907: what pip would not accept is unmet; what it cannot compare, too."""

from __future__ import annotations

from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.packages import Package, PackagesFacts
from ncheck.facts.requirements import read_requirements
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.expected.requirement_unmet import requirement_unmet as check

from tests.checks.expected.nodes import said
from tests.checks.versions.pythons import PATH, python

PACKAGES = {"torch": Package("2.3.0+cu121"), "numpy": Package("1.26.4"), "odd": Package("1.0-git")}


def node(text: str, packages: PackagesFacts | Absent | Unread | None = None) -> dict[str, Facts]:
    found = packages or PackagesFacts(PACKAGES, {"python_version": "3.10"})
    expected = ExpectedFacts(requirements=read_requirements(text) if text else ())
    return {"n1": {ExpectedFacts: expected, PackagesFacts: found, InterpreterFacts: python()}}


def test_what_is_missing_and_what_has_another_version_is_one_finding() -> None:
    assert judge([check], node("torch==2.3.0\nnumpy>=2\nDeepSpeed>=0.14,<0.15\nodd==1.0\n")).findings == [
        Finding("NC907", "requirement-unmet", Severity.ERROR, ("n1",),
                f"3 requirements are unmet by {PATH}: numpy>=2 (is 1.26.4), deepspeed<0.15,>=0.14 (not installed), "
                "odd==1.0 (is 1.0-git, which pip cannot compare)", (),
                f"{PATH} -m pip install 'numpy>=2' 'deepspeed<0.15,>=0.14' odd==1.0", summary="unmet requirements"),
    ]  # fmt: skip


def test_conditions_are_those_of_the_nodes_python() -> None:
    assert said(judge([check], node('tomli>=2; python_version < "3.11"'))) == (
        "failed", [f"1 requirement is unmet by {PATH}: tomli>=2 (not installed)"],
    )  # fmt: skip
    assert said(judge([check], node('tomli>=2; python_version >= "3.11"'))) == ("passed", [""])


def test_a_condition_that_cannot_be_compared_is_unknown() -> None:
    assert said(judge([check], node('tomli; python_version ~= "three"'))) == (
        "unknown", ["the condition of tomli cannot be compared: Undefined <Op('~=')> on '3.10' and 'three'."],
    )  # fmt: skip


def test_it_is_silent_where_all_are_met_or_none_was_given() -> None:
    assert said(judge([check], node("torch~=2.3\nnumpy\nnumpy!=2.*,>1.20\ntorch==2.3.0+cu121"))) == ("passed", [""])
    assert said(judge([check], node(""))) == ("skipped", ["no requirements were given: --requirements FILE"])


def test_packages_that_could_not_be_listed_are_unknown() -> None:
    assert said(judge([check], node("torch", Unread("it hangs")))) == ("unknown", ["it hangs"])
    assert said(judge([check], node("torch", Absent("no python3")))) == ("unknown", ["no python3"])
