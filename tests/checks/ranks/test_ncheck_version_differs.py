"""NC807: another version of ncheck on a node is worth knowing, and no more."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.ncheck_version_differs import ncheck_version_differs


def test_a_node_with_another_version_is_named_with_both() -> None:
    nodes: dict[str, Facts] = {"a": {RanksFacts: RanksFacts(2, (0,), version="0.1.0", ours="0.2.0")}}
    assert judge([ncheck_version_differs], nodes).findings == [
        Finding(
            "NC807", "ncheck-version-differs", Severity.INFO, ("a",), "its ncheck is 0.1.0, that of rank 0 is 0.2.0",
            (), "python3 -m pip show cluster-ncheck", kind="look",
        )
    ]  # fmt: skip


def test_it_is_silent_about_the_same_version_and_about_a_node_that_never_came() -> None:
    for version in ("0.2.0", ""):
        nodes: dict[str, Facts] = {"a": {RanksFacts: RanksFacts(2, (0,), version=version, ours="0.2.0")}}
        assert judge([ncheck_version_differs], nodes).findings == []
