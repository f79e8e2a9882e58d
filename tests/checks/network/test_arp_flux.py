"""NC353: two cards in one subnet, and either answers for both."""

from __future__ import annotations

import pytest
from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.arp_flux import arp_flux

OFF = InterfaceSettings()


def nic(name: str, index: int, ip: str) -> Interface:
    return Interface(name, index, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),))


PAIR = (nic("eth0", 2, "10.1.0.1"), nic("eth1", 3, "10.1.0.2"))


def findings(nics: tuple[Interface, ...], **conf: InterfaceSettings) -> list[Finding]:
    settings = NetSettingsFacts({"all": OFF, **conf}, (32768, 60999))
    judgement = judge([arp_flux], {"n1": {NicFacts: NicFacts(nics), NetSettingsFacts: settings}})
    assert {verdict.outcome for verdict in judgement.verdicts} <= {Outcome.PASSED, Outcome.FAILED}
    return judgement.findings


def test_two_cards_in_one_subnet_with_the_kernels_defaults_are_named() -> None:
    assert findings(PAIR, eth0=OFF, eth1=OFF) == [
        Finding("NC353", "arp-flux", Severity.WARNING, ("n1",),
                "each of eth0 and eth1 answers ARP requests for all addresses in 10.1.0.0/24", (),
                "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"),
    ]  # fmt: skip


def test_arp_ignore_alone_or_on_one_card_alone_is_not_enough() -> None:
    apart = InterfaceSettings(arp_ignore=1, arp_announce=2)
    assert len(findings(PAIR, all=InterfaceSettings(arp_ignore=1), eth0=OFF, eth1=OFF)) == 1
    assert len(findings(PAIR, eth0=apart, eth1=OFF)) == 1


@pytest.mark.parametrize(
    "settings",
    [InterfaceSettings(arp_ignore=1, arp_announce=2), InterfaceSettings(arp_filter=1)],
    ids=["ignore and announce", "filter"],
)
def test_it_is_silent_where_each_card_answers_for_itself(settings: InterfaceSettings) -> None:
    assert findings(PAIR, all=settings, eth0=OFF, eth1=OFF) == []
    assert findings(PAIR, eth0=settings, eth1=settings) == []


def test_it_is_silent_where_each_card_has_a_subnet_of_its_own_or_two_addresses_on_one() -> None:
    assert findings((PAIR[0], nic("eth1", 3, "10.2.0.1"))) == []
    two = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500,
                    addresses=(Address("10.1.0.1", 24), Address("10.1.0.9", 24)))  # fmt: skip
    assert findings((two,), eth0=OFF) == []
