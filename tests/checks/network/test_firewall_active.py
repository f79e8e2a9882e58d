"""NC358: an input chain that is closed by default, or an active service whose rules this user cannot read."""

from __future__ import annotations

from ncheck.facts.firewall import FirewallFacts, InputChain
from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.network.firewall_active import firewall_active

HIDDEN = Unread("only root can read the firewall rules", needs_root=True)
CLOSED = InputChain("inet lab", "in put", "drop")
OPEN = FirewallFacts((), ())


def node(number: int, firewall: object = OPEN, links: object = None) -> Facts:
    wire = Interface(
        "eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(f"10.1.0.{number}", 24),)
    )
    return {
        FirewallFacts: firewall,
        NicFacts: NicFacts((wire,)),
        NetSettingsFacts: NetSettingsFacts({"all": InterfaceSettings()}, (40000, 60000)),
        LinkFacts: links or Absent("not asked"),
    }


def judged(firewall: object, links: object = None) -> Judgement:
    return judge([firewall_active], {"n1": node(1, firewall), "n2": node(2, links=links), "n3": node(3)})


def test_a_chain_that_drops_by_default_is_named() -> None:
    assert judged(FirewallFacts((), (CLOSED,))).findings == [
        Finding("NC358", "firewall-active", Severity.WARNING, ("n1",),
                "new connections that no rule allows are dropped (inet lab, chain in put): "
                "TCP ports 40000 to 60000 must be open between the nodes", (),
                "sudo nft insert rule inet lab 'in put' ip saddr 10.1.0.0/24 accept"),
    ]  # fmt: skip


def test_the_fix_uses_the_program_that_manages_the_rules() -> None:
    old = InputChain("iptables filter", "INPUT", "reject")
    fixes = [
        judged(FirewallFacts(services, (chain,))).findings[0].fix
        for services, chain in ((("firewalld",), CLOSED), (("ufw",), old), ((), old))
    ]
    assert fixes == [
        "sudo firewall-cmd --permanent --zone=trusted --add-source=10.1.0.0/24 && sudo firewall-cmd --reload",
        "sudo ufw allow from 10.1.0.0/24",
        "sudo iptables -I INPUT -s 10.1.0.0/24 -j ACCEPT",
    ]


def test_an_active_service_is_named_if_this_user_cannot_read_its_rules() -> None:
    (finding,) = judged(FirewallFacts(("firewalld",), HIDDEN)).findings
    assert finding.message == (
        "firewalld is active and only root can read its rules: TCP ports 40000 to 60000 must be open between the nodes"
    )


def links(*broken: Link) -> LinkFacts:
    return LinkFacts((Reach("10.1.0.0/24", "10.1.0.2", 2, 2 - len(broken)),), broken, frozenset({"n1", "n3"}))


def test_it_is_silent_if_the_other_nodes_connected() -> None:
    elsewhere = Link("10.1.0.2", "n3", "10.1.0.3", "10.1.0.0/24", LinkCause.FILTERED)
    for firewall in (FirewallFacts((), (CLOSED,)), FirewallFacts(("ufw",), HIDDEN)):
        assert judged(firewall, links()).findings == judged(firewall, links(elsewhere)).findings == []


def test_it_is_named_if_the_other_nodes_could_not_connect() -> None:
    stopped = Link("10.1.0.2", "n1", "10.1.0.1", "10.1.0.0/24", LinkCause.FILTERED)
    assert len(judged(FirewallFacts(("ufw",), HIDDEN), links(stopped)).findings) == 1


def test_it_is_silent_where_new_connections_are_accepted_by_default() -> None:
    docker = InputChain("iptables filter", "INPUT", "accept")
    assert {verdict.outcome for verdict in judged(FirewallFacts((), (docker,))).verdicts} == {Outcome.PASSED}
    assert judged(FirewallFacts(("firewalld",), ())).findings == []


def test_every_input_chain_must_accept_new_connections() -> None:
    (finding,) = judged(FirewallFacts((), (InputChain("inet a", "in", "accept"), CLOSED))).findings
    assert "(inet lab, chain in put)" in finding.message


def test_rules_that_only_root_can_read_are_skipped_if_no_service_is_active() -> None:
    verdicts = {verdict.nodes[0]: verdict for verdict in judged(HIDDEN).verdicts}
    assert (verdicts["n1"].outcome, verdicts["n1"].needs_root) == (Outcome.SKIPPED, True)
    assert judged(Unread("systemctl hung")).verdicts[0].outcome is Outcome.UNKNOWN
