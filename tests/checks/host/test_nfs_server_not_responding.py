"""NC649: an NFS server that the kernel waits for."""

from __future__ import annotations

from ncheck.facts.kernel_log import Trouble
from ncheck.facts.storage import FileSystem, MountState, StorageFacts
from ncheck.facts.storage_log import StorageLogFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.nfs_server_not_responding import nfs_server_not_responding

LOG = StorageLogFacts(silent=(Trouble("fs01", 3, "first", "nfs: server fs01 not responding, still trying"),))
MOUNT = MountState(FileSystem("/data", "nfs4", "fs01:/data", network=True))
HANGS = MountState(MOUNT.on, hangs=True)


def outcome(storage: StorageFacts | Unread, log: StorageLogFacts = LOG) -> Outcome:
    nodes: dict[str, Facts] = {"n1": {StorageLogFacts: log, StorageFacts: storage}}
    return judge([nfs_server_not_responding], nodes).verdicts[0].outcome


def test_the_server_is_named_where_nothing_says_that_it_is_back() -> None:
    nodes: dict[str, Facts] = {"n1": {StorageLogFacts: LOG, StorageFacts: StorageFacts((), (HANGS,))}}
    assert judge([nfs_server_not_responding], nodes).findings == [
        Finding("NC649", "nfs-server-not-responding", Severity.WARNING, ("n1",),
                "NFS server fs01 does not respond, and the kernel has not said OK since",
                ("nfs: server fs01 not responding, still trying",), "ping -c 3 fs01", kind="look"),
    ]  # fmt: skip
    assert outcome(Unread("no answer")) is Outcome.FAILED


def test_a_mount_that_answers_now_is_the_better_witness() -> None:
    assert outcome(StorageFacts((), (MOUNT,))) is outcome(StorageFacts((), (HANGS, MOUNT))) is Outcome.PASSED
    assert outcome(StorageFacts(())) is Outcome.PASSED  # it was unmounted, and says OK no more
    assert outcome(StorageFacts(()), StorageLogFacts(interrupted=LOG.silent)) is Outcome.PASSED
