"""Which address is tried from which, in what order, and on which ports of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ncheck.agent.answers.connect import part_of, rows
from ncheck.facts.definition import exempt_without_peers
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import MAX_ADDRESSES, ListenFacts, PortState, ask_connect, ask_listen, exempt_listening
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer, Cause, JsonValue, Login
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked, Questions
from ncheck.parse.interface_names import Kind
from ncheck.settings import Settings

SETTINGS = Settings(deadline=50.0)
Asked = tuple[Cluster, Settings]  # what a question is made from


def nic(name: str, *addresses: str, default: bool = False, prefix: int = 24) -> Interface:
    held = tuple(Address(ip, 64 if ":" in ip else prefix) for ip in addresses)
    return Interface(name, 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=held, default_route=default)


def cluster(nodes: Mapping[str, tuple[Interface, ...]], settings: Settings = SETTINGS, **more: Facts) -> Asked:
    """Return nodes that were all reached, and listen on port 4000 and so on of every address."""
    known: dict[str, Facts] = {}
    for number, (name, nics) in enumerate(nodes.items()):
        ports = {a.ip: 4000 + number for interface in nics for a in interface.addresses}
        known[name] = {
            LoginFacts: LoginFacts(Login(reached=True)),
            IdentityFacts: IdentityFacts(name, f"boot-{name}", "net:[1]", 0),
            NicFacts: NicFacts(nics),
            ListenFacts: ListenFacts(ports),
            **more.get(name, {}),
        }
    return Cluster(tuple(Node(name) for name in nodes), known, token="0f"), settings  # noqa: S106  no secret


def wired(count: int, wires: int = 1) -> dict[str, tuple[Interface, ...]]:
    return {f"n{i}": tuple(nic(f"eth{w}", f"10.{w}.0.{i + 1}") for w in range(wires)) for i in range(count)}


def links(asked: Asked) -> dict[str, tuple[list[JsonValue], ...]]:
    """Return the links that each node's agent makes of its question: node, source, address, port, subnet, job."""
    return {
        name: tuple(rows(one.arguments)) if isinstance(one, Answer) else ()
        for name, (one,) in ask_connect(*asked, 40.0).items()
    }


def asked(questions: Questions) -> dict[str, object]:
    return {
        name: one.reason if isinstance(one, NotAsked) else one.arguments if isinstance(one, Answer) else one
        for name, (one,) in questions.items()
    }


def test_every_address_is_tried_from_every_other_nodes_address_in_its_subnet() -> None:
    assert links(cluster(wired(3, wires=2)))["n0"] == (
        ["n1", "10.0.0.1", "10.0.0.2", 4001, "10.0.0.0/24", False],
        ["n1", "10.1.0.1", "10.1.0.2", 4001, "10.1.0.0/24", False],
        ["n2", "10.0.0.1", "10.0.0.3", 4002, "10.0.0.0/24", False],
        ["n2", "10.1.0.1", "10.1.0.3", 4002, "10.1.0.0/24", False],
    )


def test_in_each_step_every_node_is_dialled_by_one_other() -> None:
    made = links(cluster(wired(7)))
    for step in range(6):
        assert len({dials[step][0] for dials in made.values()}) == 7
    assert {len(dials) for dials in made.values()} == {6}


def many(count: int, per_subnet: int) -> dict[str, tuple[Interface, ...]]:
    """Return nodes with a default route, so many in each subnet."""
    ips = (
        f"10.{number // per_subnet}.{number % per_subnet // 250}.{number % per_subnet % 250 + 1}"
        for number in range(count)
    )
    return {f"n{number}": (nic("eth0", ip, default=True, prefix=16),) for number, ip in enumerate(ips)}


def kept(asked: Asked) -> dict[str, JsonValue]:
    return {
        name: (one.kept or {}).get(name)
        for name, (one,) in ask_connect(*asked, 40.0).items()
        if isinstance(one, Answer)
    }


def test_of_256_nodes_each_dials_all_and_of_more_those_that_dial_it() -> None:
    few, more = cluster(many(256, 300)), cluster(many(257, 300))
    assert {len(rows) for rows in links(few).values()} == {255}
    assert set(kept(few).values()) == {None}
    dialled = {name: [str(row[0]) for row in rows] for name, rows in links(more).items()}
    assert {name: {"10.0.0.0/16": sorted(others)} for name, others in dialled.items()} == kept(more)
    assert all(name in dialled[other] for name, others in dialled.items() for other in others)
    assert max(map(len, dialled.values())) < 40
    assert dialled["n32"][:3] == ["n33", "n34", "n35"]  # those after it come first: no node is dialled by all at once


def test_the_nodes_of_a_small_subnet_dial_each_other_and_some_across_the_routers() -> None:
    racks = cluster(many(320, 40))
    rows = links(racks)["n100"]
    inside, across = ({str(row[0]) for row in rows if bool(row[4]) is is_inside} for is_inside in (True, False))
    assert inside == {f"n{number}" for number in range(80, 120)} - {"n100"}
    assert kept(racks)["n100"] == {"": sorted(across)}
    assert 10 < len(across) < 20


@pytest.mark.slow
def test_by_srun_all_of_many_nodes_get_one_question_and_each_finds_the_same_links_in_it() -> None:
    more = {f"m{i}": (nic("eth0", f"10.200.{i // 250}.{i % 250 + 1}", default=True, prefix=16),) for i in range(270)}
    nodes = {**many(280, 40), **more}
    first: Facts = {ListenFacts: ListenFacts({"10.0.0.1": 4000}, needed=(PortState(4711, free=True),))}
    of_each, of_all = (
        cluster(nodes, replace(SETTINGS, via=via, master_port=4711), n0=first) for via in ("ssh", "srun")
    )
    (question,) = {id(one): one for (one,) in ask_connect(*of_all, 40.0).values()}.values()
    assert isinstance(question, Answer)
    assert {name: tuple(rows(part_of(name, question.arguments))) for name in nodes} == links(of_each)
    assert kept(of_all) == kept(of_each)


def test_all_dial_all_if_that_is_requested() -> None:
    asked_for_all = cluster(many(300, 300), replace(SETTINGS, mesh="all"))
    assert {len(rows) for rows in links(asked_for_all).values()} == {299}


def test_two_addresses_of_a_node_in_one_subnet_are_both_tried_from_both_of_the_other() -> None:
    nodes = {"a": (nic("eth0", "10.0.0.1", "10.0.0.2"),), "b": (nic("eth0", "10.0.0.3", "10.0.0.4"),)}
    ends = [(row[1], row[2]) for row in links(cluster(nodes))["a"]]
    assert ends == [(one, other) for other in ("10.0.0.3", "10.0.0.4") for one in ("10.0.0.1", "10.0.0.2")]


def test_where_that_is_too_much_each_address_is_still_tried_from_and_to() -> None:
    nodes = {f"n{i}": (nic("eth0", *(f"10.0.{i}.{k}" for k in range(1, 18)), prefix=16),) for i in range(16)}
    made = links(cluster(nodes))["n0"]
    assert len(made) == 15 * 17
    assert {row[1] for row in made} == {f"10.0.0.{k}" for k in range(1, 18)}
    assert {row[2] for row in made} == {f"10.0.{i}.{k}" for i in range(1, 16) for k in range(1, 18)}


def test_an_address_that_several_nodes_show_is_no_link() -> None:
    docker = nic("br0", "172.17.0.1", prefix=16)
    nodes = {name: (docker, *nics) for name, nics in wired(2).items()}
    assert [row[2] for row in links(cluster(nodes))["n0"]] == ["10.0.0.2"]
    listening = asked(ask_listen(*cluster(nodes), 40.0))["n0"]
    assert listening == {"node": "n0", "token": "0f", "addresses": ["10.0.0.1"], "ports": []}


def test_nodes_without_a_common_subnet_are_tried_between_their_routers() -> None:
    nodes = {
        "a": (nic("eth1", "10.5.0.1"), nic("eth0", "10.0.0.1", default=True)),
        "b": (nic("eth0", "fd00::2", "10.9.0.1", default=True),),
        "c": (nic("eth0", "fd00::3", default=True),),
    }
    made = links(cluster(nodes))
    assert made["a"] == (["b", "10.0.0.1", "10.9.0.1", 4001, "", False],)
    assert made["b"] == (["c", "fd00::2", "fd00::3", 4002, "fd00::/64", False], ["a", "10.9.0.1", "10.0.0.1", 4000, "", False])  # fmt: skip  # noqa: E501


def test_one_machine_under_two_names_is_asked_once_and_not_about_itself() -> None:
    nodes = wired(2)
    same = {IdentityFacts: IdentityFacts("n0", "boot-n0", "net:[1]", 0), NicFacts: NicFacts(nodes["n0"])}
    alias = cluster({**nodes, "alias": nodes["n0"]}, alias=same)
    assert [row[0] for row in links(alias)["n0"]] == ["n1"]
    assert asked(ask_listen(*alias, 40.0))["alias"] == "it is the same machine as n0"
    assert asked(ask_connect(*alias, 40.0))["alias"] == "it is the same machine as n0"


def test_who_does_not_listen_is_not_tried() -> None:
    made = cluster(wired(3), n1={ListenFacts: ListenFacts({}, {"10.0.0.2": "gone"})})
    assert [row[0] for row in links(made)["n0"]] == ["n2"]
    two = cluster(wired(2), n1={LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))})
    assert asked(ask_connect(*two, 40.0)) == {"n0": "no other node is reachable"}


def test_a_node_without_an_address_is_spared() -> None:
    nodes = {**wired(2), "bare": (nic("eth0"),)}
    assert asked(ask_listen(*cluster(nodes), 40.0))["bare"] == "the node has no address that a job could use"


def test_the_time_that_is_asked_for_leaves_the_run_some() -> None:
    (question,) = ask_connect(*cluster(wired(2)), 40.0)["n0"]
    assert isinstance(question, Answer)
    assert isinstance(question.arguments, dict)
    assert (question.timeout, question.arguments["timeout"]) == (35.0, 34.0)
    (late,) = ask_connect(*cluster(wired(2)), 2.0)["n0"]
    assert isinstance(late, Answer)
    assert late.timeout == 2.0


# The ports of the job


def ports_asked(settings: Settings, frameworks: Mapping[str, str] | None = None) -> dict[str, list[tuple[int, bool]]]:
    first: Facts = {InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.10", "--python", frameworks or {})}
    told = asked(ask_listen(*cluster(wired(2), settings, n0=first), 40.0))
    return {
        name: [(port["port"], port["assumed"]) for port in one["ports"]]
        for name, one in told.items()
        if isinstance(one, dict)
    }


def test_the_first_node_takes_the_port_of_the_meeting_and_every_node_those_that_it_needs() -> None:
    settings = replace(SETTINGS, master_port=4000, need_ports=(5000, 4001), launcher="torchrun")
    every = [(5000, False), (4001, False)]
    assert ports_asked(settings) == {"n0": [(4000, False), *every], "n1": every}


def test_the_workers_of_tensorflow_and_of_oneflow_open_the_port_on_every_node() -> None:
    assert ports_asked(replace(SETTINGS, launcher="tensorflow"))["n1"] == [(2222, False)]
    assert ports_asked(replace(SETTINGS, launcher="oneflow", master_port=4000))["n1"] == [(4000, False)]
    assert ports_asked(replace(SETTINGS, launcher="torchrun"))["n1"] == []


def test_where_none_was_named_it_is_the_launchers_or_torchs() -> None:
    assert ports_asked(replace(SETTINGS, launcher="torchrun"))["n0"] == [(29400, False)]
    assert ports_asked(replace(SETTINGS, launcher="oneflow", need_ports=(7,)))["n0"] == [(9988, False), (7, False)]
    assert ports_asked(SETTINGS, {"torch": "2.5.1"})["n0"] == [(29500, True)]
    assert ports_asked(SETTINGS, {"tensorflow": "2.16"})["n0"] == []


def test_every_other_node_connects_to_the_jobs_ports_once_a_subnet() -> None:
    needed = (PortState(29500, free=True), PortState(29501, free=False, taken_by="python3 (pid 7) of ada"))
    nodes = {"a": (nic("eth0", "10.0.0.1", "10.0.0.2"),), "b": (nic("eth0", "10.0.0.3"),)}
    first: Facts = {ListenFacts: ListenFacts({"10.0.0.1": 4000, "10.0.0.2": 4000}, needed=needed)}
    made = links(cluster(nodes, replace(SETTINGS, need_ports=(29500, 29501)), a=first))
    assert [row for row in made["b"] if row[5]] == [["a", "10.0.0.3", "10.0.0.1", 29500, "10.0.0.0/24", True]]
    assert [row for row in made["a"] if row[5]] == []


def test_a_port_that_every_node_needs_is_tried_between_all_of_them() -> None:
    needed = (PortState(7788, free=True),)
    one, two = (ListenFacts({f"10.0.0.{number}": 4000}, needed=needed) for number in (1, 2))
    settings = replace(SETTINGS, need_ports=(7788,))
    made = links(cluster(wired(2), settings, n0={ListenFacts: one}, n1={ListenFacts: two}))
    assert {name: [row[0] for row in rows if row[5]] for name, rows in made.items()} == {"n0": ["n1"], "n1": ["n0"]}


def test_no_node_makes_the_others_dial_ports_that_nobody_asked_it_for() -> None:
    settings = replace(SETTINGS, master_port=29500)
    told = tuple(PortState(port, free=True) for port in range(1, 1000))
    first, other = (ListenFacts({f"10.0.0.{number}": 4000}, needed=told) for number in (1, 2))
    made = links(cluster(wired(3), settings, n0={ListenFacts: first}, n1={ListenFacts: other}))
    assert [row for held in made.values() for row in held if row[5]] == []


def test_of_a_node_that_shows_thousands_of_addresses_only_some_are_dialled() -> None:
    many = (nic("eth0", *(f"10.0.{number // 250}.{number % 250 + 1}" for number in range(5000)), prefix=16),)
    made = links(cluster({"a": many, "b": (nic("eth0", "10.0.99.1", prefix=16),)}))
    assert (len(made["a"]), len(made["b"])) == (MAX_ADDRESSES, MAX_ADDRESSES)


def test_one_node_alone_is_asked_for_the_jobs_ports_and_no_link() -> None:
    alone = cluster(wired(1), replace(SETTINGS, master_port=4000))
    assert asked(ask_listen(*alone, 40.0)) == {
        "n0": {"node": "n0", "token": "0f", "addresses": [], "ports": [{"port": 4000, "assumed": False}]}
    }
    assert exempt_without_peers(*alone) == {"n0": "one node alone has no peers"}
    assert asked(ask_listen(*cluster(wired(1)), 40.0)) == {"n0": "one node alone has no peers"}


def test_without_a_mesh_only_ports_that_were_named_are_looked_at() -> None:
    without = replace(SETTINGS, mesh="none")
    none = dict.fromkeys(("n0", "n1"), "--mesh none")
    assert exempt_listening(*cluster(wired(2), without)) == none
    named = cluster(wired(2), replace(without, need_ports=(4000,)))
    assert (exempt_listening(*named), exempt_without_peers(*named)) == ({}, none)
    one = cluster(wired(2), replace(without, master_port=4000))
    for case, second in ((named, "asked"), (one, "--mesh none")):
        told = asked(ask_listen(*case, 40.0)).values()
        assert ["asked" if isinstance(answer, dict) else answer for answer in told] == ["asked", second]


def test_without_a_mesh_nodes_listen_for_the_probe_by_tcp_and_try_no_link() -> None:
    probed = cluster(wired(2), replace(SETTINGS, mesh="none", probe="tcp"))
    assert exempt_listening(*probed) == {}
    told = asked(ask_listen(*probed, 40.0))
    assert [one["addresses"] for one in told.values() if isinstance(one, dict)] == [["10.0.0.1"], ["10.0.0.2"]]
    assert ask_connect(*probed, 40.0) == {}


def test_a_reason_is_told_for_every_node_that_is_not_asked() -> None:
    questions = ask_connect(*cluster({"a": (nic("eth0"),), "b": (nic("eth0"),)}), 40.0)
    assert {name: isinstance(one, NotAsked) for name, (one,) in questions.items()} == {"a": True, "b": True}
