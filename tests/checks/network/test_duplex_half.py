"""NC351: a link that came up at half duplex."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.duplex_half import duplex_half

ETH0 = Interface(
    "eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.1.0.1", 24),), duplex="full"
)
SLAVE = replace(ETH0, name="eno2", kind=Kind.BOND_SLAVE, addresses=(), duplex="half", master="bond0")


def findings(*nics: Interface) -> list[Finding]:
    return judge([duplex_half], {"n1": {NicFacts: NicFacts(nics)}}).findings


def test_an_interface_at_half_duplex_is_named() -> None:
    assert findings(replace(ETH0, duplex="half")) == [
        Finding("NC351", "duplex-half", Severity.WARNING, ("n1",), "eth0 runs at half duplex", (),
                "sudo ethtool -s eth0 autoneg on"),
    ]  # fmt: skip


def test_a_bonds_slave_at_half_duplex_is_named() -> None:
    assert [finding.message for finding in findings(ETH0, SLAVE)] == ["eno2 runs at half duplex"]


def test_it_is_silent_where_links_are_full_or_their_drivers_do_not_say() -> None:
    assert findings(ETH0, replace(ETH0, name="eth1", kind=Kind.CLOUD, duplex="")) == []


def test_it_is_silent_about_ports_that_no_job_uses() -> None:
    idle = replace(ETH0, name="eth2", addresses=(), duplex="half")
    bmc = replace(ETH0, name="enx0a", driver="cdc_ether", duplex="half")
    assert findings(ETH0, idle, bmc, replace(SLAVE, running=False)) == []
