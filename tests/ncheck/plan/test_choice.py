"""Which network is the job's, and how its interface is named, in tables of small clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.names import HostNameFacts, Resolved
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent
from ncheck.model.plan import Setting
from ncheck.parse.interface_names import Kind
from ncheck.plan.advice import Advice
from ncheck.plan.variables import advise
from ncheck.plan.networks import Network

from .links import linked

IFNAME, GLOO = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
RULE = "the first in the kernel's order except docker*, lo and virbr*"
DOCKER = "docker0 172.17.0.1 container-bridge"
COMPOSE = "br-5b1d7c3e9f20 172.18.0.1 container-bridge"
ACTIVE = InfinibandFacts((HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand"),), "sysfs")
RIGHT = "nothing to set: NCCL picks 10.1.0.0/24 on every node by default"


def node(*nics: str, **changed: object) -> Facts:
    """Make a node of "eth0 10.1.0.7", with kind, speed and "default" where they are said."""
    lo = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536,
                   addresses=(Address("127.0.0.1", 8, "host"),))  # fmt: skip
    facts: dict[type[object], object] = {
        LoginFacts: LoginFacts(Login(reached=True)),
        NicFacts: NicFacts((lo, *(_nic(index, words) for index, words in enumerate(nics, 2)))),
        InfinibandFacts: Absent("no HCA"),
        LoadedNcclFacts: LoadedNcclFacts("2.32.3", "/opt/libnccl.so.2"),
        JobFacts: JobFacts(),
    }
    return {**facts, **{type(value): value for value in changed.values()}}


def _nic(index: int, words: str) -> Interface:
    name, ip, *rest = words.split()
    kind = next((Kind(word) for word in rest if word.replace("-", "").isalpha() and word != "default"), Kind.PHYSICAL)
    speed = next((int(word) for word in rest if word.isdecimal()), None)
    made = Interface(name, index, kind, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),), speed=speed)
    return replace(made, default_route="default" in rest)


def chosen(*facts: Facts, dead: Sequence[str] = (), tried: bool = True) -> Advice:
    nodes = {f"n{number}": held for number, held in enumerate(facts, 1)}
    nodes = linked(nodes, dead) if tried else {name: {**held, LinkFacts: _UNTRIED} for name, held in nodes.items()}
    return advise(Cluster.of(nodes))


_UNTRIED = Absent("not asked (--mesh none)")


def told(advice: Advice) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return the value for all nodes, the network, and the notes."""
    return advice.env[IFNAME].value, advice.network.subnet if advice.network else None, advice.notes


def two(*words: str) -> list[Facts]:
    """Make two nodes of words in which # is the node's own number."""
    return [node(*(word.replace("#", str(number)) for word in words)) for number in (1, 2)]


MANAGEMENT, FAST = "eth0 10.1.0.# 1000 default", "eth1 10.2.0.# 10000"


def test_the_fastest_network_that_carries_is_the_jobs() -> None:
    assert told(chosen(*two(MANAGEMENT, FAST))) == ("=eth1", "10.2.0.0/24", ())


def test_a_fast_network_that_goes_nowhere_is_left_out_and_the_plan_says_why() -> None:
    made = chosen(*two(MANAGEMENT, FAST), dead=["10.2.0.0/24"])
    why = "10.2.0.0/24 is not used: n1 and n2 cannot reach each other on 10.2.0.0/24: no answer"
    assert told(made) == ("=eth0", "10.1.0.0/24", (why,))
    assert made.env[IFNAME].evidence == (f"eth0 is in 10.1.0.0/24; NCCL picks eth0 ({RULE}): n[1-2]", why)


def test_a_fast_network_that_one_node_lacks_is_left_out_and_the_plan_says_which() -> None:
    made = chosen(*two(MANAGEMENT, FAST), node("eth0 10.1.0.3 1000 default"))
    why = "10.2.0.0/24 is not used: n3 has no address in it"
    assert told(made) == ("=eth0", "10.1.0.0/24", (why,))


def test_of_a_card_without_a_link_the_plan_says_that_and_not_that_it_has_no_address() -> None:
    nodes = [*two(MANAGEMENT, FAST), node("eth0 10.1.0.3 1000 default", "eth1 10.2.0.3")]
    lo, eth0, eth1 = nodes[2][NicFacts].interfaces  # type: ignore[attr-defined]
    nodes[2] = {**nodes[2], NicFacts: NicFacts((lo, eth0, replace(eth1, running=False)))}
    assert told(chosen(*nodes))[1:] == ("10.1.0.0/24", ("10.2.0.0/24 is not used: eth1 has no link on n3",))


def test_a_slower_network_that_some_lack_stands_in_the_evidence_only() -> None:
    made = chosen(*two("eth0 10.1.0.# 10000", "eth1 10.3.0.# 1000"), node("eth0 10.1.0.3 10000"))
    assert told(made) == ("=eth0", "10.1.0.0/24", ())
    assert made.env[IFNAME].evidence[-1] == "10.3.0.0/24 is not used: n3 has no address in it"


def test_where_no_network_is_whole_the_best_is_named_as_the_one_to_mend() -> None:
    made = chosen(*two(MANAGEMENT), dead=["10.1.0.0/24"])
    why = "n1 and n2 cannot reach each other on 10.1.0.0/24: no answer"
    assert told(made) == (
        None, "10.1.0.0/24", (f"no network connects all nodes; the plan uses 10.1.0.0/24, so fix this first: {why}",),
    )  # fmt: skip


def test_where_nobody_tried_the_choice_stands_and_a_note_says_so() -> None:
    note = "it is unknown whether all nodes reach each other on 10.2.0.0/24: not tested: not asked (--mesh none)"
    assert told(chosen(*two(MANAGEMENT, FAST), tried=False)) == ("=eth1", "10.2.0.0/24", (note,))


def test_with_infiniband_ranks_meet_on_the_management_network() -> None:
    nodes = [{**facts, InfinibandFacts: ACTIVE} for facts in two("ib0 10.9.0.# 400000 infiniband", MANAGEMENT)]
    assert told(chosen(*nodes)) == (None, "10.9.0.0/24", ())  # NCCL takes ib* first, and it carries
    why = "10.9.0.0/24 is not used: n1 and n2 cannot reach each other on 10.9.0.0/24: no answer"
    assert told(chosen(*nodes, dead=["10.9.0.0/24"])) == ("=eth0", "10.1.0.0/24", (why,))


def test_docker_on_all_nodes_is_no_network() -> None:
    made = chosen(*two(DOCKER, MANAGEMENT))
    assert made == Advice(
        {IFNAME: Setting(None, RIGHT, (f"eth0 is in 10.1.0.0/24; NCCL picks eth0 ({RULE}): n[1-2]",))},
        network=made.network,
    )
    assert isinstance(made.network, Network)
    assert made.network.subnet == "10.1.0.0/24"


def test_a_subnet_with_one_address_on_several_nodes_is_no_network_and_the_evidence_says_so() -> None:
    made = chosen(*two("br0 192.168.9.1 bridge", MANAGEMENT))
    assert made.env[IFNAME].evidence[-1] == "192.168.9.0/24 is not used: n[1-2] have the same address in it, 192.168.9.1"


def test_what_nccl_itself_answers_outweighs_what_its_rules_would_give() -> None:
    one, other = two(COMPOSE, MANAGEMENT)
    right = [
        {**facts, NcclPickFacts: NcclPickFacts(f"10.1.0.{own}", "2.32.3")} for own, facts in ((1, one), (2, other))
    ]
    assert told(chosen(*right)) == (None, "10.1.0.0/24", ())
    wrong = [{**facts, NcclPickFacts: NcclPickFacts("172.18.0.1", "2.32.3")} for facts in (one, other)]
    assert told(chosen(*wrong)) == ("=eth0", "10.1.0.0/24", ())
    gone = [{**facts, NcclPickFacts: NcclPickFacts("198.51.100.9", "2.32.3")} for facts in two(MANAGEMENT)]
    assert told(chosen(*gone)) == ("=eth0", "10.1.0.0/24", ())


def test_names_that_differ_are_one_list_where_no_node_has_both() -> None:
    made = chosen(node(COMPOSE, "eno1 10.1.0.1"), node("enp3s0 10.1.0.2"))
    assert (told(made), made.per_node) == (("=eno1,enp3s0", "10.1.0.0/24", ()), {})


def test_where_one_node_has_both_names_each_gets_its_own_in_a_file_of_its_machine() -> None:
    unset = EnvironmentFacts({}, {})
    one = node(COMPOSE, "eno1 10.1.0.1", "eth0 192.0.2.1", environment=unset)
    other = node("eth0 10.1.0.2", environment=EnvironmentFacts({}, {"/etc/nccl.conf": (f"{IFNAME}=eno1",)}))
    third = node("eth0 10.1.0.3", environment=EnvironmentFacts({IFNAME: "eno1"}, {}))
    made = chosen(one, other, third)
    assert told(made) == (
        None,
        "10.1.0.0/24",
        (
            f"{IFNAME} on n1: echo {IFNAME}==eno1 | sudo tee -a /etc/nccl.conf",
            f"{IFNAME} on n2: sudo sed -i 's|^{IFNAME}=.*|{IFNAME}==eth0|' /etc/nccl.conf",
            f"{IFNAME} on n3: unset {IFNAME}; echo {IFNAME}==eth0 | sudo tee -a /etc/nccl.conf",
        ),
    )
    assert {name: own[IFNAME].value for name, own in made.per_node.items()} == {
        "n1": "=eno1", "n2": "=eth0", "n3": "=eth0",
    }  # fmt: skip


def test_gloo_is_told_each_nodes_own_name_and_nothing_where_the_hosts_names_lead_right() -> None:
    torch = InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {"torch": "2.3.1"})
    nodes = [node(f"{name} 10.1.0.{own}", torch=torch) for own, name in enumerate(("eno1", "eth0"), 1)]
    made = chosen(*nodes)
    assert {name: own[GLOO].value for name, own in made.per_node.items()} == {"n1": "eno1", "n2": "eth0"}
    named = [
        {**facts, HostNameFacts: HostNameFacts(f"n{own}", Resolved((f"10.1.0.{own}",)))}
        for own, facts in enumerate(nodes, 1)
    ]
    why = "nothing to set: each hostname resolves to an address in 10.1.0.0/24"
    assert (chosen(*named).env[GLOO], chosen(*named).per_node) == (Setting(None, why), {})


@pytest.mark.parametrize(("nodes", "why"), [
    ([("eth0 10.1.0.1",), ("eth0 10.2.0.2", "eth1 10.3.0.2"), ("eth0 10.2.0.3",)],
     "the nodes have no subnet in common: 10.2.0.0/24 on n[2-3], 10.1.0.0/24 on n1, 10.3.0.0/24 on n2"),
    ([("eth0 10.1.0.1",), (DOCKER,)], "n2 has no usable interface"),
])  # fmt: skip
def test_where_nothing_is_common_to_all_the_plan_says_what_it_could_not_decide(
    nodes: list[tuple[str, ...]], why: str
) -> None:
    made = chosen(*(node(*words) for words in nodes))
    reason, found = made.env[IFNAME].reason, made.env[IFNAME]
    assert (reason.startswith(why), "see ncheck explain NC30" in reason) == (True, True)
    assert (found.value, found.decided, made.network) == (None, False, None)


def test_one_node_needs_none_and_of_no_node_nothing_is_known() -> None:
    assert chosen(node("eth0 10.1.0.1")) == Advice(
        {IFNAME: Setting(None, "one node alone needs no network between nodes")}
    )
    assert chosen() == Advice({IFNAME: Setting(None, "the interfaces of all nodes are unknown", decided=False)})


NAMED = JobFacts("eth0")


def test_the_users_word_outweighs_what_is_faster_and_what_would_be_right_by_itself() -> None:
    made = chosen(*({**facts, JobFacts: NAMED} for facts in two(MANAGEMENT, FAST)))
    assert told(made) == ("=eth0", "10.1.0.0/24", ())
    assert made.env[IFNAME].reason == "set by --ifname; it is in 10.1.0.0/24"


def test_an_interface_that_some_node_lacks_is_not_set_and_the_plan_says_where() -> None:
    made = chosen(node("eth0 10.1.0.1", job=NAMED), node("eno1 10.1.0.2", job=NAMED))
    why = "--ifname eth0: eth0 is missing on n2; see ncheck explain NC330"
    assert made == Advice({IFNAME: Setting(None, why, decided=False)})


def test_an_interface_over_which_nobody_is_reached_is_set_as_told_and_the_plan_says_so() -> None:
    made = chosen(*({**facts, JobFacts: NAMED} for facts in two(MANAGEMENT)), dead=["10.1.0.0/24"])
    note = "--ifname eth0: n1 and n2 cannot reach each other on 10.1.0.0/24: no answer"
    assert told(made) == ("=eth0", "10.1.0.0/24", (note,))


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
    made = chosen(*nodes)
    found = [
        made.env[name].value if name in made.env else None for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    ]
    assert found == [value, value]
