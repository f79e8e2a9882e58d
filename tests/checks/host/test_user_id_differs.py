"""NC612: the same user has the same number on every node."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.user_id_differs import user_id_differs


def node(user_id: int | None, user: str = "train") -> Facts:
    return {
        LoginFacts: LoginFacts(Login(reached=True, user=user)),
        IdentityFacts: IdentityFacts("n", "b00t", "net:[4026531840]", user_id),
    }


def test_the_node_with_another_number_is_named() -> None:
    assert judge([user_id_differs], {"n1": node(1001), "n2": node(1001), "n3": node(1002)}).findings == [
        Finding("NC612", "user-id-differs", Severity.WARNING, ("n3",),
                "the user id of train differs: 1001 on n[1-2], 1002 on n3 (2 to 1)", (), "id", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_different_users_and_about_root() -> None:
    nodes = {"n1": node(1001), "n2": node(1001), "n3": node(2001, "ubuntu")}
    for healthy in (nodes, {"n1": node(0, "root"), "n2": node(0, "root")}):
        assert {verdict.outcome for verdict in judge([user_id_differs], healthy).verdicts} == {Outcome.PASSED}


def test_a_node_that_did_not_say_its_number_is_unknown() -> None:
    outcomes = [verdict.outcome for verdict in judge([user_id_differs], {"n1": node(7), "n2": node(None)}).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.UNKNOWN]
