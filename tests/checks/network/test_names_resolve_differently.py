"""NC361: what a node's name leads to on the others."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.names import NameFacts, Resolved
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.network.names_resolve_differently import names_resolve_differently

OWN = {"n1": "10.1.0.1", "n2": "10.1.0.2", "n3": "10.1.0.3"}
NOWHERE = Resolved(error="Name or service not known")
DOCKER = Interface(
    "docker0", 9, Kind.CONTAINER_BRIDGE, up=True, running=True, mtu=1500, addresses=(Address("172.17.0.1", 16),)
)


def node(names: Mapping[str, Resolved], *ips: str) -> Facts:
    wire = Interface(
        "eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=tuple(Address(ip, 24) for ip in ips)
    )
    return {NameFacts: NameFacts(names), NicFacts: NicFacts((wire, DOCKER))}


def cluster(**other: Mapping[str, Resolved]) -> dict[str, Facts]:
    """Return three nodes that resolve one another, but for what is said of some."""
    right = {name: Resolved((ip,)) for name, ip in OWN.items()}
    return {name: node({**right, **other.get(name, {})}, ip) for name, ip in OWN.items()}


def judged(nodes: Mapping[str, Facts]) -> Judgement:
    return judge([names_resolve_differently], nodes)


def messages(nodes: Mapping[str, Facts]) -> dict[str, tuple[str, ...]]:
    return {finding.message: finding.nodes for finding in judged(nodes).findings}


def test_a_stale_line_on_one_node_is_named_with_the_address_that_nobody_has() -> None:
    assert judged(cluster(n1={"n2": Resolved(("10.9.0.7",))})).findings == [
        Finding("NC361", "names-resolve-differently", Severity.WARNING, ("n1",),
                "n2 resolves to 10.9.0.7, which is not its address", (), "getent ahosts n2", kind="look"),
    ]  # fmt: skip


def test_loopback_and_a_bridge_of_containers_are_no_addresses_of_another_node() -> None:
    wrong = cluster(n1={"n2": Resolved(("127.0.0.1",))}, n3={"n2": Resolved(("172.17.0.1",))})
    assert messages(wrong) == {
        "n2 resolves to 127.0.0.1, which is not its address": ("n1",),
        "n2 resolves to 172.17.0.1, which is not its address": ("n3",),
    }


def test_an_address_of_nobody_before_the_right_one_is_named() -> None:
    wrong = cluster(n1={"n2": Resolved(("10.1.0.99", "10.1.0.2"))}, n2={"n2": Resolved(("127.0.1.1", "10.1.0.2"))})
    assert messages(wrong) == {
        "n2 resolves first to 10.1.0.99, which is not its address, and only then to its own": ("n1",)
    }
    assert messages(cluster(n1={"n2": Resolved(("10.1.0.2", "10.1.0.99"))})) == {}


def test_names_that_only_some_nodes_resolve_are_reported_once_per_failing_node() -> None:
    nodes = cluster(n3={"n1": NOWHERE, "n2": NOWHERE})
    assert messages(nodes) == {"n[1-2] do not resolve: Name or service not known": ("n3",)}


def test_different_addresses_of_one_node_on_different_nodes_are_reported() -> None:
    nodes = {**cluster(n1={"n2": Resolved(("10.2.0.2",))}), "n2": node({}, "10.1.0.2", "10.2.0.2")}
    assert messages(nodes) == {
        "n2 resolves to different addresses: 10.2.0.2 on n1, 10.1.0.2 on n3 (1 to 1)": ("n1", "n3")
    }


def test_if_the_nodes_own_addresses_are_unknown_the_deviating_answer_is_reported() -> None:
    nodes: dict[str, Facts] = {
        **cluster(n1={"n2": Resolved(("10.9.0.7",))}),
        "n2": {NameFacts: Absent("x"), NicFacts: Absent("x")},
    }
    nodes["n4"] = node({"n2": Resolved(("10.1.0.2",))}, "10.1.0.4")
    assert messages(nodes) == {
        "n2 resolves to different addresses: 10.1.0.2 on n[3-4], 10.9.0.7 on n1 (2 to 1)": ("n1",)
    }


def test_a_resolver_that_does_not_answer_is_unknown_on_its_node() -> None:
    verdicts = {
        verdict.nodes[0]: verdict.outcome for verdict in judged(cluster(n3={"n1": Resolved(late=True)})).verdicts
    }
    assert verdicts == {"n1": Outcome.PASSED, "n2": Outcome.PASSED, "n3": Outcome.UNKNOWN}


def test_it_is_silent_where_all_names_lead_home_by_one_address_or_more() -> None:
    both = Resolved(("fd00::2", "10.1.0.2"))
    assert {verdict.outcome for verdict in judged(cluster(n1={"n2": both})).verdicts} == {Outcome.PASSED}


def test_it_is_silent_about_a_name_that_no_node_resolves() -> None:
    aliases = {"n1": NOWHERE, "n2": NOWHERE, "n3": NOWHERE}
    assert messages(cluster(n1=aliases, n2=aliases, n3=aliases)) == {}


def test_it_is_silent_where_a_nodes_own_name_is_loopback_on_itself() -> None:
    debian = {name: {name: Resolved(("127.0.1.1",))} for name in OWN}
    assert messages(cluster(**debian)) == {}


def test_nodes_that_are_listed_by_address_are_skipped() -> None:
    nodes: dict[str, Facts] = {
        ip: {NameFacts: Absent("listed by address"), NicFacts: NicFacts(())} for ip in OWN.values()
    }
    assert {verdict.outcome for verdict in judged(nodes).verdicts} == {Outcome.SKIPPED}
