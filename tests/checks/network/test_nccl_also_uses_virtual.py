"""NC337: besides a good first interface, NCCL's TCP transport uses one that no other node is behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts, with_uplinks
from ncheck.facts.routes import RouteFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_also_uses_virtual import nccl_also_uses_virtual

NOT_ASKED = Absent("not asked")
LO = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),))
ACTIVE = InfinibandFacts((HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand"),), "sysfs")


def nic(name: str, index: int, *ips: str, kind: Kind = Kind.PHYSICAL, running: bool = True) -> Interface:
    """Make an interface; an address that is fe80::... is link-local."""
    held = tuple(Address(ip, 64, "link") if ip.startswith("fe80") else Address(ip, 24) for ip in ips)
    return Interface(name, index, kind, up=True, running=running, mtu=1500, addresses=held)


def veth(number: int, *ips: str) -> Interface:
    return nic("veth3f9a1c2", 9, *(ips or (f"fe80::{number}",)), kind=Kind.VETH)


BRIDGE = nic("br-5b1d7c3e9f20", 7, "172.18.0.1", kind=Kind.CONTAINER_BRIDGE)


def node(number: int, *nics: Interface, **changed: object) -> Facts:
    """Return a node with eno1 and these interfaces; `changed`: facts by name, and NCCL's variables."""
    wire = nic("eno1", 2, f"10.0.0.{number}", f"fe80::1:{number}")
    variables = {name: value for name, value in changed.items() if name.startswith("NCCL_")}
    facts: Facts = {
        NicFacts: NicFacts((LO, wire, *nics)),
        EnvironmentFacts: EnvironmentFacts(variables, {}),  # type: ignore[arg-type]
        LoadedNcclFacts: LoadedNcclFacts("2.28.3", "/x/libnccl.so.2"),
        InfinibandFacts: Absent("no InfiniBand or RoCE device"),
        **dict.fromkeys((LibraryFacts, NcclPickFacts, RouteFacts, LinkFacts, IdentityFacts, GpuFacts), NOT_ASKED),
    }
    return {fact: changed.get(fact.__name__, value) for fact, value in facts.items()}


def findings(one: Facts, other: Facts) -> list[Finding]:
    return judge([nccl_also_uses_virtual], {"n1": one, "n2": other}).findings


def both(*nics: Interface, **changed: object) -> list[str]:
    """Return what is said of two nodes that have the same."""
    return [finding.message for finding in findings(node(1, *nics, **changed), node(2, *nics, **changed))]


def first(one: Facts, other: Facts) -> tuple[Outcome, str]:
    verdict = judge([nccl_also_uses_virtual], {"n1": one, "n2": other}).verdicts[0]
    return verdict.outcome, verdict.reason


def over(what: str) -> list[str]:
    return [f"NCCL would also send data over {what}, and may hang"]


def test_a_veth_with_a_link_local_address_is_named_beside_the_card() -> None:
    assert findings(node(1, veth(1)), node(2)) == [
        Finding("NC337", "nccl-also-uses-virtual", Severity.ERROR, ("n1",),
                "NCCL would also send data over veth3f9a1c2 (a link-local address), and may hang",
                ("NCCL uses eno1 10.0.0.1, veth3f9a1c2 fe80::1: n1",),
                "ncheck plan nodes.txt", where="here", summary="NCCL would also use veth3f9a1c2"),
    ]  # fmt: skip


USB = replace(nic("enp0s20f0u1u6", 5, "169.254.3.1"), driver="cdc_ether")


@pytest.mark.parametrize(("extra", "why"), [
    (BRIDGE, "br-5b1d7c3e9f20 (other nodes have the same address)"),
    (nic("cni0", 7, "fe80::7", kind=Kind.CONTAINER_BRIDGE), "cni0 (a link-local address)"),
    (nic("eno2", 3, "169.254.7.7"), "eno2 (a link-local address)"),
    (USB, "enp0s20f0u1u6 (the network of the management controller)"),
    (nic("tmfifo_net0", 5, "192.168.100.2", kind=Kind.CLOUD), "tmfifo_net0 (other nodes have the same address)"),
])  # fmt: skip
def test_what_is_the_same_or_local_on_every_node_leads_nowhere(extra: Interface, why: str) -> None:
    assert both(extra) == over(why)


def test_a_tunnel_or_a_bridge_of_one_node_is_no_network_between_nodes() -> None:
    own = nic("tailscale0", 8, "100.64.0.5", kind=Kind.TUN)
    assert [one.message for one in findings(node(1, BRIDGE, own), node(2))] == over(
        "br-5b1d7c3e9f20 (container-bridge, no network between nodes), tailscale0 (tun, no network between nodes)"
    )


def test_a_prefix_that_also_matches_the_management_controller_is_named_with_its_place() -> None:
    wires = [nic("enp4s0f0", 4, f"10.4.0.{number}") for number in (1, 2)]
    (found,) = findings(*(node(n, wire, USB, NCCL_SOCKET_IFNAME="enp") for n, wire in enumerate(wires, 1)))
    assert found.message == over("enp0s20f0u1u6 (the network of the management controller)")[0]
    assert found.evidence[0] == "NCCL_SOCKET_IFNAME=enp selects enp4s0f0 10.4.0.1, enp0s20f0u1u6 169.254.3.1: n1"


def test_names_that_differ_between_nodes_are_one_finding() -> None:
    one, other = (replace(veth(number), name=f"veth{number}") for number in (1, 2))
    (found,) = findings(node(1, one), node(2, other))
    assert (found.nodes, found.summary) == (("n1", "n2"), "NCCL would also use veth1 and 1 more")
    assert found.message == over("veth1, veth2 (a link-local address)")[0]


def wide(own: int, peer: int, cause: LinkCause | None) -> Facts:
    """Return a node with eno2 in a second network, in which its link to the other node fails for this cause."""
    broken = (Link(f"10.5.0.{own}", f"n{peer}", f"10.5.0.{peer}", "10.5.0.0/24", cause),) if cause else ()
    reaches = tuple(Reach(f"10.{net}.0.0/24", f"10.{net}.0.{own}", 1, 0 if cause and net else 1) for net in (0, 5))
    links = LinkFacts(reaches, broken, frozenset({f"n{peer}"}))
    return node(own, nic("eno2", 3, f"10.5.0.{own}"), LinkFacts=links)


def test_a_second_network_is_good_where_it_connects_and_named_where_it_does_not() -> None:
    assert findings(wide(1, 2, None), wide(2, 1, None)) == []
    (found,) = findings(wide(1, 2, LinkCause.FILTERED), wide(2, 1, LinkCause.FILTERED))
    assert found.message == over("eno2 (n1 and n2 cannot reach each other on 10.5.0.0/24: no answer)")[0]


def test_a_network_of_one_node_is_named_where_others_have_no_route_to_it() -> None:
    one = node(1, nic("eno2", 3, "10.5.0.1"))
    without = node(2, RouteFacts=RouteFacts({"10.5.0.1": "Network is unreachable"}))
    assert [finding.message for finding in findings(one, without)] == over("eno2 (n2 has no route to it)")
    assert findings(one, node(2, RouteFacts=RouteFacts({"10.5.0.1": ""}))) == []


@pytest.mark.parametrize("variables", [
    {"NCCL_SOCKET_IFNAME": "=eno1"},
    {"NCCL_SOCKET_IFNAME": "eno1"},
    {"NCCL_SOCKET_IFNAME": "^veth,docker,lo"},
    {"NCCL_SOCKET_FAMILY": "AF_INET"},
    {"NCCL_COMM_ID": "10.0.0.1:4444"},
])  # fmt: skip
def test_it_is_silent_where_a_setting_keeps_nccl_off_it(variables: dict[str, str]) -> None:
    assert both(veth(1), **variables) == []


def test_it_is_silent_where_a_file_keeps_nccl_off_it() -> None:
    file = EnvironmentFacts({}, {"/etc/nccl.conf": ("NCCL_SOCKET_IFNAME==eno1",)})
    assert both(veth(1), EnvironmentFacts=file) == []


@pytest.mark.parametrize("extra", [
    nic("docker0", 7, "172.17.0.1", kind=Kind.CONTAINER_BRIDGE),
    nic("virbr0", 7, "192.168.122.1", kind=Kind.CONTAINER_BRIDGE),
    nic("br-5b1d7c3e9f20", 7, "172.18.0.1", kind=Kind.CONTAINER_BRIDGE, running=False),
    nic("veth9", 7, kind=Kind.VETH),
])  # fmt: skip
def test_it_is_silent_about_what_nccl_does_not_use(extra: Interface) -> None:
    assert both(extra) == []


def test_before_2_28_3_virbr_and_what_has_no_link_are_used() -> None:
    old = LoadedNcclFacts("2.27.7", "/x/libnccl.so.2")
    dead = replace(BRIDGE, running=False)
    assert both(dead, LoadedNcclFacts=old) == over("br-5b1d7c3e9f20 (without a link)")
    virtual = nic("virbr0", 8, "192.168.122.1", kind=Kind.CONTAINER_BRIDGE)
    assert both(virtual, LoadedNcclFacts=old) == over("virbr0 (other nodes have the same address)")
    unread = Unread("no answer")
    also = "would also use br-5b1d7c3e9f20 (without a link), and the NCCL version is unknown: no answer"
    assert first(node(1, dead, LoadedNcclFacts=unread), node(2)) == (Outcome.UNKNOWN, f"NCCL before 2.28.3 {also}")
    assert first(node(1, veth(1), LoadedNcclFacts=unread), node(2))[0] is Outcome.FAILED
    assert first(node(1, dead, LoadedNcclFacts=Absent("no NCCL"), GpuFacts=None), node(2))[0] is Outcome.PASSED
    before = replace(dead, index=1)  # which the old rules would pick
    assert first(node(1, before, veth(1), LoadedNcclFacts=unread), node(2))[0] is Outcome.FAILED


def test_with_rdma_on_every_node_it_is_information_about_a_fallback() -> None:
    assert findings(node(1, veth(1), InfinibandFacts=ACTIVE), node(2, InfinibandFacts=ACTIVE)) == [
        Finding("NC337", "nccl-also-uses-virtual", Severity.INFO, ("n1",),
                "if NCCL fell back to TCP, it would also use veth3f9a1c2 (a link-local address)",
                ("NCCL uses eno1 10.0.0.1, veth3f9a1c2 fe80::1: n1",), "ip -br address", kind="look"),
    ]  # fmt: skip
    fallback = ["if NCCL fell back to TCP, it would also use veth3f9a1c2 (a link-local address)"]
    assert both(veth(1), NCCL_NET="AWS Libfabric") == fallback
    assert both(veth(1), InfinibandFacts=ACTIVE, NCCL_SOCKET_IFNAME="=eno1") == both(InfinibandFacts=ACTIVE) == []


@pytest.mark.parametrize("changed", [
    {"NCCL_IB_DISABLE": "1"},
    {"NCCL_NET": "Socket"},
    {"NCCL_IB_HCA": "=mlx5_9"},
    {"LibraryFacts": LibraryFacts("libibverbs.so.1: cannot open shared object file", Absent("no MPI"))},
    {"LibraryFacts": LibraryFacts("", Absent("no MPI"), {"mlx5_0": "No such file or directory"}, ("mlx5_0",))},
    {"InfinibandFacts": InfinibandFacts((replace(ACTIVE.ports[0], state="Down"),), "sysfs")},
])  # fmt: skip
def test_rdma_that_nccl_cannot_use_leaves_tcp(changed: dict[str, object]) -> None:
    assert both(veth(1), **{"InfinibandFacts": ACTIVE, **changed}) == over("veth3f9a1c2 (a link-local address)")


def test_ports_that_could_not_be_read_leave_it_unknown() -> None:
    unread = node(2, InfinibandFacts=Unread("ibstat did not answer"))
    why = "the InfiniBand ports of n2 are unknown: ibstat did not answer"
    assert first(node(1, veth(1), InfinibandFacts=ACTIVE), unread) == (
        Outcome.UNKNOWN,
        f"NCCL would also use veth3f9a1c2 (a link-local address) over TCP, and {why}",
    )
    assert first(node(1, InfinibandFacts=ACTIVE), unread)[0] is Outcome.PASSED


def test_it_is_silent_where_a_veth_is_all_that_a_container_has() -> None:
    wires = [nic("eth0", 9, f"10.9.0.{number}", kind=Kind.VETH) for number in (1, 2)]
    one, other = (node(1, NicFacts=NicFacts(with_uplinks((LO, wire)))) for wire in wires)
    assert findings(one, other) == []


def test_it_is_silent_on_one_node_and_about_a_first_interface_that_is_bad_itself() -> None:
    alone = judge([nccl_also_uses_virtual], {"n1": node(1, veth(1))})
    assert (alone.findings, alone.verdicts[0].outcome) == ([], Outcome.SKIPPED)
    assert both(replace(BRIDGE, index=1), veth(1)) == []  # NC304


def test_nodes_without_a_gpu_and_without_nccl_run_no_nccl() -> None:
    none = Absent("no NCCL that the job's interpreter would load")
    bare = node(1, veth(1), LoadedNcclFacts=none)
    assert first(bare, node(2)) == (Outcome.SKIPPED, "no GPU, and no NCCL")
    gpus = node(1, veth(1), LoadedNcclFacts=none, GpuFacts=GpuFacts((), "550.54", "12.4", "nvml"))
    assert first(gpus, node(2))[0] is Outcome.FAILED


def test_nccls_own_answer_does_not_hide_the_other_interfaces() -> None:
    asked = node(1, veth(1), NcclPickFacts=NcclPickFacts("10.0.0.1", "2.28.3"))
    assert first(asked, node(2))[0] is Outcome.FAILED
    other = node(1, nic("eno2", 3, "10.5.0.1"), veth(1), NcclPickFacts=NcclPickFacts("10.5.0.1", "2.28.3"))
    assert first(other, node(2))[0] is Outcome.FAILED
