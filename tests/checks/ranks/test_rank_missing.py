"""NC801: ranks that did not come, although they could, are named with the host where they should be."""

from __future__ import annotations

from ncheck.facts.ranks import RanksFacts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ranks.rank_missing import rank_missing

WAIT = "set NCHECK_TIMEOUT=120 for all ranks, if they need longer to start"


def facts(came: tuple[int, ...], missing: tuple[int, ...] = (), **other: object) -> dict[type[object], object]:
    return {RanksFacts: RanksFacts(16, came, missing=missing, waited=30.2, **other)}  # type: ignore[arg-type]


def finding(nodes: tuple[str, ...], message: str, *evidence: str) -> Finding:
    return Finding(
        "NC801", "rank-missing", Severity.ERROR, nodes, message, evidence, WAIT, where="here", kind="do",
        summary="ranks did not start",
    )  # fmt: skip


def test_ranks_of_a_known_host_are_named_with_it() -> None:
    found = judge([rank_missing], {"gpu01": facts((0, 1, 2, 3)), "gpu03": facts((), (12, 13, 14, 15))}).findings
    message = "ranks 12 to 15 did not reach rank 0 within 30 s: not started, or blocked"
    assert found == [finding(("gpu03",), message, "ranks 12 to 15 should be on gpu03")]


def test_one_finding_names_all_and_says_where_each_should_be() -> None:
    nodes = {
        "gpu01": facts((0, 1, 3), (2,), homeless=(9, 11)),
        "gpu02": facts((), (4, 5), homeless=(9, 11)),
        "gpu03": facts((12,), homeless=(9, 11)),
    }
    assert judge([rank_missing], nodes).findings == [
        finding(
            ("gpu01", "gpu02"),
            "rank 2 did not call ncheck.preflight() and ranks 4, 5, 9 and 11 did not reach rank 0 within 30 s: "
            "not started, or blocked",
            "rank 2 should be on gpu01",
            "ranks 4 and 5 should be on gpu02",
            "the launcher's variables do not say on which host ranks 9 and 11 should be",
        )
    ]


def test_ranks_of_an_unknown_host_are_missed_by_all_that_came() -> None:
    found = judge([rank_missing], {"gpu01": facts((0,), homeless=(1,)), "gpu02": facts((2,), homeless=(1,))}).findings
    assert found == [
        finding(
            ("gpu01", "gpu02"),
            "rank 1 did not reach rank 0 within 30 s: not started, or blocked",
            "the launcher's variables do not say on which host rank 1 should be",
        )
    ]


def test_on_one_node_it_is_judged_too() -> None:
    assert len(judge([rank_missing], {"gpu01": facts((0,), (1,))}).findings) == 1


def test_it_is_silent_where_all_came_and_where_the_network_may_be_the_reason() -> None:
    for nodes in ({"a": facts((0, 1))}, {"a": facts((0,), could_come=False), "b": facts((), (1,), could_come=False)}):
        judgement = judge([rank_missing], nodes)
        assert judgement.findings == []
        assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.PASSED}
