"""NC004: an exception in a check is the check's fault, not the node's."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.login import ListingFacts
from ncheck.model.finding import Finding, Outcome
from ncheck.steps.judge import judge
from ncheck_checks.ncheck.check_crashed import check_crashed


@node_check("NC899", Severity.INFO, ListingFacts)
def check_of_a_plug_in(node: NodeView) -> Iterator[Problem]:
    raise KeyError(node.name)


def test_a_crash_is_an_error_that_names_the_check_and_its_module() -> None:
    judgement = judge([check_crashed, check_of_a_plug_in], {"a": {ListingFacts: ListingFacts(("n:1",))}})
    assert [(v.code, v.outcome) for v in judgement.verdicts] == [("NC899", Outcome.CRASHED), ("NC004", Outcome.FAILED)]
    assert judgement.findings == [
        Finding("NC004", "check-crashed", Severity.ERROR, ("a",),
                "the check check-of-a-plug-in (NC899) crashed: KeyError: 'a'",
                (f"module: {__name__}",), "ncheck --ignore check-of-a-plug-in nodes.txt", where="here"),
    ]  # fmt: skip


def test_it_is_silent_where_no_check_crashed() -> None:
    assert judge([check_crashed], {"a": {}}).findings == []
