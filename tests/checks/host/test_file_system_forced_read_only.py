"""NC647: a file system that the kernel made read-only."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.file_system_forced_read_only import file_system_forced_read_only

from .storage import DISK, messages, named, node, outcomes

SCRATCH = replace(DISK, point="/scratch", source="/dev/nvme1n1", options=("ro",))


def test_the_disk_is_named_once() -> None:
    bound = replace(SCRATCH, point="/var/lib/containers")
    nodes = {"n1": node(forced=(SCRATCH, bound)), "n2": node()}
    assert judge([file_system_forced_read_only], nodes).findings == [
        Finding("NC647", "file-system-forced-read-only", Severity.ERROR, ("n1",),
                "/scratch (ext4 from /dev/nvme1n1) is read-only, although it was mounted for writing", (),
                "sudo dmesg | grep -iE 'remount|I/O error'", kind="look"),
    ]  # fmt: skip


def test_the_root_of_several_nodes_is_left_to_root_read_only() -> None:
    root = replace(DISK, options=("ro",))
    assert list(messages(judge([file_system_forced_read_only], named(node(forced=(root,)))))) == [
        "/ (ext4 from /dev/sda1) is read-only, although it was mounted for writing"
    ]
    assert outcomes(judge([file_system_forced_read_only], named(node(forced=(root,)), node()))) == [Outcome.PASSED] * 2
