"""NC425: a link that went down while ncheck ran, and no link that did so before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.error_counters import LaterErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.nics import Interface, Kind, NicFacts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.link_lost_during_run import link_lost_during_run

from .counted import PORT, node, without_hca

CHECK = [link_lost_during_run]


def test_a_link_that_went_down_during_the_run_is_an_error() -> None:
    well, ill = node({"link_downed": 3}, {"link_downed": 3}), node({"link_downed": 3}, {"link_downed": 5})
    line = "link_downed +2 in 64 s (0.0312 per second, 12 GB received, 12 GB sent)"
    assert judge(CHECK, {"n1": well, "n2": ill}).findings == [
        Finding("NC425", "link-lost-during-run", Severity.ERROR, ("n2",),
                f"mlx5_0:1 lost its link during the run: {line}", (f"n2: mlx5_0:1: {line}",),
                "grep -H . /sys/class/infiniband/mlx5_0/ports/1/*counters/*", kind="look",
                summary="mlx5_0:1 lost its link during the run"),
    ]  # fmt: skip


def test_one_node_alone_is_judged() -> None:
    assert [found.nodes for found in judge(CHECK, {"n1": node({}, {"link_downed": 1})}).findings] == [("n1",)]


def test_nodes_with_the_same_port_are_one_finding() -> None:
    judgement = judge(CHECK, {"n1": node({}, {"link_downed": 1}), "n2": node({}, {"link_downed": 2})})
    assert [(found.nodes, found.message) for found in judgement.findings] == [
        (("n1", "n2"), "mlx5_0:1 lost its link during the run")
    ]


def test_a_network_card_without_carrier_is_reported_where_no_hca_is() -> None:
    (found,) = judge(CHECK, {"n1": without_hca({}, {"carrier_down_count": 1})}).findings
    assert (found.summary, found.fix) == ("eth0 lost its link during the run", "ip -s -s link show dev eth0")


def test_the_members_of_a_bond_beneath_a_roce_port_count() -> None:
    lag = replace(PORT, hca="mlx5_bond_0", link_layer="Ethernet", netdev="bond0")
    member = Interface("eth2", 4, Kind.BOND_SLAVE, up=True, running=True, mtu=9000, master="bond0")
    facts = {**node({}, {"carrier_down_count": 1}, lag, name="eth2"), NicFacts: NicFacts((member,))}
    (found,) = judge(CHECK, {"n1": facts}).findings
    assert found.summary == "eth2 lost its link during the run"


def test_the_cards_count_where_a_job_cannot_use_roce() -> None:
    ice = replace(PORT, hca="irdma0", link_layer="Ethernet", netdev="eth5")
    facts = {**node({}, {"carrier_down_count": 1}, ice, name="eth0"), LibraryFacts: LibraryFacts("lost", NO_HCA)}
    assert [found.summary for found in judge(CHECK, {"n1": facts}).findings] == ["eth0 lost its link during the run"]


def test_it_is_silent_about_what_was_counted_before_and_about_ports_that_no_job_uses() -> None:
    before = node({"link_downed": 255 - 1}, {"link_downed": 255 - 1})
    spare = node({}, {"link_downed": 4}, replace(PORT, state="Down"))
    management = node({}, {"carrier_down_count": 4}, replace(PORT, state="Down"), name="mgmt0")
    unaddressed = without_hca({}, {"carrier_down_count": 4}, name="eth9")
    judgement = judge(CHECK, {"n1": before, "n2": spare, "n3": management, "n4": unaddressed})
    assert judgement.findings == []
    assert [verdict.outcome.value for verdict in judgement.verdicts] == ["passed", "skipped", "skipped", "skipped"]


def test_a_counter_that_was_set_to_0_meanwhile_shows_at_least_what_it_counted_since() -> None:
    (found,) = judge(CHECK, {"n1": node({"link_downed": 9}, {"link_downed": 2})}).findings
    assert "link_downed +2 in 64 s" in found.message
    assert judge(CHECK, {"n1": node({"link_downed": 9}, {})}).findings == []


def test_a_counter_that_has_stood_at_its_largest_value_for_years_is_skipped() -> None:
    (verdict,) = judge(CHECK, {"n1": node({"link_downed": 255}, {"link_downed": 255})}).verdicts
    assert (verdict.outcome, verdict.reason) == (
        Outcome.SKIPPED,
        "link_downed of mlx5_0:1 is at its largest value and cannot grow (sudo perfquery -R sets it to 0)",
    )


def test_a_counter_beside_it_that_grows_is_reported() -> None:
    ill = node({"link_downed": 255}, {"link_downed": 255, "carrier_down_count": 1})
    (found,) = judge(CHECK, {"n1": ill}).findings
    assert "carrier_down_count +1" in found.message


@pytest.mark.parametrize("counters", [(18, 17), (17, 18)])
def test_a_counter_that_one_look_could_not_read_is_no_proof(counters: tuple[int, int]) -> None:
    first, later = node(counters=counters[0]), node(after={"link_downed": 9}, counters=counters[1])
    ill = {**first, LaterErrorCountersFacts: later[LaterErrorCountersFacts]}
    (verdict,) = judge(CHECK, {"n1": ill}).verdicts
    assert (verdict.outcome, verdict.reason) == (
        Outcome.UNKNOWN, "not all counters of mlx5_0:1 could be read twice",
    )  # fmt: skip


def test_a_port_that_is_gone_at_the_end_or_a_second_look_that_failed_is_unknown() -> None:
    gone = {**node(), LaterErrorCountersFacts: LaterErrorCountersFacts(74.0, {})}
    unread = {**node(), LaterErrorCountersFacts: Unread("the agent's later-error-counters: lost", unanswered=True)}
    judgement = judge(CHECK, {"n1": gone, "n2": unread, "n3": node()})
    assert [(verdict.outcome.value, verdict.reason) for verdict in judgement.verdicts] == [
        ("unknown", "mlx5_0:1 was no longer there at the end of the run"),
        ("unknown", "the agent's later-error-counters: lost"),
        ("passed", ""),
    ]


def test_a_port_whose_counters_are_not_there_is_unknown() -> None:
    (verdict,) = judge(CHECK, {"n1": node(name="mlx5_1:1")}).verdicts
    assert (verdict.outcome.value, verdict.reason) == ("unknown", "the counters of mlx5_0:1 could not be read")


def test_a_port_counts_where_ibstat_fails_too() -> None:
    unread = Unread("ibstat failed")
    ill = {**node({}, {"link_downed": 1}), InfinibandFacts: unread}
    unsure = {**without_hca({}, {}), InfinibandFacts: unread, NicFacts: unread}
    judgement = judge(CHECK, {"n1": ill, "n2": unsure})
    assert [(verdict.nodes[0], verdict.outcome.value) for verdict in judgement.verdicts] == [
        ("n1", "failed"), ("n2", "unknown"),
    ]  # fmt: skip


def test_a_port_that_counts_nothing_is_skipped() -> None:
    (verdict,) = judge(CHECK, {"n1": node(counters=0)}).verdicts
    assert (verdict.outcome.value, verdict.reason) == (
        "skipped",
        "no port or network card that a job uses counts errors",
    )


def test_a_node_that_was_not_asked_again_is_skipped() -> None:
    nothing = {**node(), LaterErrorCountersFacts: Absent("no InfiniBand or RoCE port, and no network card")}
    assert [verdict.outcome.value for verdict in judge(CHECK, {"n1": nothing}).verdicts] == ["skipped"]
