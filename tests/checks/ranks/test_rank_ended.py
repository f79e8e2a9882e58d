"""NC803: ranks whose process ended are named with its number."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.rank_ended import rank_ended


def test_ranks_that_ended_are_named_with_their_processes() -> None:
    nodes: dict[str, Facts] = {"gpu01": {RanksFacts: RanksFacts(4, (0, 1), ended={0: 711, 1: 712})}}
    assert judge([rank_ended], nodes).findings == [
        Finding(
            "NC803", "rank-ended", Severity.ERROR, ("gpu01",),
            "ranks 0 and 1 ended before the job began (pid 711, pid 712)", (), "sudo dmesg -T", kind="look",
            summary="ranks have ended",
        )
    ]  # fmt: skip


def test_it_is_silent_where_all_live() -> None:
    assert judge([rank_ended], {"gpu01": {RanksFacts: RanksFacts(2, (0, 1))}}).findings == []
