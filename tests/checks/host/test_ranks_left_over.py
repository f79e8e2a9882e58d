"""NC633: ranks of an earlier job that hold what the next one needs."""

from __future__ import annotations

from ncheck.facts.host_load import HostLoadFacts, LeftOver
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.ranks_left_over import ranks_left_over


def test_each_is_named_with_what_it_holds() -> None:
    ranks = (
        LeftOver(71, "python3", "TORCHELASTIC_RUN_ID", ("/dev/nvidia0", "port 29500")),
        LeftOver(72, "pt_main", "TORCHELASTIC_RUN_ID", ("/dev/nvidia1",)),
    )
    assert judge([ranks_left_over], {"n1": {HostLoadFacts: HostLoadFacts(8, left_over=ranks)}}).findings == [
        Finding("NC633", "ranks-left-over", Severity.WARNING, ("n1",),
                "2 ranks of an earlier job are still there without a launcher: pid 71, 72",
                ("pid 71 python3 (TORCHELASTIC_RUN_ID is set) holds /dev/nvidia0, port 29500",
                 "pid 72 pt_main (TORCHELASTIC_RUN_ID is set) holds /dev/nvidia1"),
                "ps -o pid,user,lstart,stat,args -p 71,72", kind="look",
                summary="ranks of an earlier job are left over"),
    ]  # fmt: skip


def test_none_is_well_and_what_cannot_be_seen_is_not_judged() -> None:
    seen, hidden = HostLoadFacts(8), HostLoadFacts(8, hidden=True)
    nodes: dict[str, Facts] = {"n1": {HostLoadFacts: seen}, "n2": {HostLoadFacts: hidden}}
    outcomes = [verdict.outcome for verdict in judge([ranks_left_over], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]
