"""NC651: a node that reads far slower than its peers."""

from __future__ import annotations

from ncheck.facts.storage_probe import DataRates, Rates, StorageProbeFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.storage_slow_on_node import storage_slow_on_node

FAST = Rates(900e6, 3000.0, 20000.0, direct=True)


def node(alone: Rates | Unread = FAST, together: Rates | Unread = FAST) -> Facts:
    return {StorageProbeFacts: StorageProbeFacts((DataRates("/data", alone, together),))}


def outcomes(*nodes: Facts) -> list[Outcome]:
    judgement = judge([storage_slow_on_node], {f"n{number}": facts for number, facts in enumerate(nodes, 1)})
    return [verdict.outcome for verdict in judgement.verdicts]


def test_the_node_is_named_with_its_figures_and_those_of_the_others() -> None:
    slow = node(Rates(35e6, 3000.0, 20000.0, direct=True), Rates(30e6, 2900.0, 19000.0, direct=True))
    judgement = judge([storage_slow_on_node], {"n1": node(), "n2": slow, "n3": node(), "n4": node()})
    assert judgement.findings == [
        Finding("NC651", "storage-slow-on-node", Severity.WARNING, ("n2",),
                "/data: 35 MB/s at its turn and 30 MB/s with all nodes; "
                "the median of the others is 900 MB/s and 900 MB/s",
                (), "findmnt -T /data", kind="look"),
    ]  # fmt: skip


def test_a_node_must_be_slow_both_times_and_among_enough_others() -> None:
    slow = Rates(35e6, 30.0, 200.0, direct=True)
    assert outcomes(node(), node(alone=slow), node(together=slow), node()) == [Outcome.PASSED] * 4
    assert outcomes(node(), node(slow, slow)) == [Outcome.PASSED] * 2
    assert outcomes(node(slow, slow), node(slow, slow), node(slow, slow)) == [Outcome.PASSED] * 3


def test_what_the_page_cache_may_have_served_and_what_was_too_little_is_not_compared() -> None:
    cold, warm = Rates(35e6), Rates(9e9)
    assert outcomes(node(cold, cold), node(warm, warm), node(warm, warm)) == [Outcome.PASSED] * 3


def test_what_was_not_measured_is_unknown_and_skipped_where_nobody_asked() -> None:
    late = node(Unread("reading did not end in time"))
    assert outcomes(node(), late, node()) == [Outcome.PASSED, Outcome.UNKNOWN, Outcome.PASSED]
    absent: Facts = {StorageProbeFacts: Absent("no --storage-probe")}
    assert outcomes(absent, absent) == [Outcome.SKIPPED] * 2
