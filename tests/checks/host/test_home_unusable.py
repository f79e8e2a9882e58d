"""NC611: a home folder that is missing, read-only or somebody else's."""

from __future__ import annotations

from ncheck.facts.folders import Folder
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.home_unusable import home_unusable

from . import folders
from .folders import folder

HOME = "/home/me"
MISSING = folder(HOME, exists=False, writable=False)
HEALTHY = folder(HOME)


def node(*, running: bool = False, home: Folder | Unread = HEALTHY) -> Facts:
    return {**folders.node(home=home), JobFacts: JobFacts(running=running)}


def test_a_home_that_does_not_exist_is_an_error_and_a_warning_inside_a_job() -> None:
    nodes = {"n1": node(home=MISSING), "n2": node(), "n3": node(home=MISSING, running=True)}
    assert judge([home_unusable], nodes).findings == [
        Finding("NC611", "home-unusable", severity, (name,), "the home folder /home/me does not exist", (),
                "getent passwd $(id -un)", kind="look")
        for name, severity in (("n1", Severity.ERROR), ("n3", Severity.WARNING))
    ]  # fmt: skip


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


def test_it_is_silent_about_a_healthy_one_and_unknown_where_it_could_not_be_read() -> None:
    judgement = judge([home_unusable], {"n1": node(), "n2": node(home=Unread("/home/me: Stale file handle"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]
