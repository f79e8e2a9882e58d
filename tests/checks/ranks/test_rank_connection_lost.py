"""NC806: ranks whose connection broke are reported with both sides."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts, RankTrouble
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.rank_connection_lost import rank_connection_lost

TEXT = "the connection to rank 3 (pid 7 on b) broke"


def test_it_says_what_the_ranks_said() -> None:
    troubles = (RankTrouble("lost", (3,), TEXT), RankTrouble("lost", (4,), "rank 4 too"))
    nodes: dict[str, Facts] = {"b": {RanksFacts: RanksFacts(16, (3, 4), troubles=troubles)}}
    assert judge([rank_connection_lost], nodes).findings == [
        Finding(
            "NC806", "rank-connection-lost", Severity.WARNING, ("b",), TEXT, ("rank 4 too",),
            "sudo dmesg -T", kind="look",
        )
    ]  # fmt: skip


def test_it_is_silent_about_healthy_ranks_and_about_other_trouble() -> None:
    other = (RankTrouble("duplicate-rank", (3,), "something else"),)
    nodes: dict[str, Facts] = {
        "a": {RanksFacts: RanksFacts(16, (3,), troubles=other)},
        "b": {RanksFacts: RanksFacts(16, (4,))},
    }
    assert judge([rank_connection_lost], nodes).findings == []
