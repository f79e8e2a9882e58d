"""NC630: a home folder that does not exist."""

from __future__ import annotations

from ncheck.facts.run import JobFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.host.home_missing import home_missing

from .folders import folder, node

HOME = "/home/me"


def outside(facts: Facts) -> Facts:
    return {**facts, JobFacts: JobFacts()}


def test_a_home_that_does_not_exist_is_an_error() -> None:
    missing = folder(HOME, exists=False, writable=False)
    assert judge([home_missing], {"n1": outside(node(home=missing)), "n2": outside(node())}).findings == [
        Finding("NC630", "home-missing", Severity.ERROR, ("n1",), "the home folder /home/me does not exist", (),
                "getent passwd $(id -un)", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_one_that_cannot_be_written_to_unknown_if_unread_and_skipped_in_a_job() -> None:
    missing = folder(HOME, exists=False, writable=False)
    nodes = {
        "n1": outside(node(home=folder(HOME, writable=False))),
        "n2": outside(node(home=Unread("/home/me: Stale file handle"))),
        "n3": {**node(home=missing), JobFacts: JobFacts(running=True)},
    }
    outcomes = [verdict.outcome for verdict in judge([home_missing], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.UNKNOWN, Outcome.SKIPPED]
