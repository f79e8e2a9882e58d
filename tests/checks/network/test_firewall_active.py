"""NC358: rules that stop what a job opens, or a firewall that must be feared to."""

from __future__ import annotations

from ncheck.facts.firewall import FirewallFacts
from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.judge import Judgement, judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.parse.packet_filters import Chain, Match, Rule
from ncheck_checks.network.firewall_active import firewall_active

HIDDEN = Unread("the rules of the packet filter are shown to root only", needs_root=True)
SSH_ONLY = Chain("inet lab", "in put", (Rule((Match("port", ("22",)),), "accept"),), "drop")
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


def test_rules_that_stop_a_port_of_the_range_are_named_with_their_chain() -> None:
    assert judged(FirewallFacts((), (SSH_ONLY,))).findings == [
        Finding("NC358", "firewall-active", Severity.WARNING, ("n1",),
                "new TCP connections from other nodes in 10.1.0.0/24 to port 40000 are stopped "
                "(inet lab, chain in put): ports 40000 to 60000 must be open between the nodes", (),
                "sudo nft insert rule inet lab 'in put' ip saddr 10.1.0.0/24 accept"),
    ]  # fmt: skip


def test_the_line_to_type_is_that_of_the_program_that_keeps_the_rules() -> None:
    old = Chain("iptables filter", "INPUT", (), "drop")
    fixes = [
        judged(FirewallFacts(managers, (chain,))).findings[0].fix
        for managers, chain in ((("firewalld",), SSH_ONLY), (("ufw",), old), ((), old))
    ]
    assert fixes == [
        "sudo firewall-cmd --permanent --zone=trusted --add-source=10.1.0.0/24 && sudo firewall-cmd --reload",
        "sudo ufw allow from 10.1.0.0/24",
        "sudo iptables -I INPUT -s 10.1.0.0/24 -j ACCEPT",
    ]


def test_an_active_service_whose_rules_are_hidden_from_this_user_is_named() -> None:
    (finding,) = judged(FirewallFacts(("firewalld",), HIDDEN)).findings
    must = "firewalld is active: TCP ports 40000 to 60000 must be open between the nodes"
    assert finding.message == f"{must}, and only root is shown whether they are"


def links(*broken: Link) -> LinkFacts:
    return LinkFacts((Reach("10.1.0.0/24", "10.1.0.2", 2, 2 - len(broken)),), broken, frozenset({"n1", "n3"}))


def test_it_is_silent_where_the_others_did_connect() -> None:
    elsewhere = Link("10.1.0.2", "n3", "10.1.0.3", "10.1.0.0/24", LinkCause.FILTERED)
    for firewall in (FirewallFacts((), (SSH_ONLY,)), FirewallFacts(("ufw",), HIDDEN)):
        assert judged(firewall, links()).findings == judged(firewall, links(elsewhere)).findings == []


def test_where_the_others_were_stopped_it_is_named_all_the_same() -> None:
    stopped = Link("10.1.0.2", "n1", "10.1.0.1", "10.1.0.0/24", LinkCause.FILTERED)
    assert len(judged(FirewallFacts(("ufw",), HIDDEN), links(stopped)).findings) == 1


def test_it_is_silent_where_rules_let_all_of_the_nodes_in() -> None:
    trusting = Chain("inet lab", "in", (Rule((Match("source", ("10.1.0.0/24",)),), "accept"),), "drop")
    assert {verdict.outcome for verdict in judged(FirewallFacts((), (trusting,))).verdicts} == {Outcome.PASSED}
    assert judged(FirewallFacts(("firewalld",), ())).findings == []


def test_rules_that_only_root_is_shown_are_skipped_where_no_service_is_active() -> None:
    verdicts = {verdict.node: verdict for verdict in judged(HIDDEN).verdicts}
    assert (verdicts["n1"].outcome, verdicts["n1"].needs_root) == (Outcome.SKIPPED, True)
    assert judged(Unread("systemctl hung")).verdicts[0].outcome is Outcome.UNKNOWN
