"""NC322: a value that is the name of an interface also matches another one."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.ifname_matches_more import ifname_matches_more

from tests.logins import line_changed

from .picked import OLD, alone, nic

ETH1, ETH10 = nic("eth1", 2), nic("eth10", 3)
ACTIVE = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand")


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([ifname_matches_more], nodes).verdicts[0].outcome


def test_eth1_takes_eth10_and_data_goes_over_both() -> None:
    assert judge([ifname_matches_more], alone(ETH1, ETH10, NCCL_SOCKET_IFNAME="eth1")).findings == [
        Finding("NC322", "ifname-matches-more", Severity.WARNING, ("n1",),
                "NCCL_SOCKET_IFNAME=eth1 in the environment: eth1 also matches eth10",
                ("NCCL would pick eth1 (physical): NCCL_SOCKET_IFNAME=eth1",),
                line_changed("NCCL_SOCKET_IFNAME", "=eth1")),
    ]  # fmt: skip


def test_where_eth1_is_down_the_ranks_would_meet_on_eth10() -> None:
    dead = nic("eth1", 2, running=False)
    (finding,) = judge([ifname_matches_more], alone(dead, ETH10, conf="NCCL_SOCKET_IFNAME=eth1")).findings
    assert finding.evidence == ("NCCL would pick eth10 (physical): NCCL_SOCKET_IFNAME=eth1",)
    assert finding.fix == "sudo sed -i 's/^NCCL_SOCKET_IFNAME=.*/NCCL_SOCKET_IFNAME==eth1/' /etc/nccl.conf"


def test_each_entry_of_a_list_is_looked_at() -> None:
    nodes = alone(ETH1, ETH10, nic("eno1", 4), nic("eno1.100", 5), NCCL_SOCKET_IFNAME="eth1,eno1,eno1.100")
    (finding,) = judge([ifname_matches_more], nodes).findings
    assert finding.message == "NCCL_SOCKET_IFNAME=eth1,eno1,eno1.100 in the environment: eth1 also matches eth10"


def test_it_is_silent_if_the_name_is_exact_or_a_prefix_is_intended() -> None:
    for value in ("=eth1", "eth", "eth10", "eth1,eth10", "^eth1"):
        assert outcome(alone(ETH1, ETH10, NCCL_SOCKET_IFNAME=value)) is Outcome.PASSED
    assert outcome(alone(ETH1, ETH10)) is Outcome.PASSED


def test_it_is_silent_where_what_is_taken_along_changes_nothing() -> None:
    bare = replace(ETH10, addresses=())
    assert outcome(alone(ETH1, bare, NCCL_SOCKET_IFNAME="eth1")) is Outcome.PASSED
    dead = nic("eth10", 3, running=False)
    assert outcome(alone(ETH1, dead, NCCL_SOCKET_IFNAME="eth1")) is Outcome.PASSED
    assert outcome(alone(ETH1, dead, NCCL_SOCKET_IFNAME="eth1", nccl=OLD)) is Outcome.FAILED


def test_it_is_silent_where_data_goes_over_infiniband_and_the_ranks_meet_where_they_should() -> None:
    nodes = alone(ETH1, ETH10, NCCL_SOCKET_IFNAME="eth1")
    nodes["n1"] = {**nodes["n1"], InfinibandFacts: InfinibandFacts((ACTIVE,), "ibstat")}
    assert outcome(nodes) is Outcome.PASSED
