"""NC304: NCCL's own rules, applied to what the node has, end at a virtual or dead interface."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_would_pick_virtual import nccl_would_pick_virtual

LO = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),))


def nic(name: str, index: int, kind: Kind = Kind.PHYSICAL, *, running: bool = True) -> Interface:
    return Interface(name, index, kind, up=True, running=running, mtu=1500, addresses=(Address(f"10.{index}.0.5", 24),))


def node(*nics: Interface, nccl: str | None = None, conf: str = "", **variables: str) -> dict[str, Facts]:
    files = {"/etc/nccl.conf": (conf,) if conf else Absent("not there")}
    return {
        "n1": {
            NicFacts: NicFacts((LO, *nics)),
            EnvironmentFacts: EnvironmentFacts(variables, files),
            LoadedNcclFacts: LoadedNcclFacts(nccl, "/x/libnccl.so.2") if nccl else Unread("no answer"),
            NcclPickFacts: Absent("not asked"),
            LinkFacts: Absent("not asked"),
            IdentityFacts: Absent("not asked"),
        },
        "n2": {
            NicFacts: NicFacts((LO, replace(ETH0, addresses=(Address("10.9.0.6", 24),)))),
            EnvironmentFacts: EnvironmentFacts({}, {}),
            LoadedNcclFacts: Absent("no NCCL"),
            NcclPickFacts: Absent("no NCCL"),
            LinkFacts: Absent("not asked"),
            IdentityFacts: Absent("not asked"),
        },
    }


ETH0 = nic("eth0", 9)
COMPOSE = nic("br-5b1d7c3e9f20", 3, Kind.CONTAINER_BRIDGE)


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([nccl_would_pick_virtual], nodes).verdicts[0].outcome


def test_a_bridge_that_comes_before_the_card_is_named_with_the_cards_name_to_set() -> None:
    assert judge([nccl_would_pick_virtual], node(COMPOSE, ETH0)).findings == [
        Finding("NC304", "nccl-would-pick-virtual", Severity.ERROR, ("n1",),
                "NCCL would pick br-5b1d7c3e9f20 (container-bridge): "
                "the first in the kernel's order except docker*, lo and virbr*", (),
                "ncheck plan nodes.txt", where="here", summary="NCCL would pick br-5b1d7c3e9f20"),
    ]  # fmt: skip


def test_excluding_docker0_alone_ends_at_lo() -> None:
    nodes = node(nic("docker0", 3, Kind.CONTAINER_BRIDGE), ETH0, NCCL_SOCKET_IFNAME="^docker0")
    messages = [finding.message for finding in judge([nccl_would_pick_virtual], nodes).findings]
    assert messages == ["NCCL would pick lo (loopback): NCCL_SOCKET_IFNAME=^docker0"]


def test_a_name_left_in_a_conf_file_that_no_interface_has_is_named() -> None:
    nodes = node(ETH0, conf="NCCL_SOCKET_IFNAME=ens5")
    messages = [finding.message for finding in judge([nccl_would_pick_virtual], nodes).findings]
    assert messages == ["NCCL would find no interface and stop: NCCL_SOCKET_IFNAME=ens5"]


def test_the_usb_card_of_a_management_controller_leads_nowhere() -> None:
    bmc = replace(nic("enx0a1b2c3d4e5f", 3), driver="cdc_ether")
    fixes = [finding.fix for finding in judge([nccl_would_pick_virtual], node(bmc, ETH0)).findings]
    assert fixes == ["ncheck plan nodes.txt"]


def test_old_releases_take_a_card_without_a_link_and_new_ones_do_not() -> None:
    dead = nic("eth1", 3, running=False)
    releases = ("2.21.5", "2.32.3")
    assert [outcome(node(dead, ETH0, nccl=nccl)) for nccl in releases] == [Outcome.FAILED, Outcome.PASSED]


def test_where_old_and_new_rules_part_and_the_release_is_not_known_the_verdict_is_unknown() -> None:
    nodes = node(nic("eth1", 3, running=False), ETH0)
    assert outcome(nodes) is Outcome.UNKNOWN
    nodes["n1"] = {**nodes["n1"], LoadedNcclFacts: Absent("no NCCL")}
    assert outcome(nodes) is Outcome.PASSED


def test_it_is_silent_where_docker_and_veth_come_before_the_card() -> None:
    veth, docker = nic("veth3f9a1c2", 11, Kind.VETH), nic("docker0", 3, Kind.CONTAINER_BRIDGE)
    assert outcome(node(docker, ETH0, veth)) is Outcome.PASSED


def test_it_is_silent_where_a_setting_mends_what_the_rules_would_do() -> None:
    assert outcome(node(COMPOSE, ETH0, NCCL_SOCKET_IFNAME="=eth0")) is Outcome.PASSED


def test_it_is_silent_and_skipped_where_one_machine_is_alone() -> None:
    assert outcome({"n1": node(COMPOSE)["n1"]}) is Outcome.SKIPPED


def test_the_line_to_type_names_the_network_that_carries() -> None:
    nodes = node(COMPOSE, nic("eth7", 7), ETH0)
    nodes["n2"] = {**nodes["n2"], NicFacts: NicFacts(tuple(
        replace(nic, addresses=(Address(f"10.{nic.index}.0.6", 24),)) for nic in (nic("eth7", 7), ETH0)
    ))}  # fmt: skip
    assert [finding.fix for finding in judge([nccl_would_pick_virtual], nodes).findings] == ["ncheck plan nodes.txt"]
    broken = Link("10.7.0.5", "n2", "10.7.0.6", "10.7.0.0/24", LinkCause.FILTERED)
    nodes["n1"] = {**nodes["n1"], LinkFacts: LinkFacts((), (broken,), frozenset({"n2"}))}
    nodes["n2"] = {
        **nodes["n2"],
        LinkFacts: LinkFacts((Reach("10.7.0.0/24", "10.7.0.6", 1, 1),), (), frozenset({"n1"})),
    }
    assert [finding.fix for finding in judge([nccl_would_pick_virtual], nodes).findings] == ["ncheck plan nodes.txt"]


def test_an_environment_that_could_not_be_read_is_unknown() -> None:
    nodes = node(ETH0)
    nodes["n1"] = {**nodes["n1"], EnvironmentFacts: Unread("no answer")}
    assert outcome(nodes) is Outcome.UNKNOWN


def asked(nodes: dict[str, Facts], answer: NcclPickFacts | Unread) -> dict[str, Facts]:
    return {**nodes, "n1": {**nodes["n1"], NcclPickFacts: answer}}


def test_nccls_own_answer_is_quoted() -> None:
    nodes = asked(node(COMPOSE, ETH0, nccl="2.28.3"), NcclPickFacts("10.3.0.5", "2.28.3"))
    (finding,) = judge([nccl_would_pick_virtual], nodes).findings
    assert finding.evidence == ("asked NCCL 2.28.3 itself",)


def test_if_rules_and_answer_differ_the_answer_counts_and_both_are_reported() -> None:
    healthy = asked(node(COMPOSE, ETH0, nccl="2.28.3"), NcclPickFacts("10.9.0.5", "2.28.3"))
    assert outcome(healthy) is Outcome.PASSED
    (finding,) = judge([nccl_would_pick_virtual], asked(node(ETH0), NcclPickFacts("127.0.0.1", "2.28.3"))).findings
    assert (finding.message, finding.evidence) == (
        "NCCL would pick lo (loopback): its own answer",
        (
            "asked NCCL 2.28.3 itself",
            "ncheck expected eth0 from NCCL's rules: the first in the kernel's order except docker*, lo and virbr*",
        ),
    )


def test_if_nccl_refuses_its_own_message_is_quoted() -> None:
    nodes = asked(
        node(ETH0, NCCL_SOCKET_IFNAME="ens5"), NcclPickFacts("", "2.28.3", "Bootstrap : no socket interface found")
    )
    (finding,) = judge([nccl_would_pick_virtual], nodes).findings
    assert finding.message == "NCCL would find no interface and stop: NCCL_SOCKET_IFNAME=ens5"
    assert finding.evidence == ("asked NCCL 2.28.3 itself: Bootstrap : no socket interface found",)


def test_an_address_that_no_interface_was_seen_to_have_is_no_pass() -> None:
    assert outcome(asked(node(ETH0), NcclPickFacts("10.8.8.8", "2.28.3"))) is Outcome.UNKNOWN


def test_of_link_local_addresses_the_scope_tells_the_interface() -> None:
    link = Address("fe80::1", 64, "link")
    bridge, wire = (replace(nic, addresses=(*nic.addresses, link)) for nic in (COMPOSE, ETH0))
    answers = (NcclPickFacts("fe80::1", "2.28.3", scope=scope) for scope in (3, 9))
    told = [
        judge([nccl_would_pick_virtual], asked(node(bridge, wire), answer)).findings[0].message for answer in answers
    ]
    assert told == [
        "NCCL would pick br-5b1d7c3e9f20 (container-bridge) at a link-local address: its own answer",
        "NCCL would pick eth0 (physical) at a link-local address: its own answer",
    ]


def test_a_rendezvous_tells_nothing_of_a_choice_and_the_rules_speak() -> None:
    nodes = node(COMPOSE, ETH0, NCCL_COMM_ID="10.9.0.1:4444")
    assert outcome(asked(nodes, NcclPickFacts("", "2.28.3", rendezvous="10.9.0.1:4444"))) is Outcome.PASSED


def test_a_value_of_one_character_is_ignored_and_reported() -> None:
    (finding,) = judge([nccl_would_pick_virtual], node(COMPOSE, ETH0, NCCL_SOCKET_IFNAME="e")).findings
    assert finding.message.endswith("virbr* (NCCL_SOCKET_IFNAME=e has one character and counts as unset)")


def test_an_nccl_that_did_not_answer_is_no_pass_and_its_rules_can_still_name_a_fault() -> None:
    silent = Unread("NCCL did not answer within 10 s")
    assert outcome(asked(node(ETH0, nccl="2.28.3"), silent)) is Outcome.UNKNOWN
    assert outcome(asked(node(COMPOSE, ETH0, nccl="2.28.3"), silent)) is Outcome.FAILED


def test_it_is_silent_where_there_is_no_nccl_to_ask_and_its_rules_end_at_the_card() -> None:
    nodes = node(ETH0)
    nodes["n1"] = {**nodes["n1"], LoadedNcclFacts: Absent("no NCCL"), NcclPickFacts: Absent("no NCCL")}
    assert outcome(nodes) is Outcome.PASSED


def test_an_address_that_other_nodes_show_too_leads_nowhere() -> None:
    nodes = node(nic("tmfifo_net0", 3, Kind.CLOUD), ETH0)
    nodes["n2"] = {**nodes["n1"], NicFacts: NicFacts((LO, nic("tmfifo_net0", 3, Kind.CLOUD), nic("eth1", 8)))}
    rule = "the first in the kernel's order except docker*, lo and virbr*"
    told = f"NCCL would pick tmfifo_net0 (cloud): {rule}; other nodes have this address too: 10.3.0.5"
    findings = judge([nccl_would_pick_virtual], nodes).findings
    assert [(finding.nodes, finding.message, finding.fix) for finding in findings] == [
        (("n1",), told, "ncheck plan nodes.txt"),
        (("n2",), told, "ncheck plan nodes.txt"),
    ]


def test_it_is_silent_about_a_machine_that_is_listed_twice() -> None:
    nodes = node(ETH0)
    twice = {**nodes["n1"], IdentityFacts: IdentityFacts("n1", "boot", "net:[1]", 0)}
    assert judge([nccl_would_pick_virtual], {"n1": twice, "n2": twice}).findings == []
