"""NC804: ranks that were told another size are reported with both sides."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts, RankTrouble
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.world_size_differs import world_size_differs

TEXT = "rank 3 (pid 7 on b) has WORLD_SIZE 8, and rank 0 (pid 5 on a) has 16"


def test_it_says_what_the_ranks_said() -> None:
    troubles = (RankTrouble("world-size", (3,), TEXT), RankTrouble("world-size", (4,), "rank 4 too"))
    nodes: dict[str, Facts] = {"b": {RanksFacts: RanksFacts(16, (3, 4), troubles=troubles)}}
    assert judge([world_size_differs], nodes).findings == [
        Finding(
            "NC804", "world-size-differs", Severity.ERROR, ("b",), TEXT, ("rank 4 too",),
            "env | grep -E 'RANK|SIZE|NNODES'", kind="look", summary="the ranks disagree about the size of the job",
        )
    ]  # fmt: skip


def test_it_is_silent_about_healthy_ranks_and_about_other_trouble() -> None:
    other = (RankTrouble("duplicate-rank", (3,), "something else"),)
    nodes: dict[str, Facts] = {
        "a": {RanksFacts: RanksFacts(16, (3,), troubles=other)},
        "b": {RanksFacts: RanksFacts(16, (4,))},
    }
    assert judge([world_size_differs], nodes).findings == []
