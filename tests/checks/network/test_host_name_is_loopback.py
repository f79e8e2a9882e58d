"""NC360: a name by which a node finds none but itself."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.names import HostNameFacts, Resolved
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.network.host_name_is_loopback import host_name_is_loopback

ETH0 = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.1.0.5", 24),))


def facts(resolved: Resolved, *nics: Interface) -> Facts:
    return {
        EnvironmentFacts: EnvironmentFacts({}, {}),
        HostNameFacts: HostNameFacts("gpu5", resolved),
        LinkFacts: Absent("not asked"),
        IdentityFacts: Absent("not asked"),
        NicFacts: NicFacts(nics or (ETH0,)),
    }


OTHER = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.1.0.6", 24),))


def judged(resolved: Resolved, *nics: Interface) -> Judgement:
    well = facts(Resolved(("10.1.0.6",)), OTHER)
    return judge([host_name_is_loopback], {"n1": facts(resolved, *nics), "n2": well})


def test_debians_default_is_named_with_the_interface_for_gloo() -> None:
    assert judged(Resolved(("127.0.1.1",))).findings == [
        Finding("NC360", "host-name-is-loopback", Severity.WARNING, ("n1",),
                "its hostname resolves to 127.0.1.1 there", (), "ncheck plan nodes.txt", where="here", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_gloo_is_told_which_interface_to_use() -> None:
    told = {**facts(Resolved(("127.0.1.1",))), EnvironmentFacts: EnvironmentFacts({"GLOO_SOCKET_IFNAME": "eth0"}, {})}
    judgement = judge([host_name_is_loopback], {"n1": told, "n2": facts(Resolved(("10.1.0.6",)), OTHER)})
    assert judgement.findings == []
    assert [(one.outcome, one.reason) for one in judgement.verdicts] == [
        (Outcome.SKIPPED, "GLOO_SOCKET_IFNAME is set, so gloo does not look up the hostname"),
        (Outcome.PASSED, ""),
    ]


def test_loopback_of_ipv6_is_named_too() -> None:
    messages = [finding.message for finding in judged(Resolved(("::1", "127.0.0.1"))).findings]
    assert messages == ["its hostname resolves to ::1 there"]


def test_a_name_that_does_not_resolve_on_its_own_node_is_named() -> None:
    messages = [finding.message for finding in judged(Resolved(error="Name or service not known")).findings]
    assert messages == ["its hostname does not resolve there: Name or service not known"]


def test_without_an_interface_to_name_the_fix_shows_what_programs_get() -> None:
    lo = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536)
    findings = judged(Resolved(("127.0.1.1",)), lo).findings
    assert [finding.fix for finding in findings] == ["getent ahosts $(hostname)"]


def test_a_resolver_that_does_not_answer_is_unknown() -> None:
    outcomes = [verdict.outcome for verdict in judged(Resolved(late=True)).verdicts]
    assert outcomes == [Outcome.UNKNOWN, Outcome.PASSED]
    unread: Facts = {**facts(Resolved(("10.1.0.5",))), HostNameFacts: Unread("no answer")}
    nodes = {"n1": unread, "n2": facts(Resolved(("10.1.0.6",)), OTHER)}
    assert judge([host_name_is_loopback], nodes).verdicts[0].outcome is Outcome.UNKNOWN


def test_it_is_silent_where_the_first_address_is_one_of_the_network() -> None:
    assert judged(Resolved(("10.1.0.5",))).findings == judged(Resolved(("10.1.0.5", "127.0.1.1"))).findings == []


def test_it_is_silent_about_one_node_alone() -> None:
    verdicts = judge([host_name_is_loopback], {"n1": facts(Resolved(("127.0.1.1",)))}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SKIPPED]
