"""NC126: --setup or --enter failed there, in its own words."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.job_environment_not_entered import job_environment_not_entered


def node(cause: Cause | None, detail: str = "") -> Facts:
    return {LoginFacts: LoginFacts(Login(reached=True, cause=cause, detail=detail))}


def test_a_failed_set_up_is_named_with_its_own_words() -> None:
    said = "--setup 'module load nccl' failed: ERROR: Unable to locate a modulefile for 'nccl'"
    assert judge([job_environment_not_entered], {"n1": node(Cause.NOT_ENTERED, said), "n2": node(None)}).findings == [
        Finding("NC126", "job-environment-not-entered", Severity.ERROR, ("n1",),
                f"the job's environment could not be entered on n1: {said}", (said,), "ssh n1 bash -l",
                where="here", kind="look", summary="the job's environment cannot be entered"),
    ]  # fmt: skip


def test_no_other_cause_is_taken_for_it() -> None:
    nodes = {"n1": node(Cause.NO_PYTHON), "n2": node(Cause.CLOSED), "n3": node(None)}
    assert judge([job_environment_not_entered], nodes).findings == []
