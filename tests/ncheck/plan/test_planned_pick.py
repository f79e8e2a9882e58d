"""The plan is tried on the nodes' own NCCL: who is asked, under which variables, and who is spared."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer, Cause, Login
from ncheck.model.fact import Absent
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.parse.interface_names import Kind
from ncheck.plan.planned_pick import PLANNED, ask_pick, exempt_alone
from ncheck.settings import Settings


def node(number: int, *, bridge: bool, cause: Cause | None = None) -> dict[type[object], object]:
    """Return the facts of a node with eth0 in 10.1.0.0/24; a compose network's bridge comes before it if wanted."""
    eth0 = Interface("eth0", 3, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(_in("10.1.0", number),))
    compose = Interface(
        "br-5b1d7c3e9f20", 2, Kind.CONTAINER_BRIDGE, up=True, running=True, mtu=1500, addresses=(_in("172.18.0", 1),)
    )
    return {
        LoginFacts: LoginFacts(Login(reached=cause is None, cause=cause)),
        NicFacts: NicFacts((compose, eth0) if bridge else (eth0,)),
        EnvironmentFacts: EnvironmentFacts({}, {}),
        LoadedNcclFacts: LoadedNcclFacts("2.28.3", "/x/libnccl.so.2"),
        NcclPickFacts: NcclPickFacts("172.18.0.1" if bridge else f"10.1.0.{number}", "2.28.3"),
    }


def _in(subnet: str, number: int) -> Address:
    return Address(f"{subnet}.{number}", 24)


def cluster(**known: Facts) -> Cluster:
    return Cluster(tuple(Node(name) for name in known), known)


def test_every_node_is_asked_under_the_plans_variables() -> None:
    questions = ask_pick(cluster(a=node(1, bridge=True), b=node(2, bridge=False)), Settings(), 30.0)
    for (question,) in questions.values():
        assert isinstance(question, Answer)
        assert (question.key, question.timeout) == (PLANNED.key, 10.0)
        assert question.arguments == {"variables": {"NCCL_SOCKET_IFNAME": "=eth0"}, "interfaces": ["eth0"]}
    assert list(questions) == ["a", "b"]


def test_no_node_is_asked_where_the_plan_sets_nothing() -> None:
    questions = ask_pick(cluster(a=node(1, bridge=False), b=node(2, bridge=False)), Settings(), 30.0)
    assert questions == dict.fromkeys("ab", (NotAsked(PLANNED, "the plan sets nothing that NCCL reads"),))


def test_a_node_that_was_lost_is_not_asked_and_one_without_nccl_is_spared() -> None:
    bare = {**node(2, bridge=True), NcclPickFacts: Absent("no NCCL"), LoadedNcclFacts: Absent("no NCCL")}
    questions = ask_pick(
        cluster(a=node(1, bridge=True), b=bare, c=node(3, bridge=True, cause=Cause.REFUSED)), Settings(), 30.0
    )
    assert list(questions) == ["a", "b"]
    assert questions["b"] == (NotAsked(PLANNED, "NCCL could not be asked here which interface it picks"),)


def test_one_node_alone_is_spared_from_the_beginning() -> None:
    assert exempt_alone(cluster(a=node(1, bridge=True)), Settings()) == {
        "a": "a single node needs no network between nodes"
    }
    assert exempt_alone(cluster(a=node(1, bridge=True), b=node(2, bridge=True)), Settings()) == {}
