"""NC805: two processes with one rank are reported with both sides."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts, RankTrouble
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.rank_twice import rank_twice

TEXT = "rank 3 came twice: rank 3 (pid 7 on a) and rank 3 (pid 9 on b)"


def test_it_says_what_the_ranks_said() -> None:
    troubles = (RankTrouble("duplicate-rank", (3,), TEXT), RankTrouble("duplicate-rank", (4,), "rank 4 too"))
    nodes: dict[str, Facts] = {"b": {RanksFacts: RanksFacts(16, (3, 4), troubles=troubles)}}
    assert judge([rank_twice], nodes).findings == [
        Finding(
            "NC805", "rank-twice", Severity.ERROR, ("b",), TEXT, ("rank 4 too",),
            "env | grep RANK", kind="look", summary="two processes have the same rank",
        )
    ]  # fmt: skip


def test_it_is_silent_about_healthy_ranks_and_about_other_trouble() -> None:
    other = (RankTrouble("world-size", (3,), "something else"),)
    nodes: dict[str, Facts] = {
        "a": {RanksFacts: RanksFacts(16, (3,), troubles=other)},
        "b": {RanksFacts: RanksFacts(16, (4,))},
    }
    assert judge([rank_twice], nodes).findings == []
