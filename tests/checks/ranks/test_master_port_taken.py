"""NC808: the program on rank 0's port is named; other trouble with ranks is left to other checks."""

from __future__ import annotations

from ncheck.facts.ranks import PORT, TWICE, RanksFacts, RankTrouble
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.master_port_taken import master_port_taken


def test_who_has_the_port_is_named_and_nothing_else_is() -> None:
    words = "MASTER_PORT 29500 is taken on this host by process 4711 (python server.py)"
    troubles = (RankTrouble(TWICE, (1,), "rank 1 came twice"), RankTrouble(PORT, (0,), words))
    nodes: dict[str, Facts] = {
        "gpu01": {RanksFacts: RanksFacts(2, (0,), troubles=troubles)},
        "gpu02": {RanksFacts: RanksFacts(2, (1,))},
    }
    assert judge([master_port_taken], nodes).findings == [
        Finding(
            "NC808", "master-port-taken", Severity.WARNING, ("gpu01",), words, (), "ss -ltnp", kind="look",
            summary="another program has MASTER_PORT",
        )
    ]  # fmt: skip


def test_it_is_silent_about_a_port_that_is_free_and_about_other_trouble() -> None:
    twice = RanksFacts(2, (0, 1), troubles=(RankTrouble(TWICE, (1,), "rank 1 came twice"),))
    assert judge([master_port_taken], {"gpu01": {RanksFacts: twice}}).findings == []
