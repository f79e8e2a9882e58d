"""NC620: processes that stay in one uninterruptible sleep."""

from __future__ import annotations

from ncheck.facts.host_load import HostLoadFacts, Stuck
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.process_stuck import FIX, process_stuck


def test_they_are_named_with_what_they_wait_for() -> None:
    stuck = (Stuck(17, "python", "rpc_wait_bit_killable"), Stuck(18, "ls"))
    assert judge([process_stuck], {"n1": {HostLoadFacts: HostLoadFacts(8, stuck=stuck, stuck_more=3)}}).findings == [
        Finding("NC620", "process-stuck", Severity.WARNING, ("n1",), "5 processes are stuck in the kernel: ls, python",
                ("pid 17 python waits in rpc_wait_bit_killable", "pid 18 ls"), FIX, kind="look",
                summary="5 processes are stuck"),
    ]  # fmt: skip


def test_one_is_one() -> None:
    load = HostLoadFacts(8, stuck=(Stuck(17, "nvidia-smi"),))
    assert [one.message for one in judge([process_stuck], {"n1": {HostLoadFacts: load}}).findings] == [
        "1 process is stuck in the kernel: nvidia-smi"
    ]


def test_none_is_healthy_and_no_answer_unknown() -> None:
    nodes: dict[str, Facts] = {
        "a": {HostLoadFacts: HostLoadFacts(8)},
        "b": {HostLoadFacts: Unread("no answer")},
        "c": {HostLoadFacts: HostLoadFacts(8, hidden=True)},
    }
    assert [one.outcome for one in judge([process_stuck], nodes).verdicts] == [
        Outcome.PASSED, Outcome.UNKNOWN, Outcome.SKIPPED,
    ]  # fmt: skip
