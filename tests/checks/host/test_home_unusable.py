"""NC611: a home folder that is missing, read-only or somebody else's."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.host.home_unusable import home_unusable

from .folders import folder, node

HOME = "/home/me"


def test_a_home_that_belongs_to_somebody_else_is_a_warning() -> None:
    assert judge([home_unusable], {"n1": node(home=folder(HOME, writable=False)), "n2": node()}).findings == [
        Finding("NC611", "home-unusable", Severity.WARNING, ("n1",),
                "the home folder /home/me cannot be written to by the job's user", (), "ls -ld ~; findmnt -T ~; id",
                kind="look"),
    ]  # fmt: skip


def test_so_is_one_that_is_missing_or_read_only() -> None:
    sick = (folder(HOME, exists=False, writable=False), folder(HOME, writable=False, read_only=True))
    assert [judge([home_unusable], {"n1": node(home=one)}).findings[0].message for one in sick] == [
        "the home folder /home/me does not exist", "the home folder /home/me is on a read-only file system",
    ]  # fmt: skip


def test_it_is_silent_about_a_healthy_one_and_unknown_where_it_could_not_be_read() -> None:
    judgement = judge([home_unusable], {"n1": node(), "n2": node(home=Unread("/home/me: Stale file handle"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]
