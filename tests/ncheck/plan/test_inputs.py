"""What a plan is computed from: which nodes were logged in to, what is known about them, and their slots."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import EFA, HcaPort, InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node
from ncheck.parse.nvidia_smi import Gpu
from ncheck.plan.inputs import (
    each_node_once,
    environments,
    gpu_counts,
    logged_in,
    missing_reason,
    rdma_everywhere,
    slots_per_node,
    unreachable,
    unread_reasons,
)

from .planned import ACTIVE, node, plan

REFUSED: Facts = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))}
CUT: Facts = {LoginFacts: LoginFacts(Login(reached=True, cause=Cause.DEADLINE))}


def gpus(count: int) -> GpuFacts:
    return GpuFacts(tuple(Gpu(i, "T4") for i in range(count)), "550", "12.4", "nvml")


def test_a_node_counts_as_logged_in_even_if_its_connection_failed_later() -> None:
    cluster = Cluster((Node("n1"), Node("n2"), Node("n3"), Node("n4")), {"n1": CUT, "n2": REFUSED, "n3": {}})
    assert logged_in(cluster).names == ("n1",)
    assert unreachable(cluster) == ("n2", "n3", "n4")


def test_a_node_that_is_listed_twice_counts_once() -> None:
    cluster = Cluster((Node("n1", slots=2), Node("n2"), Node("n1", slots=4)), {"n1": CUT, "n2": REFUSED})
    assert each_node_once(cluster).nodes == (Node("n1", slots=4), Node("n2"))
    assert (logged_in(cluster).names, unreachable(cluster)) == (("n1",), ("n2",))
    assert slots_per_node(cluster, None) == {"n1": 4, "n2": 1}
    facts = node("eth0 10.1.0.1")
    twice = plan(facts, facts, nodes=(Node("n1"), Node("n1")))
    assert twice.env["NCCL_SOCKET_IFNAME"].reason == "one node alone needs no network between nodes"


def test_what_is_not_known_has_a_reason() -> None:
    cluster = Cluster.of({"n1": {**CUT, NicFacts: Absent("no sysfs")}, "n2": {**CUT, NicFacts: Unread("cut off")}})
    assert unread_reasons(cluster, NicFacts) == {"n2": "cut off"}
    assert missing_reason(cluster, NicFacts) == "no sysfs"
    assert missing_reason(cluster, GpuFacts) == "it was not asked for"


def test_an_environment_that_could_not_be_read_sets_nothing() -> None:
    own = EnvironmentFacts({"NCCL_DEBUG": "INFO"}, {})
    cluster = Cluster.of({"n1": {**CUT, EnvironmentFacts: own}, "n2": {**CUT, EnvironmentFacts: Unread("cut off")}})
    assert environments(cluster) == {"n1": own, "n2": EnvironmentFacts({}, {})}


def test_rdma_is_everywhere_only_if_each_node_has_an_active_port() -> None:
    with_port, without = node("eth0 10.1.0.1", infiniband=ACTIVE), node("eth0 10.1.0.2")
    assert rdma_everywhere(Cluster.of({"n1": with_port, "n2": with_port}))
    assert not rdma_everywhere(Cluster.of({"n1": with_port, "n2": without}))
    efa = node(infiniband=InfinibandFacts((HcaPort("rdmap0s6", 1, "Active", "LinkUp", 100.0, EFA),), "sysfs"))
    assert not rdma_everywhere(Cluster.of({"n1": efa, "n2": efa}))


@pytest.mark.parametrize(("found", "listed", "asked", "slots"), [
    (gpus(8), None, None, 8),
    (gpus(8), 2, None, 2),
    (gpus(8), None, 4, 8),
    (Absent("no NVIDIA GPU"), None, 4, 4),
    (Absent("no NVIDIA GPU"), None, None, 1),
    (Unread("nvidia-smi hung"), None, 4, 4),
    (Unread("nvidia-smi hung"), None, None, 1),
])  # fmt: skip
def test_slots_are_the_lists_else_the_gpus_else_the_option_else_one(
    found: object, listed: int | None, asked: int | None, slots: int
) -> None:
    facts = [node(f"eth0 10.1.0.{number}", GpuFacts=found) for number in (1, 2)]
    nodes = (Node("n1", slots=listed), Node("n2", slots=listed))
    assert slots_per_node(Cluster(nodes, dict(zip(("n1", "n2"), facts, strict=True))), asked) == dict.fromkeys(
        ("n1", "n2"), slots
    )
    assert f" -H n1:{slots},n2:{slots} " in plan(*facts, nodes=nodes, slots=asked).lines["mpirun"]


def test_gpus_that_a_variable_hides_have_no_slots() -> None:
    hidden = EnvironmentFacts({"CUDA_VISIBLE_DEVICES": "0,1"}, {})
    facts = {"n1": node("eth0 10.1.0.1"), "n2": node("eth0 10.1.0.2", environment=hidden)}
    assert gpu_counts(Cluster.of(facts)) == {"n1": 8, "n2": 2}
    assert " -H n1:8,n2:2 " in plan(*facts.values()).lines["mpirun"]
