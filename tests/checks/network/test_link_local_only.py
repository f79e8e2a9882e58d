"""NC357: a wire that nobody gave an address."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import ListingFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.link_local_only import link_local_only

FE80 = Address("fe80::5e:10ff:fe00:1", 64, "link")
APIPA = Address("169.254.7.9", 16, "link")


def nic(name: str, *addresses: Address, kind: Kind = Kind.PHYSICAL) -> Interface:
    return Interface(name, 2, kind, up=True, running=True, mtu=1500, addresses=addresses)


def node(*nics: Interface, place: str = "nodes.txt:1") -> Facts:
    return {NicFacts: NicFacts(nics), ListingFacts: ListingFacts((place,))}


GOOD = tuple(
    node(nic("eth0", Address(f"10.1.0.{n}", 24)), nic("eth1", Address(f"10.2.0.{n}", 24), FE80)) for n in (1, 2)
)


def test_a_card_that_has_a_proper_address_on_the_other_nodes_is_named() -> None:
    sick = node(nic("eth0", Address("10.1.0.3", 24)), nic("eth1", APIPA, FE80))
    assert judge([link_local_only], {"n1": GOOD[0], "n2": GOOD[1], "n3": sick}).findings == [
        Finding("NC357", "link-local-only", Severity.WARNING, ("n3",),
                "eth1 has link-local addresses only: 169.254.7.9, fe80::5e:10ff:fe00:1", (),
                "ip -br address show dev eth1", kind="look"),
    ]  # fmt: skip


def test_a_node_with_no_other_address_is_named_even_alone() -> None:
    findings = judge([link_local_only], {"n1": node(nic("ens5", FE80))}).findings
    assert [finding.message for finding in findings] == ["ens5 has link-local addresses only: fe80::5e:10ff:fe00:1"]


def test_it_is_silent_about_spare_ports_ipoib_and_a_management_controllers_card() -> None:
    spare = (
        nic("eth2", FE80),
        nic("ib0", FE80, kind=Kind.INFINIBAND),
        replace(nic("enx0a", APIPA), driver="cdc_ether"),
    )
    cluster = {f"n{n}": node(nic("eth0", Address(f"10.1.0.{n}", 24)), *spare) for n in (1, 2, 3)}
    assert {verdict.outcome for verdict in judge([link_local_only], cluster).verdicts} == {Outcome.PASSED}


def test_it_is_silent_about_a_machine_that_is_checked_alone() -> None:
    verdicts = judge([link_local_only], {"localhost": node(nic("eth0", FE80), place="local")}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED]
