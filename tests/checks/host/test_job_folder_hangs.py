"""NC640: a folder of the job whose file system hangs or is dead."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.job_folder_hangs import job_folder_hangs

from .storage import DATA, HOME, messages, named, node, outcomes


def test_the_node_whose_folder_hangs_is_named_with_the_server() -> None:
    judgement = judge([job_folder_hangs], {"n1": node(DATA), "n2": node(replace(DATA, hangs=True))})
    assert judgement.findings == [
        Finding("NC640", "job-folder-hangs", Severity.ERROR, ("n2",),
                "/data (--data): /data (nfs4 from fs01:/data) does not answer", (), "timeout 5 stat -f /data",
                kind="look"),
    ]  # fmt: skip


def test_folders_on_one_mount_are_one_finding() -> None:
    cache = replace(DATA, path="/data/hf", named_by="HF_HOME", hangs=True)
    assert messages(judge([job_folder_hangs], named(node(replace(DATA, hangs=True), cache)))) == {
        "/data (--data), /data/hf (HF_HOME): /data (nfs4 from fs01:/data) does not answer": ("n1",)
    }


def test_a_folder_that_answers_is_no_finding() -> None:
    assert outcomes(judge([job_folder_hangs], named(node(DATA), node()))) == [Outcome.PASSED] * 2


def test_a_dead_mount_is_named_and_a_folder_that_this_user_may_not_see_is_not() -> None:
    stale = replace(HOME, error="Stale file handle", code="ESTALE")
    refused = replace(HOME, error="Permission denied", code="EACCES")
    assert outcomes(judge([job_folder_hangs], named(node(stale), node(refused), node()))) == [
        Outcome.FAILED, Outcome.PASSED, Outcome.PASSED,
    ]  # fmt: skip
