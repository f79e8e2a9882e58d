"""NC608: Open MPI makes a missing folder itself; others do not."""

from __future__ import annotations

from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.temporary_folder_missing import temporary_folder_missing

from .folders import TMP, folder, node


def test_a_folder_that_is_not_there_is_a_warning() -> None:
    sick = node(folder(TMP), folder("/scratch/x", "TMPDIR", exists=False))
    assert judge([temporary_folder_missing], {"n1": sick, "n2": node()}).findings == [
        Finding("NC608", "temporary-folder-missing", Severity.WARNING, ("n1",),
                "/scratch/x (TMPDIR) does not exist", (), "mkdir -p /scratch/x"),
    ]  # fmt: skip


def test_a_link_that_leads_nowhere_is_named_with_its_target() -> None:
    linked = folder(TMP, exists=False, target="/scratch/tmp")
    found = judge([temporary_folder_missing], {"n1": node(linked), "n2": node()}).findings
    assert [(one.message, one.fix) for one in found] == [
        (f"{TMP} is a link to /scratch/tmp, which does not exist", "mkdir -p -m 1777 /scratch/tmp")
    ]


def test_it_is_silent_about_one_that_is_there_and_about_one_that_is_an_error_already() -> None:
    lost = node(folder("/scratch/x", "TMPDIR", exists=False, writable=False))
    judgement = judge([temporary_folder_missing], {"n1": node(), "n2": lost})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 2


def test_one_that_could_not_be_read_is_unknown() -> None:
    judgement = judge([temporary_folder_missing], {"n1": node(Unread("Input/output error"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.UNKNOWN]
