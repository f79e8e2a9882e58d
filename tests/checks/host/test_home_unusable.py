"""NC611: a home folder that is read-only or somebody else's."""

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


def test_so_is_one_on_a_read_only_file_system() -> None:
    sick = folder(HOME, writable=False, read_only=True)
    (finding,) = judge([home_unusable], {"n1": node(home=sick)}).findings
    assert finding.message == "the home folder /home/me is on a read-only file system"


def test_it_is_silent_about_a_healthy_and_a_missing_one_and_unknown_where_it_could_not_be_read() -> None:
    missing, unread = folder(HOME, exists=False, writable=False), Unread("/home/me: Stale file handle")
    judgement = judge([home_unusable], {"n1": node(), "n2": node(home=missing), "n3": node(home=unread)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN]
