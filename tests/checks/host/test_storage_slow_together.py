"""NC652: data that is slow when all nodes read."""

from __future__ import annotations

from ncheck.facts.storage_probe import DataRates, Rates, StorageProbeFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.storage_slow_together import storage_slow_together


def node(alone: float, together: float, *, direct: bool = True) -> Facts:
    rates = DataRates("/data", Rates(alone, direct=direct), Rates(together, direct=direct))
    return {StorageProbeFacts: StorageProbeFacts((rates,))}


def test_it_gives_the_figures_of_both() -> None:
    nodes = {"n1": node(900e6, 210e6), "n2": node(1000e6, 200e6)}
    assert judge([storage_slow_together], nodes).findings == [
        Finding("NC652", "storage-slow-together", Severity.INFO, ("n1", "n2"),
                "/data: 2 nodes at once read 205 MB/s each, and 950 MB/s while the others are quiet", (),
                "findmnt -T /data", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_the_rate_stays_and_where_the_cache_may_have_served_it() -> None:
    for facts in (node(900e6, 800e6), node(900e6, 10e6, direct=False)):
        judgement = judge([storage_slow_together], {"n1": facts, "n2": facts})
        assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 2
