"""NC217: every package, but for those that other checks compare always."""

from __future__ import annotations

from ncheck.facts.interpreter import InterpreterFacts, TorchBuild
from ncheck.facts.packages import Package, PackagesFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.packages_differ import packages_differ as check

from tests.checks.versions.pythons import PATH, python

PYTHON = python(TorchBuild("2.3.0"), flash_attn="2.5.8")
USUAL = {"numpy": Package("1.26.4"), "mine": Package("0.9", "commit 97ff6cfd9c86"), "torch": Package("2.3.0")}


def node(**changed: Package | None) -> Facts:
    packages = {name: package for name, package in {**USUAL, **changed}.items() if package}
    return {PackagesFacts: PackagesFacts(packages), InterpreterFacts: PYTHON}


def test_packages_that_differ_on_the_same_nodes_are_one_finding() -> None:
    odd = node(numpy=Package("2.0.0"), mine=Package("0.9", "editable"), extra=Package(""))
    assert judge([check], {"n1": node(), "n2": node(), "n3": odd}).findings == [
        Finding("NC217", "packages-differ", Severity.WARNING, ("n3",),
                "3 packages differ: extra none on n[1-2], no version on n3 (2 to 1); mine 0.9 (commit 97ff6cfd9c86) on "
                "n[1-2], 0.9 (editable) on n3 (2 to 1); numpy 1.26.4 on n[1-2], 2.0.0 on n3 (2 to 1)", (),
                f"{PATH} -m pip freeze", kind="look", summary="packages differ"),
    ]  # fmt: skip


def test_many_packages_are_counted_and_the_evidence_has_them() -> None:
    more = {f"p{number}": Package("1") for number in range(7)}
    (found,) = judge([check], {"n1": node(), "n2": node(), "n3": node(**more)}).findings
    assert found.message.startswith("7 packages differ: p0 none on n[1-2], 1 on n3 (2 to 1); ")
    assert found.message.endswith(" and 3 more")
    assert found.evidence == tuple(f"p{number} none on n[1-2], 1 on n3 (2 to 1)" for number in (4, 5, 6))


def test_it_is_silent_about_what_other_checks_compare_and_about_equal_packages() -> None:
    other = node(torch=Package("2.1.0"), **{"flash-attn": Package("2.5.8")})
    assert judge([check], {"n1": node(), "n2": node(), "n3": other}).findings == []


def test_it_is_skipped_where_nobody_asked_for_it() -> None:
    unasked: Facts = {PackagesFacts: Absent("only with --packages all"), InterpreterFacts: PYTHON}
    assert {one.outcome for one in judge([check], {"n1": unasked, "n2": unasked}).verdicts} == {Outcome.SKIPPED}
