"""NC645: data of which every node has its own copy."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.data_on_local_disks import data_on_local_disks

from .storage import CURRENT, DATA, DISK, named, node, outcomes

LOCAL = replace(DATA, on=DISK)


def test_it_says_that_the_copies_are_not_compared() -> None:
    assert judge([data_on_local_disks], {"n1": node(LOCAL), "n2": node(LOCAL)}).findings == [
        Finding("NC645", "data-on-local-disks", Severity.INFO, ("n1", "n2"),
                "each node has its own /data, on a local disk; its content is not compared", (),
                "du -s --apparent-size /data", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_the_data_is_shared_and_about_other_folders() -> None:
    assert outcomes(judge([data_on_local_disks], named(node(DATA), node(DATA)))) == [Outcome.PASSED] * 2
    assert outcomes(judge([data_on_local_disks], named(node(LOCAL), node(DATA)))) == [Outcome.PASSED] * 2
    local = node(replace(CURRENT, on=DISK))
    assert outcomes(judge([data_on_local_disks], named(local, local))) == [Outcome.PASSED] * 2
