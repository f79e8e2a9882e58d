"""Settings, bonds and names as nodes answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.arrivals import ARRIVALS, Arrival, ArrivalFacts
from ncheck.facts.bonds import BONDING, Bond, BondFacts, Slave, bonds
from ncheck.facts.learning import facts_of
from ncheck.facts.names import HOST_NAME, NAMES, HostNameFacts, NameFacts, Resolved
from ncheck.facts.net_settings import CONF, NET, SETTINGS, Conntrack, InterfaceSettings, NetSettingsFacts, net_settings
from ncheck.facts.nics import INTERFACES
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

TREE: dict[str, JsonValue] = {
    **{f"{NET}/ipv4/conf/{name}/{key}": "0\n" for name in ("all", "default", "lo", "bond0.100") for key in CONF},
    f"{NET}/ipv4/conf/all/rp_filter": "2\n",
    f"{NET}/ipv4/conf/bond0.100/arp_ignore": "1\n",
    f"{NET}/ipv4/ip_local_port_range": "32768\t60999\n",
    f"{NET}/ipv4/ip_local_reserved_ports": "8080,30000-32800\n",
    f"{NET}/ipv4/neigh/default/gc_thresh3": "1024\n",
    f"{NET}/netfilter/nf_conntrack_count": "17\n",
    f"{NET}/netfilter/nf_conntrack_max": "65536\n",
}


def settings(answered: Answered, tree: JsonValue) -> object:
    return facts_of(answered({SETTINGS: Reply(Status.OK, value=tree)}), [NetSettingsFacts])[NetSettingsFacts]


def test_settings_are_read_with_what_the_kernel_does_not_show_left_out(answered: Answered) -> None:
    off = InterfaceSettings()
    facts = settings(answered, TREE)
    assert facts == NetSettingsFacts(
        {"all": InterfaceSettings(rp_filter=2), "default": off, "lo": off,
         "bond0.100": InterfaceSettings(arp_ignore=1)},
        (32768, 60999), ((8080, 8080), (30000, 32800)), {4: 1024}, Conntrack(17, 65536),
    )  # fmt: skip
    assert isinstance(facts, NetSettingsFacts)
    assert facts.effective("bond0.100") == InterfaceSettings(rp_filter=2, arp_ignore=1)
    assert facts.ports == 60999 - 32800


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {**TREE, f"{NET}/ipv4/ip_local_port_range": {"error": "Permission denied"}},
        {**TREE, f"{NET}/ipv4/conf/lo/arp_filter": "many"},
        {path: text for path, text in TREE.items() if not path.endswith("/all/rp_filter")},
        {path: text for path, text in TREE.items() if not path.endswith("port_range")},
        None,
        [],
    ],
)
def test_settings_that_are_not_told_are_unread(answered: Answered, tree: JsonValue) -> None:
    assert isinstance(settings(answered, tree), Unread)


def test_a_machine_that_tracks_no_connection_says_so(answered: Answered) -> None:
    tree = {path: text for path, text in TREE.items() if "netfilter" not in path}
    facts = net_settings(answered({SETTINGS: Reply(Status.OK, value=tree)}))
    assert isinstance(facts, NetSettingsFacts)
    assert facts.conntrack is None


BOND = (
    "Bonding Mode: load balancing (xor)\nMII Status: up\n\nSlave Interface: eno1\nMII Status: up\nSpeed: 25000 Mbps\n"
)


def bonded(answered: Answered, tree: JsonValue, *, bond: bool = True) -> object:
    links: JsonValue = {"interfaces": [{"name": "bond0", "bond": bond}]}
    return bonds(answered({BONDING: Reply(Status.OK, value=tree), INTERFACES: Reply(Status.OK, value=links)}))


def test_a_bond_is_read_from_its_file(answered: Answered) -> None:
    one = Bond("bond0", "load balancing (xor)", up=True, slaves=(Slave("eno1", up=True, speed=25000),))
    assert bonded(answered, {"/proc/net/bonding/bond0": BOND}) == BondFacts((one,))


def test_no_bond_is_absent_and_a_bond_without_its_file_is_unread(answered: Answered) -> None:
    assert bonded(answered, {}, bond=False) == Absent("no bond")
    assert bonded(answered, {}) == Unread("/proc/net/bonding/bond0 cannot be read, although bond0 is a bond")


def test_a_host_name_leads_to_addresses_or_to_an_error_or_is_late(answered: Answered) -> None:
    told: list[JsonValue] = [{"addresses": ["127.0.1.1"]}, {"error": "Name or service not known"}, {"late": True}]
    wanted = (Resolved(("127.0.1.1",)), Resolved(error="Name or service not known"), Resolved(late=True))
    for said, resolved in zip(told, wanted, strict=True):
        evidence = answered({HOST_NAME: Reply(Status.OK, value={"name": "gpu01", "leads_to": said})})
        assert facts_of(evidence, [HostNameFacts])[HostNameFacts] == HostNameFacts("gpu01", resolved)


@pytest.mark.parametrize("said", [{}, {"addresses": ["gpu02; reboot"]}, {"addresses": None}, "10.0.0.1"])
def test_what_is_no_address_is_not_taken_for_one(answered: Answered, said: JsonValue) -> None:
    evidence = answered({NAMES: Reply(Status.OK, value={"names": {"gpu02": said}})})
    assert isinstance(facts_of(evidence, [NameFacts])[NameFacts], Unread)


def test_a_name_that_resolves_to_nothing_is_an_error_and_a_node_that_is_asked_for_none_is_absent(
    answered: Answered,
) -> None:
    evidence = answered({NAMES: Reply(Status.OK, value={"names": {"gpu02": {"addresses": []}}})})
    nothing = Resolved(error="it resolves to no address")
    assert facts_of(evidence, [NameFacts])[NameFacts] == NameFacts({"gpu02": nothing})
    spared = answered({NAMES: Reply(Status.NOT_ASKED, reason="listed by address")})
    assert facts_of(spared, [NameFacts])[NameFacts] == Absent("listed by address")
    missing = answered({NAMES: Reply(Status.MISSING, reason="?")})
    assert isinstance(facts_of(missing, [NameFacts])[NameFacts], Unread)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"interface": "eth1", "address": "10.1.0.6", "source": "10.1.0.9", "taken": False},
         ArrivalFacts((Arrival("eth1", "10.1.0.6", "10.1.0.9", taken=False),))),
        ({"interface": "eth1", "address": "10.1.0.6", "source": "10.1.0.9", "taken": None}, None),
        ({"interface": "eth1", "address": "10.1.0.6", "source": "x; reboot", "taken": True}, None),
        ({"interface": "eth1", "address": "10.1.0.6", "taken": True}, None),
    ],
)  # fmt: skip
def test_an_arrival_is_taken_or_not_and_nothing_between(
    answered: Answered, said: JsonValue, wanted: ArrivalFacts | None
) -> None:
    fact = facts_of(answered({ARRIVALS: Reply(Status.OK, value={"arrivals": [said]})}), [ArrivalFacts])[ArrivalFacts]
    assert fact == wanted if wanted else isinstance(fact, Unread)
