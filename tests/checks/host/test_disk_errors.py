"""NC648: errors of a disk in the kernel log."""

from __future__ import annotations

from ncheck.facts.storage_log import StorageLogFacts, Trouble
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.host.disk_errors import disk_errors


def test_the_disk_is_named_with_its_first_and_last_message() -> None:
    nodes: dict[str, Facts] = {"n1": {StorageLogFacts: StorageLogFacts((Trouble("nvme1", 7, "first", "last"),))}}
    assert judge([disk_errors], nodes).findings == [
        Finding("NC648", "disk-errors", Severity.WARNING, ("n1",), "the kernel reported 7 errors of nvme1",
                ("first", "last"), "sudo journalctl -k -b --no-pager | grep -w nvme1", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_servers_and_without_errors() -> None:
    server = Trouble("fs01", 1, "a", "b")
    nodes: dict[str, Facts] = {"n1": {StorageLogFacts: StorageLogFacts((), (server,), (server,))}}
    assert [verdict.outcome for verdict in judge([disk_errors], nodes).verdicts] == [Outcome.PASSED]
