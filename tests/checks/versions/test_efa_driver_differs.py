"""NC235: the version of the kernel's module efa."""

from __future__ import annotations

from ncheck.facts.net_plugin import EfaFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.efa_driver_differs import efa_driver_differs as check


def node(driver: str) -> Facts:
    return {EfaFacts: EfaFacts(("rdmap0s6",), driver)}


def test_the_node_with_another_driver_is_named() -> None:
    nodes = {"n1": node("2.13.0g"), "n2": node(""), "n3": node("2.13.0g")}
    assert judge([check], nodes).findings == [
        Finding("NC235", "efa-driver-differs", Severity.WARNING, ("n2",),
                "the EFA driver differs: 2.13.0g on n[1,3], the kernel's own on n2 (2 to 1)", (), "modinfo efa",
                kind="look", summary="the EFA driver differs"),
    ]  # fmt: skip


def test_one_driver_is_fine_and_a_node_without_efa_is_not_compared() -> None:
    judgement = judge([check], {"n1": node("2.13.0g"), "n2": node("2.13.0g"), "n3": {EfaFacts: Absent("no EFA")}})
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [
        Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED,
    ]  # fmt: skip
