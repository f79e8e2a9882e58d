"""NC363: a node whose lo is down."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.loopback_down import loopback_down

LO = Interface(
    "lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536,
    addresses=(Address("127.0.0.1", 8, "host"), Address("::1", 128, "host")),
)  # fmt: skip


def findings(*nics: Interface) -> list[Finding]:
    return judge([loopback_down], {"n1": {NicFacts: NicFacts(nics)}}).findings


def test_a_lo_that_is_down_is_named() -> None:
    assert findings(replace(LO, up=False, running=False)) == [
        Finding("NC363", "loopback-down", Severity.ERROR, ("n1",), "lo is down", (), "sudo ip link set lo up"),
    ]


def test_a_lo_without_its_address_is_named() -> None:
    assert [(found.message, found.fix) for found in findings(replace(LO, addresses=LO.addresses[1:]))] == [
        ("lo has no address 127.0.0.1", "sudo ip address add 127.0.0.1/8 dev lo"),
    ]


def test_it_is_silent_where_lo_is_up_whatever_else_is_down() -> None:
    eth9 = replace(LO, name="eth9", kind=Kind.PHYSICAL, up=False, addresses=())
    more = (*LO.addresses, Address("10.9.9.9", 32))
    assert findings(replace(LO, addresses=more), eth9) == []
