"""NC614: a network file system that most nodes can write to."""

from __future__ import annotations

from ncheck.facts.mounts import Mount, MountFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.shared_mount_read_only import shared_mount_read_only


def node(*, read_only: bool = False) -> Facts:
    return {MountFacts: MountFacts({"/data": Mount("lustre", read_only)})}


def test_the_node_that_cannot_write_is_named() -> None:
    assert judge([shared_mount_read_only], {"n1": node(), "n2": node(read_only=True), "n3": node()}).findings == [
        Finding("NC614", "shared-mount-read-only", Severity.WARNING, ("n2",),
                "/data is mounted read-only here, and for writing on other nodes", (),
                "sudo mount -o remount,rw /data"),
    ]  # fmt: skip


def test_it_is_silent_where_most_are_read_only_by_design() -> None:
    nodes = {"n1": node(), "n2": node(read_only=True), "n3": node(read_only=True)}
    for healthy in (nodes, {"n1": node(), "n2": node()}):
        outcomes = {verdict.outcome for verdict in judge([shared_mount_read_only], healthy).verdicts}
        assert outcomes == {Outcome.PASSED}
