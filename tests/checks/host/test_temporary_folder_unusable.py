"""NC607: a folder for temporary files that cannot be written to, or made."""

from __future__ import annotations

from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.temporary_folder_unusable import temporary_folder_unusable

from .folders import TMP, folder, node

SESSION = "/tmp/ompi.n1.1000"  # noqa: S108  only a name


def test_a_folder_of_a_variable_that_cannot_be_made_is_an_error() -> None:
    sick = node(folder(TMP), folder("/scratch/x", "TMPDIR", exists=False, writable=False))
    assert judge([temporary_folder_unusable], {"n1": sick, "n2": node()}).findings == [
        Finding("NC607", "temporary-folder-unusable", Severity.ERROR, ("n1",),
                "/scratch/x (TMPDIR) does not exist, and the job's user cannot make it", (),
                "sudo mkdir -p -m 1777 /scratch/x"),
    ]  # fmt: skip


def test_so_is_a_read_only_file_system_and_one_that_others_own() -> None:
    sick = (
        folder(TMP, writable=False, read_only=True),
        folder(TMP, writable=False),
        folder("/scratch", "TMPDIR", writable=False),
    )
    found = [judge([temporary_folder_unusable], {"n1": node(one)}).findings[0] for one in sick]
    assert [(one.message, one.fix, one.kind) for one in found] == [
        (f"{TMP} is on a read-only file system", "findmnt -T /tmp", "look"),
        ("the job's user cannot write to /tmp", "sudo chmod 1777 /tmp", "fix"),
        ("the job's user cannot write to /scratch (TMPDIR)", "ls -ld /scratch", "look"),
    ]


def test_so_is_a_session_folder_of_open_mpi_that_belongs_to_another_user() -> None:
    (finding,) = judge([temporary_folder_unusable], {"n1": node(folder(TMP), folder(SESSION, writable=False))}).findings
    message = f"the job's user cannot write to {SESSION}, where Open MPI keeps the user's session"
    assert (finding.message, finding.fix, finding.kind) == (message, f"ls -ld {SESSION}", "look")


def test_it_is_silent_about_a_folder_that_can_be_made() -> None:
    made = node(folder(TMP), folder("/scratch/x", "TMPDIR", exists=False))
    judgement = judge([temporary_folder_unusable], {"n1": node(), "n2": made})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 2


def test_one_that_could_not_be_read_is_unknown() -> None:
    judgement = judge([temporary_folder_unusable], {"n1": node(Unread("Input/output error"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.UNKNOWN]
