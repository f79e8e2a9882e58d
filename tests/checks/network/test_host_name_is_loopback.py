"""NC360: a name by which a node finds none but itself."""

from __future__ import annotations

from checks.network.host_name_is_loopback import host_name_is_loopback
from doctor.engine import Facts, Judgement, judge
from doctor.model.fact import Unread
from doctor.model.facts import Address, HostNameFacts, Interface, Kind, ListingFacts, NicFacts, Resolved
from doctor.model.finding import Finding, Outcome, Severity

ETH0 = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.1.0.5", 24),))


def facts(resolved: Resolved, *nics: Interface, place: str = "nodes.txt:1") -> Facts:
    return {
        HostNameFacts: HostNameFacts("gpu5", resolved),
        ListingFacts: ListingFacts((place,)),
        NicFacts: NicFacts(nics or (ETH0,)),
    }


def judged(resolved: Resolved, place: str = "nodes.txt:1") -> Judgement:
    return judge([host_name_is_loopback], {"n1": facts(resolved, place=place)})


def test_debians_default_is_named_with_the_interface_for_gloo() -> None:
    assert judged(Resolved(("127.0.1.1",))).findings == [
        Finding("NC360", "host-name-is-loopback", Severity.WARNING, ("n1",), "its own host name is 127.0.1.1 on it", (),
                "export GLOO_SOCKET_IFNAME=eth0"),
    ]  # fmt: skip


def test_loopback_of_ipv6_is_named_too() -> None:
    messages = [finding.message for finding in judged(Resolved(("::1", "127.0.0.1"))).findings]
    assert messages == ["its own host name is ::1 on it"]


def test_a_name_that_does_not_resolve_on_its_own_node_is_named() -> None:
    messages = [finding.message for finding in judged(Resolved(error="Name or service not known")).findings]
    assert messages == ["its own host name does not resolve on it: Name or service not known"]


def test_without_an_interface_to_name_the_fix_shows_what_programs_get() -> None:
    lo = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536)
    findings = judge([host_name_is_loopback], {"n1": facts(Resolved(("127.0.1.1",)), lo)}).findings
    assert [finding.fix for finding in findings] == ["getent ahosts $(hostname)"]


def test_a_resolver_that_does_not_answer_is_unknown() -> None:
    assert [verdict.outcome for verdict in judged(Resolved(late=True)).verdicts] == [Outcome.UNKNOWN]
    nodes = {"n1": {**facts(Resolved(("10.1.0.5",))), HostNameFacts: Unread("no answer")}}
    assert [verdict.outcome for verdict in judge([host_name_is_loopback], nodes).verdicts] == [Outcome.UNKNOWN]


def test_it_is_silent_where_the_first_address_is_one_of_the_network() -> None:
    assert judged(Resolved(("10.1.0.5",))).findings == judged(Resolved(("10.1.0.5", "127.0.1.1"))).findings == []


def test_it_is_silent_about_a_machine_that_is_checked_alone() -> None:
    assert [verdict.outcome for verdict in judged(Resolved(("127.0.1.1",)), "local").verdicts] == [Outcome.SKIPPED]
