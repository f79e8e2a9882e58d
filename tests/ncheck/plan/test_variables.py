"""How the job's interface is set, for NCCL and gloo, in small clusters: nothing where the default is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import EFA, HcaPort, InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.names import HostNameFacts, Resolved
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.net_plugin import NetPlugin, NetPluginFacts
from ncheck.facts.nics import Address, NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.plan import Setting
from ncheck.plan.advice import Advice

from tests.logins import line_removed, logins

from .clusters import ACTIVE, COMPOSE, FAST, IFNAME, MANAGEMENT, advised, chosen, node, two

GLOO = "GLOO_SOCKET_IFNAME"
V4, V6 = "10.1.0.0/24", "2001:db8::/64"


def test_what_nccl_itself_answers_outweighs_what_its_rules_would_give() -> None:
    one, other = two(COMPOSE, MANAGEMENT)
    right = [
        {**facts, NcclPickFacts: NcclPickFacts(f"10.1.0.{own}", "2.32.3")} for own, facts in ((1, one), (2, other))
    ]
    assert chosen(advised(*right)) == (None, "10.1.0.0/24", ())
    wrong = [{**facts, NcclPickFacts: NcclPickFacts("172.18.0.1", "2.32.3")} for facts in (one, other)]
    assert chosen(advised(*wrong)) == ("=eth0", "10.1.0.0/24", ())
    gone = [{**facts, NcclPickFacts: NcclPickFacts("198.51.100.9", "2.32.3")} for facts in two(MANAGEMENT)]
    assert chosen(advised(*gone)) == ("=eth0", "10.1.0.0/24", ())


VETH = "veth9 fe80::# veth"


def test_without_usable_rdma_nccl_is_kept_to_the_network_of_the_job() -> None:
    off = EnvironmentFacts({"NCCL_IB_DISABLE": "1"}, {})
    unusable = LibraryFacts("libibverbs.so.1: cannot open shared object file", Absent("no MPI"))
    rdma = [{**facts, InfinibandFacts: ACTIVE} for facts in two(MANAGEMENT, VETH)]
    values = [
        chosen(advised(*({**facts, **more} for facts in rdma)))[0]
        for more in ({}, {EnvironmentFacts: off}, {LibraryFacts: unusable})
    ]
    assert values == [None, "=eth0", "=eth0"]
    made = advised(*two(MANAGEMENT, VETH))
    assert (
        made.env[IFNAME].reason == "currently NCCL would use eth0 and veth9 on n[1-2]; the job's network is 10.1.0.0/24"
    )


OLD = LoadedNcclFacts("2.4.8", "/opt/libnccl.so.2")
TWO = "eno1 on n1, eth0 on n2, all in 10.1.0.0/24"


@pytest.mark.parametrize(("nodes", "reason", "pin"), [
    (two("eth0 10.1.0.#"), "not needed, NCCL picks eth0", "=eth0"),
    ([node("eth0 10.1.0.1", old=OLD), node("eth0 10.1.0.2", old=OLD)], "not needed, NCCL picks eth0", "eth0"),
    ([node("eno1 10.1.0.1"), node("eth0 10.1.0.2")], f"not needed, NCCL picks {TWO}", "=eno1,eth0"),
    ([node("eno1 10.1.0.1", "eth0 192.0.2.1", hca=ACTIVE), node("eth0 10.1.0.2", hca=ACTIVE)],
     f"not needed, NCCL picks {TWO}", ""),
    (two("eth0 fd00::#"), "not needed, NCCL picks eth0", "=eth0"),
    ([node(f"eth0 10.1.0.{own}", environment=logins({IFNAME: "eth"})) for own in (1, 2)],
     "set already, NCCL picks eth0", "=eth0"),
    ([node(f"n{own} 10.1.0.{own}") for own in range(1, 6)],
     "not needed, NCCL picks n1 on n1, n2 on n2, n3 on n3, ..., all in 10.1.0.0/24", "=n1,n2,n3,n4,n5"),
])  # fmt: skip
def test_where_nothing_is_needed_the_plan_says_what_nccl_picks_and_how_to_pin_it(
    nodes: list[Facts], reason: str, pin: str
) -> None:
    setting = advised(*nodes).env[IFNAME]
    assert (setting.value, setting.decided, setting.reason, setting.pin) == (None, True, reason, pin)


def test_an_nccl_that_knows_no_exact_names_is_given_the_name_alone() -> None:
    old = LoadedNcclFacts("2.4.8", "/opt/libnccl.so.2")
    assert chosen(advised(*(node(COMPOSE, f"eth0 10.1.0.{own}", old=old) for own in (1, 2))))[0] == "eth0"


def test_names_that_differ_are_one_list_where_no_node_has_both() -> None:
    made = advised(node(COMPOSE, "eno1 10.1.0.1"), node("enp3s0 10.1.0.2"))
    assert (chosen(made), made.per_node) == (("=eno1,enp3s0", "10.1.0.0/24", ()), {})


def test_where_one_node_has_both_names_each_gets_its_own_in_a_file_of_its_machine() -> None:
    unset = EnvironmentFacts({}, {})
    one = node(COMPOSE, "eno1 10.1.0.1", "eth0 192.0.2.1", environment=unset)
    other = node("eth0 10.1.0.2", environment=EnvironmentFacts({}, {"/etc/nccl.conf": (f"{IFNAME}=eno1",)}))
    third = node("eth0 10.1.0.3", environment=logins({IFNAME: "eno1"}))
    made = advised(one, other, third)
    assert chosen(made) == (
        None,
        "10.1.0.0/24",
        (
            f"{IFNAME} on n1: echo {IFNAME}==eno1 | sudo tee -a /etc/nccl.conf",
            f"{IFNAME} on n2: sudo sed -i 's/^{IFNAME}=.*/{IFNAME}==eth0/' /etc/nccl.conf",
            f"{IFNAME} on n3: {line_removed(IFNAME)}; echo {IFNAME}==eth0 | sudo tee -a /etc/nccl.conf",
        ),
    )
    assert {name: own[IFNAME].value for name, own in made.per_node.items()} == {
        "n1": "=eno1", "n2": "=eth0", "n3": "=eth0",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["eth0|e;id", "eth0'", "$(id)", "eth0&"])
def test_a_name_that_sed_would_obey_comes_into_no_command(name: str) -> None:
    unset = EnvironmentFacts({}, {"/etc/nccl.conf": (f"{IFNAME}=eno1",)})
    made = advised(node(COMPOSE, "eno1 10.1.0.1", "eth0 192.0.2.1"), node(f"{name} 10.1.0.2", environment=unset))
    assert [line for line in chosen(made)[2] if name in line] == []


def test_gloo_is_told_each_nodes_own_name_and_nothing_where_the_hosts_names_lead_right() -> None:
    torch = InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {"torch": "2.3.1"})
    nodes = [node(f"{name} 10.1.0.{own}", torch=torch) for own, name in enumerate(("eno1", "eth0"), 1)]
    made = advised(*nodes)
    assert {name: own[GLOO].value for name, own in made.per_node.items()} == {"n1": "eno1", "n2": "eth0"}
    named = [
        {**facts, HostNameFacts: HostNameFacts(f"n{own}", Resolved((f"10.1.0.{own}",)))}
        for own, facts in enumerate(nodes, 1)
    ]
    why = "nothing to set: each hostname resolves to an address in 10.1.0.0/24"
    assert (advised(*named).env[GLOO], advised(*named).per_node) == (Setting(None, why), {})


def test_one_node_needs_none_and_of_no_node_nothing_is_known() -> None:
    assert advised(node("eth0 10.1.0.1")) == Advice(
        {IFNAME: Setting(None, "one node alone needs no network between nodes")}
    )
    assert advised() == Advice({IFNAME: Setting(None, "the interfaces of all nodes are unknown", decided=False)})


NAMED = JobFacts("eth0")


def test_the_users_word_outweighs_what_is_faster_and_what_would_be_right_by_itself() -> None:
    made = advised(*({**facts, JobFacts: NAMED} for facts in two(MANAGEMENT, FAST)))
    assert chosen(made) == ("=eth0", "10.1.0.0/24", ())
    assert made.env[IFNAME].reason == "set by --ifname; it is in 10.1.0.0/24"


def test_an_interface_that_some_node_lacks_is_not_set_and_the_plan_says_where() -> None:
    made = advised(node("eth0 10.1.0.1", job=NAMED), node("eno1 10.1.0.2", job=NAMED))
    why = "--ifname eth0: eth0 is missing on n2; see ncheck explain NC330"
    assert made == Advice({IFNAME: Setting(None, why, decided=False)})


def test_an_interface_over_which_nobody_is_reached_is_set_as_told_and_the_plan_says_so() -> None:
    made = advised(*({**facts, JobFacts: NAMED} for facts in two(MANAGEMENT)), dead=["10.1.0.0/24"])
    note = "--ifname eth0: n1 and n2 cannot reach each other on 10.1.0.0/24: no answer"
    assert chosen(made) == ("=eth0", "10.1.0.0/24", (note,))


@pytest.mark.parametrize(("speed", "driver", "ports", "value"), [
    (100000, "mlx5_core", None, "4"), (25000, "mlx5_core", None, "4"), (10000, "ixgbe", None, None),
    (100000, "ena", None, None), (100000, "mlx5_core", ACTIVE, None),
])  # fmt: skip
def test_fast_tcp_gets_more_threads_and_sockets_unless_nccl_knows_the_card(
    speed: int, driver: str, ports: InfinibandFacts | None, value: str | None
) -> None:
    nodes = two(f"eth0 10.1.0.# {speed}")
    for facts in nodes:
        nics = facts[NicFacts]
        assert isinstance(nics, NicFacts)
        wires = tuple(replace(nic, driver=driver) for nic in nics.interfaces)
        facts.update({NicFacts: NicFacts(wires)} | ({InfinibandFacts: ports} if ports else {}))  # type: ignore[attr-defined]
    made = advised(*nodes)
    found = [
        made.env[name].value if name in made.env else None for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    ]
    assert found == [value, value]


PLUGIN = NetPlugin("libnccl-net.so", "/opt/amazon/ofi-nccl/lib/libnccl-net.so", net=(10,))
OFI = NetPluginFacts(PLUGIN)
EFA_PORT = InfinibandFacts((HcaPort("rdmap0s6", 1, "Active", "LinkUp", 100.0, EFA),), "sysfs")


@pytest.mark.parametrize(("found", "variables", "value"), [
    (NetPluginFacts(None), {}, "4"), (OFI, {}, None), (OFI, {"NCCL_NET": "Socket"}, "4"),
    (NetPluginFacts(replace(PLUGIN, missing=("libfabric.so.1",))), {}, "4"),
    (NetPluginFacts(replace(PLUGIN, kind="nccl-rdma-sharp")), {}, "4"),
    (Unread("not asked"), {}, None), (Absent("no network plug-in of NCCL"), {}, "4"),
])  # fmt: skip
def test_data_over_efa_takes_a_plug_in_that_loads(
    found: object, variables: Mapping[str, str], value: str | None
) -> None:
    """TCP carries the data where none does; where that is not known, nothing is set for it."""
    nodes = two("eth0 10.1.0.# 100000")
    for facts in nodes:
        facts.update(  # type: ignore[attr-defined]
            {InfinibandFacts: EFA_PORT, NetPluginFacts: found, EnvironmentFacts: EnvironmentFacts(variables, {})}
        )
    made = advised(*nodes).env.get("NCCL_SOCKET_NTHREADS")
    assert (made and made.value) == value
    assert "NCCL_IB_HCA" not in advised(*nodes).env


def host(number: int, *more: Address, **variables: str) -> Facts:
    """Make a node whose one card has an IPv4 and an IPv6 address, and those beside them."""
    facts = node(f"eth0 10.1.0.{number}", environment=EnvironmentFacts(variables, {}))
    lo, eth0 = facts[NicFacts].interfaces  # type: ignore[attr-defined]
    addresses = (*eth0.addresses, *more, Address(f"2001:db8::{number}", 64))
    return {**facts, NicFacts: NicFacts((lo, replace(eth0, addresses=addresses)))}


def test_where_ipv6_alone_carries_nccl_is_told_so() -> None:
    made = advised(host(1), host(2), dead=[V4])
    assert made.env["NCCL_SOCKET_IFNAME"].value == "=eth0"
    assert made.env["NCCL_SOCKET_FAMILY"] == Setting(
        "AF_INET6", f"{V6} is IPv6, and NCCL would use another address of the same interface"
    )


def test_a_family_that_somebody_set_and_that_leads_astray_is_set_right() -> None:
    made = advised(*(host(number, NCCL_SOCKET_FAMILY="AF_INET6") for number in (1, 2)), dead=[V6])
    assert made.env["NCCL_SOCKET_FAMILY"].value == "AF_INET"


def test_a_second_address_of_one_family_cannot_be_named_and_a_note_says_so() -> None:
    made = advised(*(host(number, Address(f"10.9.0.{number}", 24)) for number in (1, 2)), dead=[V4, V6])
    assert "NCCL_SOCKET_FAMILY" not in made.env
    assert made.notes[-1] == (
        "NCCL uses the first address of an interface, and on n[1-2] that is not in 10.9.0.0/24: "
        "no variable can change this"
    )


def test_where_nccl_gets_there_no_family_is_set() -> None:
    assert "NCCL_SOCKET_FAMILY" not in advised(host(1), host(2), dead=[V6]).env
    assert "NCCL_SOCKET_FAMILY" not in advised(host(1), host(2)).env
