"""NC321: the interface that a variable names is not there, and why that is so."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.ifname_matches_nothing import ifname_matches_nothing

from tests.logins import line_changed, line_removed

from .picked import LO, NEW, OLD, alone, docker, nic

ETH0 = nic("eth0", 2)


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([ifname_matches_nothing], nodes).verdicts[0].outcome


def told(nodes: dict[str, Facts]) -> list[tuple[str, str]]:
    return [(finding.message, finding.fix) for finding in judge([ifname_matches_nothing], nodes).findings]


def test_an_unknown_interface_name_is_reported_with_the_existing_ones() -> None:
    assert judge([ifname_matches_nothing], alone(ETH0, docker(3), NCCL_SOCKET_IFNAME="ens5")).findings == [
        Finding("NC321", "ifname-matches-nothing", Severity.ERROR, ("n1",),
                "NCCL_SOCKET_IFNAME=ens5 in the environment matches no interface: "
                "no interface is named ens5: there are eth0, docker0", (), line_changed("NCCL_SOCKET_IFNAME", "=eth0")),
    ]  # fmt: skip


WRONG = [
    ("10.2.0.5", "10.2.0.5 is an address (it belongs to eth0): use interface names, not addresses"),
    ("10.2.0.0/24", "10.2.0.0/24 is an address (it belongs to eth0): use interface names, not addresses"),
    ("192.0.2.1", "192.0.2.1 is an address: use interface names, not addresses"),
    (" eth0", "the blank in ' eth0' counts as part of the name"),
    ("ETH0", "ETH0 is not eth0: names are case-sensitive"),
    ('"eth0"', 'the quotation marks in "eth0" count as part of the name'),
    ("=^eth0", "in ^eth0 the ^ counts as part of the name: ^, = and ^= only work before the whole list"),
    ("^lo,eth", "it excludes every interface here"),
    ("ens5,ens6", "no interface is named ens5: there are eth0; no interface is named ens6: there are eth0"),
]


@pytest.mark.parametrize(("value", "why"), WRONG)
def test_the_error_in_a_value_is_reported(value: str, why: str) -> None:
    ((message, _),) = told(alone(ETH0, NCCL_SOCKET_IFNAME=value))
    assert message == f"NCCL_SOCKET_IFNAME={value} in the environment matches no interface: {why}"


def test_a_line_in_a_file_is_changed_there() -> None:
    ((message, fix),) = told(alone(ETH0, conf="NCCL_SOCKET_IFNAME=ens5"))
    assert message.startswith("NCCL_SOCKET_IFNAME=ens5 in /etc/nccl.conf matches no interface")
    assert fix == "sudo sed -i 's/^NCCL_SOCKET_IFNAME=.*/NCCL_SOCKET_IFNAME==eth0/' /etc/nccl.conf"


def test_an_interface_that_is_down_is_none_for_a_new_release_and_one_for_an_old_one() -> None:
    dead = nic("eth1", 3, running=False)
    ((message, _),) = told(alone(ETH0, dead, nccl=NEW, NCCL_SOCKET_IFNAME="=eth1"))
    assert message == "NCCL_SOCKET_IFNAME==eth1 in the environment matches no interface: eth1 exists but is down"
    assert outcome(alone(ETH0, dead, nccl=OLD, NCCL_SOCKET_IFNAME="=eth1")) is Outcome.PASSED
    assert outcome(alone(ETH0, dead, nccl=None, NCCL_SOCKET_IFNAME="=eth1")) is Outcome.PASSED


def test_an_address_family_that_the_interface_lacks_is_reported() -> None:
    ((message, _),) = told(alone(ETH0, NCCL_SOCKET_IFNAME="eth0", NCCL_SOCKET_FAMILY="AF_INET6"))
    assert message.endswith("matches no interface: eth0 exists but has no IPv6 address")


def test_gloo_wants_exact_names_and_each_of_its_list() -> None:
    ((message, fix),) = told(alone(ETH0, GLOO_SOCKET_IFNAME="eth0,eth"))
    assert message == (
        "GLOO_SOCKET_IFNAME=eth0,eth in the environment names an interface that does not exist: "
        "eth is only part of a name: gloo matches no prefixes"
    )
    assert fix == line_changed("GLOO_SOCKET_IFNAME", "eth0")


def test_where_no_name_can_be_proposed_the_variable_is_taken_away() -> None:
    assert [fix for _, fix in told(alone(docker(2), NCCL_SOCKET_IFNAME="eth0", GLOO_SOCKET_IFNAME="eth0"))] == [
        line_removed("NCCL_SOCKET_IFNAME"), line_removed("GLOO_SOCKET_IFNAME"),
    ]  # fmt: skip


def test_a_file_that_a_node_names_is_no_command_in_the_line_to_type() -> None:
    path = "/opt/$(reboot)/.nccl.conf"
    nodes = alone(ETH0)
    nodes["n1"] = {**nodes["n1"], EnvironmentFacts: EnvironmentFacts({}, {path: ("NCCL_SOCKET_IFNAME=ens5",)})}
    ((_, fix),) = told(nodes)
    assert fix == "sed -i 's/^NCCL_SOCKET_IFNAME=.*/NCCL_SOCKET_IFNAME==eth0/' '/opt/$(reboot)/.nccl.conf'"


def test_it_is_silent_where_the_value_takes_something_or_is_none() -> None:
    assert outcome(alone(ETH0)) is Outcome.PASSED
    for value in ("eth", "=eth0", "^lo,docker", "eth9,eth0", "e", ""):
        assert outcome(alone(ETH0, NCCL_SOCKET_IFNAME=value)) is Outcome.PASSED
    for value in ("eth0", "lo,eth0", "e", ""):
        assert outcome(alone(ETH0, GLOO_SOCKET_IFNAME=value)) is Outcome.PASSED


def test_a_machine_with_lo_only_says_so() -> None:
    nodes = alone(NCCL_SOCKET_IFNAME="eth0")
    nodes["n1"] = {**nodes["n1"], NicFacts: NicFacts((LO,))}
    ((message, _),) = told(nodes)
    assert message.endswith("no interface is named eth0: there is only lo")
