"""NC630: a home folder that does not exist."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.host.home_missing import home_missing

from .folders import folder, node

HOME = "/home/me"


def test_a_home_that_does_not_exist_is_an_error() -> None:
    missing = folder(HOME, exists=False, writable=False)
    assert judge([home_missing], {"n1": node(home=missing), "n2": node()}).findings == [
        Finding("NC630", "home-missing", Severity.ERROR, ("n1",), "the home folder /home/me does not exist", (),
                "getent passwd $(id -un)", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_one_that_cannot_be_written_to_and_unknown_where_it_could_not_be_read() -> None:
    nodes = {"n1": node(home=folder(HOME, writable=False)), "n2": node(home=Unread("/home/me: Stale file handle"))}
    assert [verdict.outcome for verdict in judge([home_missing], nodes).verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]
