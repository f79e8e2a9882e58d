"""NC658: disks that are dead or hot, and arrays that lack a disk."""

from __future__ import annotations

from ncheck.facts.disks import DiskFacts, Heat, RaidArray
from ncheck.facts.kernel_log import Trouble
from ncheck.facts.storage_log import StorageLogFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.disk_errors import disk_errors
from ncheck_checks.host.disk_unhealthy import disk_unhealthy

CLEAN = RaidArray("raid1", "clean", "idle", 0)


def found(disks: DiskFacts) -> list[tuple[Severity, str, str]]:
    nodes: dict[str, Facts] = {"n1": {DiskFacts: disks}}
    return [(one.severity, one.message, one.fix) for one in judge([disk_unhealthy], nodes).findings]


def test_a_dead_disk_is_an_error() -> None:
    nodes: dict[str, Facts] = {"n1": {DiskFacts: DiskFacts({"nvme0": "live", "nvme1": "dead"}, {}, {})}}
    assert judge([disk_unhealthy], nodes).findings == [
        Finding("NC658", "disk-unhealthy", Severity.ERROR, ("n1",), 'the disk nvme1 is in the state "dead"', (),
                "sudo smartctl -a /dev/nvme1", kind="look", summary="a disk is dead"),
    ]  # fmt: skip


def test_what_still_works_is_a_warning() -> None:
    disks = DiskFacts(
        {"nvme2": "resetting", "sdb": "blocked"},
        {"nvme1": Heat(84, 81), "nvme3": Heat()},
        {"md0": RaidArray("raid1", "active", "recover", 1), "md1": RaidArray("raid6", "active", "idle", 2),
         "md2": RaidArray("raid0", "broken", "")},
    )  # fmt: skip
    assert found(disks) == [
        (Severity.WARNING, 'the disk nvme2 is in the state "resetting"', "sudo smartctl -a /dev/nvme2"),
        (Severity.WARNING, 'the disk sdb is in the state "blocked"', "sudo smartctl -a /dev/sdb"),
        (Severity.WARNING, "the drive nvme1 says that it is too hot: 84 °C, critical from 81 °C",
         "sudo nvme smart-log /dev/nvme1"),
        (Severity.WARNING, "the drive nvme3 says that it is too hot", "sudo nvme smart-log /dev/nvme3"),
        (Severity.WARNING, "the RAID array md0 (raid1) lacks a disk, and is being filled",
         "sudo mdadm --detail /dev/md0"),
        (Severity.WARNING, "the RAID array md1 (raid6) lacks 2 disks", "sudo mdadm --detail /dev/md1"),
        (Severity.WARNING, "the RAID array md2 (raid0) is broken: a disk of it is gone",
         "sudo mdadm --detail /dev/md2"),
    ]  # fmt: skip


def test_a_lost_path_to_a_disk_that_has_another_is_a_warning() -> None:
    disks = DiskFacts({"sda": "running", "sdb": "transport-offline", "sdc": "offline"}, {}, {}, ("sdb",))
    assert found(disks) == [
        (Severity.WARNING, 'sdb, one of several paths to a disk, is in the state "transport-offline"',
         "sudo multipath -ll"),
        (Severity.ERROR, 'the disk sdc is in the state "offline"', "sudo smartctl -a /dev/sdc"),
    ]  # fmt: skip


def test_errors_in_the_log_follow_from_a_disk_that_is_dead() -> None:
    log = StorageLogFacts((Trouble("nvme1n1p2", 1, "a", "a"), Trouble("nvme11n1", 1, "b", "b")))
    nodes: dict[str, Facts] = {"n1": {DiskFacts: DiskFacts({"nvme1": "dead"}, {}, {}), StorageLogFacts: log}}
    judged = judge([disk_unhealthy, disk_errors], nodes).findings
    assert [(one.code, one.see) for one in judged] == [("NC658", ()), ("NC648", ("NC658",)), ("NC648", ())]


def test_healthy_disks_and_containers_of_arrays_pass_and_a_node_without_disks_is_skipped() -> None:
    container = RaidArray("container", "inactive", "")
    disks = DiskFacts({"nvme0": "live", "nvme1": "new", "sda": "running"}, {}, {"md0": CLEAN, "md127": container})
    assert found(disks) == []
    nodes: dict[str, Facts] = {"n1": {DiskFacts: disks}, "n2": {DiskFacts: DiskFacts({}, {}, {})}}
    outcomes = [verdict.outcome for verdict in judge([disk_unhealthy], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]
