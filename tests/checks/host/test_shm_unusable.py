"""NC610: shared memory that the job's user cannot write to."""

from __future__ import annotations

from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.shm_unusable import shm_unusable

from .folders import SHM, folder, node


def test_permissions_that_keep_the_user_out_are_an_error() -> None:
    assert judge([shm_unusable], {"n1": node(shm=folder(SHM, writable=False)), "n2": node()}).findings == [
        Finding("NC610", "shm-unusable", Severity.ERROR, ("n1",),
                "the job's user cannot write to shared memory (/dev/shm)", (), "sudo chmod 1777 /dev/shm"),
    ]  # fmt: skip


def test_so_is_one_that_is_missing_or_read_only() -> None:
    sick = (folder(SHM, exists=False, writable=False), folder(SHM, writable=False, read_only=True))
    found = [judge([shm_unusable], {"n1": node(shm=one)}).findings[0] for one in sick]
    assert [(one.message, one.fix) for one in found] == [
        ("there is no shared memory (/dev/shm)",
         "sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"),
        ("shared memory (/dev/shm) is mounted read-only", "sudo mount -o remount,rw /dev/shm"),
    ]  # fmt: skip


def test_it_is_silent_about_a_healthy_one_and_unknown_where_it_could_not_be_read() -> None:
    judgement = judge([shm_unusable], {"n1": node(), "n2": node(shm=Unread("it hangs"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]
