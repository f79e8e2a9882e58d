"""NC648: errors of a disk in the kernel log."""

from __future__ import annotations

from ncheck.facts.disks import DiskFacts
from ncheck.facts.kernel_log import Trouble
from ncheck.facts.storage_log import StorageLogFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.disk_errors import disk_errors

LAST = "[913.250000] nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10"


def node(*troubles: tuple[Trouble, ...]) -> dict[str, Facts]:
    return {"n1": {StorageLogFacts: StorageLogFacts(*troubles), DiskFacts: DiskFacts({}, {}, {})}}


def test_the_disk_is_named_with_its_first_and_last_message() -> None:
    assert judge([disk_errors], node((Trouble("nvme1", 7, "first", LAST),))).findings == [
        Finding("NC648", "disk-errors", Severity.WARNING, ("n1",),
                "the kernel reported 7 errors of nvme1; last at [913.250000]", ("first", LAST),
                "sudo journalctl -k -b --no-pager | grep -w nvme1", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_servers_and_without_errors() -> None:
    server = Trouble("fs01", 1, "a", "b")
    verdicts = judge([disk_errors], node((), (server,), (server,))).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED]
