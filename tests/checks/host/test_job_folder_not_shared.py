"""NC643: a folder that is shared on some nodes and local on others."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.job_folder_not_shared import job_folder_not_shared

from .storage import CURRENT, DATA, DISK, HOME, named, node, outcomes

LOCAL = replace(DATA, on=DISK, inode=131)


def test_the_node_that_has_the_empty_folder_beneath_the_mount_is_named() -> None:
    judgement = judge([job_folder_not_shared], {"n1": node(DATA), "n2": node(LOCAL), "n3": node(DATA)})
    assert judgement.findings == [
        Finding("NC643", "job-folder-not-shared", Severity.ERROR, ("n2",),
                "/data (--data) is on a shared file system on n[1,3], a local disk on n2 (2 to 1)",
                ("n[1,3]: /data (nfs4 from fs01:/data)", "n2: / (ext4 from /dev/sda1)"), "findmnt -T /data",
                kind="look"),
    ]  # fmt: skip


def test_copies_on_every_node_and_nodes_without_the_folder_are_no_fault_of_this_kind() -> None:
    assert outcomes(judge([job_folder_not_shared], named(node(LOCAL), node(LOCAL)))) == [Outcome.PASSED] * 2
    gone = (replace(LOCAL, exists=False), replace(LOCAL, hangs=True), replace(LOCAL, on=None))
    assert outcomes(judge([job_folder_not_shared], named(node(DATA), *map(node, gone)))) == [Outcome.PASSED] * 4


def test_the_node_that_serves_the_folder_to_the_others_has_it_on_its_disk() -> None:
    server, clients = node(replace(DATA, on=DISK)), [node(DATA), node(DATA)]
    assert outcomes(judge([job_folder_not_shared], named(server, *clients))) == [Outcome.PASSED] * 3
    older = node(replace(DATA, on=DISK, changed=DATA.changed - 1))  # a disk of its own: its root has the same inode
    assert outcomes(judge([job_folder_not_shared], named(older, *clients)))[0] is Outcome.FAILED


def test_a_home_folder_and_the_folder_of_a_laptop_may_be_anything() -> None:
    shared = replace(HOME, on=DATA.on)
    assert outcomes(judge([job_folder_not_shared], named(node(HOME), node(shared)))) == [Outcome.PASSED] * 2
    local = replace(CURRENT, on=DISK, inode=131)
    few = [node(CURRENT), node(local), *(node(replace(CURRENT, exists=False)) for _ in range(2))]
    assert outcomes(judge([job_folder_not_shared], named(*few))) == [Outcome.PASSED] * 4
