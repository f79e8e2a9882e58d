"""NC802: ranks that perhaps could not come are a warning: a firewall may let the job's own ports through."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.rank_not_met import rank_not_met

WAIT = "set NCHECK_TIMEOUT=120 for all ranks, if they need longer to start"


def test_ranks_whose_way_may_be_blocked_are_named() -> None:
    nodes: dict[str, Facts] = {
        "gpu01": {RanksFacts: RanksFacts(4, (0, 1), could_come=False, waited=25.0)},
        "gpu02": {RanksFacts: RanksFacts(4, (), missing=(2, 3), could_come=False, waited=25.0)},
    }
    assert judge([rank_not_met], nodes).findings == [
        Finding(
            "NC802", "rank-not-met", Severity.WARNING, ("gpu02",),
            "ranks 2 and 3 did not reach rank 0 within 25 s: not started, or blocked; a firewall may block ncheck's "
            "ports",
            ("ranks 2 and 3 should be on gpu02",), WAIT, where="here", kind="do",
            summary="ranks did not come",
        )
    ]  # fmt: skip


def test_it_is_silent_where_all_came_and_where_the_ranks_could_come() -> None:
    assert judge([rank_not_met], {"a": {RanksFacts: RanksFacts(2, (0, 1), could_come=False)}}).findings == []
    assert judge([rank_not_met], {"a": {RanksFacts: RanksFacts(2, (0,), missing=(1,))}}).findings == []
