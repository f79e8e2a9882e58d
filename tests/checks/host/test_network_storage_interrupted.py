"""NC650: a server that was away for a time."""

from __future__ import annotations

from ncheck.facts.kernel_log import Trouble
from ncheck.facts.storage_log import StorageLogFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.network_storage_interrupted import network_storage_interrupted


def test_it_says_how_often() -> None:
    log = StorageLogFacts(interrupted=(Trouble("fs01", 3, "first", "last"),))
    nodes: dict[str, Facts] = {"n1": {StorageLogFacts: log}}
    assert judge([network_storage_interrupted], nodes).findings == [
        Finding("NC650", "network-storage-interrupted", Severity.INFO, ("n1",), "fs01 was away 3 times since boot",
                ("last",), "sudo journalctl -k -b --no-pager | grep -E 'nfs: server|was evicted by'", kind="look"),
    ]  # fmt: skip


def test_it_leaves_what_does_not_answer_now_to_another() -> None:
    nodes: dict[str, Facts] = {"n1": {StorageLogFacts: StorageLogFacts(silent=(Trouble("fs01", 3, "first", "last"),))}}
    assert [verdict.outcome for verdict in judge([network_storage_interrupted], nodes).verdicts] == [Outcome.PASSED]
