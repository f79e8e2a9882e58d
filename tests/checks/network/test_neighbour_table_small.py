"""NC354: a neighbour table too small for the addresses of the other nodes."""

from __future__ import annotations

from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.neighbour_table_small import neighbour_table_small


def node(number: int, nics: int, most: int, *, one_subnet: bool = False, version: int = 4) -> Facts:
    def address(card: int) -> Address:
        net = 0 if one_subnet else card
        if version == 6:
            return Address(f"fd00:0:0:{net:x}::{number + 1:x}:{card:x}", 64)
        return Address(f"10.{net}.{number // 100 + 100 * (card if one_subnet else 0)}.{number % 100 + 1}", 16)

    held = tuple(
        Interface(f"eth{card}", card + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(address(card),))
        for card in range(nics)
    )
    settings = NetSettingsFacts({"all": InterfaceSettings()}, (32768, 60999), neighbours={version: most})
    return {NicFacts: NicFacts(held), NetSettingsFacts: settings}


def test_a_table_that_the_other_nodes_fill_is_named_with_one_of_four_times_their_number() -> None:
    cluster = {f"n{number}": node(number, 8, 512) for number in range(100)}
    cluster["n7"] = node(7, 8, 4096)
    (finding,) = judge([neighbour_table_small], cluster).findings
    assert finding == Finding(
        "NC354", "neighbour-table-small", Severity.WARNING, tuple(f"n{n}" for n in range(100) if n != 7),
        "the IPv4 neighbour table has 512 entries; the other nodes need 792", (),
        "sudo sysctl -w net.ipv4.neigh.default.gc_thresh3=4096 net.ipv4.neigh.default.gc_thresh2=2048 "
        "net.ipv4.neigh.default.gc_thresh1=1024",
    )  # fmt: skip


def test_cards_in_one_subnet_each_keep_all_addresses_there() -> None:
    cluster = {f"n{number}": node(number, 2, 1024, one_subnet=True) for number in range(200)}
    messages = [finding.message for finding in judge([neighbour_table_small], cluster).findings]
    assert messages == ["the IPv4 neighbour table has 1024 entries; the other nodes need 796"]


def test_the_table_of_ipv6_is_one_of_its_own() -> None:
    cluster = {f"n{number}": node(number, 1, 16, version=6) for number in range(20)}
    (finding,) = judge([neighbour_table_small], cluster).findings
    assert finding.fix.startswith("sudo sysctl -w net.ipv6.neigh.default.gc_thresh3=128 ")


def test_it_is_silent_at_the_default_of_1024_for_a_usual_cluster() -> None:
    cluster = {f"n{number}": node(number, 2, 1024) for number in range(128)}
    assert {verdict.outcome for verdict in judge([neighbour_table_small], cluster).verdicts} == {Outcome.PASSED}


def test_a_container_is_shown_no_limit_and_is_skipped() -> None:
    hidden = NetSettingsFacts({"all": InterfaceSettings()}, (32768, 60999))
    cluster = {name: {**node(number, 1, 1), NetSettingsFacts: hidden} for number, name in enumerate(("n1", "n2"))}
    assert {verdict.outcome for verdict in judge([neighbour_table_small], cluster).verdicts} == {Outcome.SKIPPED}
