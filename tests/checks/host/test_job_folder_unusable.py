"""NC642: a folder of the job that is missing, or that its user cannot use."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.storage import WORKDIR
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.job_folder_unusable import job_folder_unusable

from .storage import CURRENT, DATA, HOME, messages, named, node, outcomes

GONE = replace(DATA, exists=False)
LOCAL = replace(CURRENT, exists=False)


def test_data_that_is_missing_is_an_error_on_one_node_too() -> None:
    assert judge([job_folder_unusable], {"n1": node(GONE)}).findings == [
        Finding("NC642", "job-folder-unusable", Severity.ERROR, ("n1",), "/data (--data) does not exist", (),
                "findmnt -T /data; ls -ld /data; id", kind="look"),
    ]  # fmt: skip


def test_data_that_cannot_be_read_is_named_with_the_reason() -> None:
    refused = replace(DATA, error="Permission denied", code="EACCES")
    assert messages(
        judge([job_folder_unusable], named(node(replace(DATA, readable=False)), node(refused), node(DATA)))
    ) == {
        "/data (--data) cannot be read by the job's user": ("n1",),
        "/data (--data) cannot be read: Permission denied": ("n2",),
    }


def test_the_folder_in_which_ncheck_was_started_must_be_where_most_nodes_have_it() -> None:
    locked = replace(CURRENT, writable=False)
    assert messages(
        judge([job_folder_unusable], named(node(CURRENT), node(LOCAL), node(CURRENT), node(CURRENT), node(locked)))
    ) == {
        "/work (current folder) does not exist": ("n2",),
        "/work (current folder) cannot be written to by the job's user": ("n5",),
    }


def test_a_working_directory_that_cannot_be_used_is_named_and_a_missing_one_is_left_to_its_own_check() -> None:
    code = replace(CURRENT, named_by=WORKDIR)
    held = (code, replace(code, writable=False), replace(code, readable=False), replace(code, exists=False))
    assert messages(judge([job_folder_unusable], named(*map(node, held)))) == {
        "/work (--workdir) cannot be written to by the job's user": ("n2",),
        "/work (--workdir) cannot be read by the job's user": ("n3",),
    }


def test_a_folder_of_this_machine_alone_and_one_in_which_nobody_writes_are_no_fault() -> None:
    assert outcomes(judge([job_folder_unusable], named(node(LOCAL), node(LOCAL)))) == [Outcome.PASSED] * 2
    locked = node(replace(CURRENT, writable=False))
    assert outcomes(judge([job_folder_unusable], named(locked, locked))) == [Outcome.PASSED] * 2
    assert outcomes(judge([job_folder_unusable], named(node(replace(HOME, exists=False))))) == [Outcome.PASSED]


def test_what_a_server_refuses_to_root_may_be_open_to_the_user_of_the_job() -> None:
    squashed = replace(DATA, readable=False)
    assert outcomes(judge([job_folder_unusable], named(node(squashed, root=True)))) == [Outcome.UNKNOWN]
    assert outcomes(judge([job_folder_unusable], named(node(GONE, root=True)))) == [Outcome.FAILED]
    here = node(replace(CURRENT, writable=False), root=True)
    assert outcomes(judge([job_folder_unusable], named(here, node(CURRENT, root=True)))) == [Outcome.PASSED] * 2
