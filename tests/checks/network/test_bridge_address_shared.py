"""NC356: docker0 has 172.17.0.1 everywhere, which is worth knowing and no more."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.bridge_address_shared import bridge_address_shared


def bridge(name: str, ip: str, *, up: bool = True) -> Interface:
    return Interface(name, 3, Kind.CONTAINER_BRIDGE, up=up, running=False, mtu=1500, addresses=(Address(ip, 16),))


def node(number: int, *nics: Interface, boot: str = "") -> Facts:
    who = IdentityFacts(f"n{number}", boot or f"boot{number}", "net:[4026531840]", 1000)
    return {NicFacts: NicFacts(nics), IdentityFacts: who}


DOCKER = bridge("docker0", "172.17.0.1")


def test_one_finding_tells_all_bridges_and_their_nodes() -> None:
    virbr = bridge("virbr0", "192.168.122.1")
    cluster = {"n1": node(1, DOCKER, virbr), "n2": node(2, DOCKER, virbr), "n3": node(3, DOCKER), "n4": node(4)}
    assert judge([bridge_address_shared], cluster).findings == [
        Finding("NC356", "bridge-address-shared", Severity.INFO, ("n1", "n2", "n3"),
                "container bridges have the same address on several nodes; no job may use them: "
                "docker0 has 172.17.0.1, virbr0 has 192.168.122.1",
                ("docker0 has 172.17.0.1 on n[1-3]", "virbr0 has 192.168.122.1 on n[1-2]"), "ip -br address",
                kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_bridges_are_down_or_have_addresses_of_their_own() -> None:
    down = bridge("docker0", "172.17.0.1", up=False)
    cluster = {"n1": node(1, DOCKER), "n2": node(2, down), "n3": node(3, bridge("docker0", "172.30.3.1"))}
    assert {verdict.outcome for verdict in judge([bridge_address_shared], cluster).verdicts} == {Outcome.PASSED}


def test_it_is_silent_where_two_names_are_one_machine_and_on_one_node() -> None:
    assert judge([bridge_address_shared], {"n1": node(1, DOCKER), "n2": node(2, DOCKER, boot="boot1")}).findings == []
    verdicts = judge([bridge_address_shared], {"n1": node(1, DOCKER)}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED]
