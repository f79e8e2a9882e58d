"""NC609: a root that is read-only on some nodes is a disk that fails; on all nodes it is their design."""

from __future__ import annotations

from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.root_read_only import root_read_only

from .folders import folder, node

READ_ONLY = node(root=folder("/", writable=False, read_only=True))


def test_the_node_that_differs_is_named() -> None:
    assert judge([root_read_only], {"n1": node(), "n2": READ_ONLY, "n3": node()}).findings == [
        Finding("NC609", "root-read-only", Severity.ERROR, ("n2",), "the root file system is mounted read-only", (),
                "sudo dmesg | grep -iE 'remount|I/O error'", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_all_are_read_only_and_where_none_is() -> None:
    for nodes in ({"n1": READ_ONLY, "n2": READ_ONLY}, {"n1": node(), "n2": node()}):
        assert [verdict.outcome for verdict in judge([root_read_only], nodes).verdicts] == [Outcome.PASSED] * 2


def test_one_that_could_not_be_read_is_unknown() -> None:
    judgement = judge([root_read_only], {"n1": node(), "n2": node(root=Unread("/: Stale file handle"))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]
