"""NC323: a list of what to avoid, without lo."""

from __future__ import annotations

from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.ifname_lets_lo_in import ifname_lets_lo_in

from tests.logins import line_changed

from .picked import alone, docker, nic

ETH0 = nic("eth0", 2)


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([ifname_lets_lo_in], nodes).verdicts[0].outcome


def test_a_list_that_avoids_docker0_alone_lets_lo_in() -> None:
    assert judge([ifname_lets_lo_in], alone(ETH0, docker(3), NCCL_SOCKET_IFNAME="^docker0")).findings == [
        Finding("NC323", "ifname-lets-lo-in", Severity.WARNING, ("n1",),
                "NCCL_SOCKET_IFNAME=^docker0 in the environment excludes docker0, but not lo", (),
                line_changed("NCCL_SOCKET_IFNAME", "^lo,docker0")),
    ]  # fmt: skip


def test_an_exact_list_stays_exact_and_a_file_is_changed_where_it_is() -> None:
    nodes = alone(ETH0, docker(3), conf="NCCL_SOCKET_IFNAME=^=docker0,virbr0")
    assert [finding.fix for finding in judge([ifname_lets_lo_in], nodes).findings] == [
        "sudo sed -i 's/^NCCL_SOCKET_IFNAME=.*/NCCL_SOCKET_IFNAME=^=lo,docker0,virbr0/' /etc/nccl.conf"
    ]


def test_it_is_silent_where_lo_is_left_out_or_nothing_is_set() -> None:
    for value in ("^lo,docker", "^docker,lo", "^=lo,docker0", "^l", "eth0", ""):
        assert outcome(alone(ETH0, docker(3), NCCL_SOCKET_IFNAME=value)) is Outcome.PASSED


def test_it_is_silent_where_lo_was_asked_for_by_name() -> None:
    assert outcome(alone(ETH0, NCCL_SOCKET_IFNAME="=lo")) is Outcome.PASSED


def test_it_is_silent_where_only_ipv6_counts_of_which_lo_has_none() -> None:
    nodes = alone(nic("eth0", 2, "fd00::5"), NCCL_SOCKET_IFNAME="^docker0", NCCL_SOCKET_FAMILY="AF_INET6")
    assert outcome(nodes) is Outcome.PASSED
