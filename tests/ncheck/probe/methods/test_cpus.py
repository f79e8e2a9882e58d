"""What nodes are told that measure by TCP alone or by gloo, and where neither can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import ListenFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import Address, Interface, SubnetAddress
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.node import Node
from ncheck.model.op import Op
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.network.subnets import SubnetMembers
from ncheck.parse.interface_names import Kind
from ncheck.plan.networks import Network
from ncheck.probe.facts import MeetingFacts
from ncheck.probe.methods.context import ProbeContext
from ncheck.probe.methods.driver import CannotTakePartError, Driver, NodeTask, driver_named, task_arguments
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.settings import Settings

TCP, GLOO = driver_named("tcp"), driver_named("gloo")
SUBNET = "10.0.0.0/24"
PLAN = LaunchPlan(
    {"GLOO_SOCKET_IFNAME": Setting(None, "its names differ"), "NCCL_DEBUG": Setting("WARN", "as always")},
    per_node={"n1": {"GLOO_SOCKET_IFNAME": Setting("enp3s0", "it leads there")}},
)


def address(name: str, ip: str) -> SubnetAddress:
    held = (Address(ip, 64 if ":" in ip else 24),)
    return SubnetAddress(Interface(name, 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=held), ip, SUBNET)


ADDRESSES: SubnetMembers = {
    "n0": (address("eth0", "10.0.0.1"),),
    "n1": (address("eth9", "fd00::2"), address("enp3s0", "10.0.0.2")),
}


def node(number: int, **frameworks: str) -> Facts:
    """Return a node that listens on all its addresses, and where ranks can meet."""
    held = ADDRESSES[f"n{number}"]
    return {
        LoginFacts: LoginFacts(Login(reached=True)),
        ListenFacts: ListenFacts({address.ip: 4000 + number for address in held}),
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "--python", frameworks),
        MeetingFacts: MeetingFacts(address=held[-1].ip, port=5000 + number),
    }


def context(
    known: Mapping[str, Facts],
    members: SubnetMembers | None = None,
    settings: Settings | None = None,
    plan: LaunchPlan = PLAN,
) -> ProbeContext:
    names = tuple(known)
    cluster = Cluster(tuple(map(Node, names)), known, "0f3a")
    network = Network(SUBNET, ADDRESSES if members is None else members)
    settings = settings or Settings()
    return ProbeContext(cluster, settings, plan, names, dict.fromkeys(names, 1), dict.fromkeys(names, 0), network, {})


BOTH = {"n0": node(0, torch="2.13.0"), "n1": node(1, torch="2.13.0")}


def task(driver: Driver, name: str, stage: Stage = Stage.PAIR, seconds: float = 20.0) -> NodeTask:
    return NodeTask(Step(3, stage, driver.method, ("n0", "n1"), (1, 1), driver.sizes[stage]), name, seconds)


def test_each_of_a_pair_sends_from_its_own_address_to_where_the_other_listens() -> None:
    told = [task_arguments(TCP, context(BOTH), task(TCP, name)) for name in ("n0", "n1")]
    own = [{key: one[key] for key in ("source", "address", "port", "token", "planned", "variables")} for one in told]
    assert own == [
        {
            "source": "10.0.0.1", "address": "10.0.0.2", "port": 4001, "token": "0f3a", "planned": ["eth0"],
            "variables": {},
        },
        {
            "source": "10.0.0.2", "address": "10.0.0.1", "port": 4000, "token": "0f3a", "planned": ["enp3s0"],
            "variables": {},
        },
    ]  # fmt: skip
    assert [one["seconds"] for one in told] == [2.0, 2.0]
    assert task_arguments(TCP, context(BOTH), task(TCP, "n0", seconds=4.0))["seconds"] == 1.0


@pytest.mark.parametrize(("repeats", "seconds"), [(1, 2.0), (5, 2.0), (10, 4.0), (500, 5.0)])
def test_more_repeats_have_more_of_the_steps_time(repeats: int, seconds: float) -> None:
    asked = task(TCP, "n0")
    more = replace(asked, step=replace(asked.step, repeats=repeats))
    assert task_arguments(TCP, context(BOTH), more)["seconds"] == seconds


def test_two_that_share_no_family_cannot_take_part() -> None:
    members = {**ADDRESSES, "n1": ADDRESSES["n1"][:1]}
    with pytest.raises(CannotTakePartError, match="no addresses of the same IP version"):
        task_arguments(TCP, context(BOTH, members), task(TCP, "n0"))


def test_tcp_needs_two_nodes_a_network_and_listeners() -> None:
    assert TCP.unfit(context(BOTH)) == ""
    assert TCP.unfit(context({"n0": node(0)})) == "a single node has no other node to send to"
    assert TCP.unfit(context(BOTH, {})) == "n[0-1] has no address in the plan's network"
    deaf = {**BOTH, "n1": {**node(1), ListenFacts: ListenFacts({}, {"10.0.0.2": "gone"})}}
    assert TCP.unfit(context(deaf)) == "no agent listens on n1 in the plan's network"
    quiet = Settings(mesh="none")
    assert TCP.unfit(context(deaf, settings=quiet)).startswith("--mesh none was given, and no agent listens ")


def test_the_ranks_of_gloo_meet_at_the_first_nodes_store_under_the_plans_variables() -> None:
    assert GLOO.meeting(context(BOTH), "n1") == {"address": "fd00::2"}
    told = [task_arguments(GLOO, context(BOTH), task(GLOO, name, Stage.ALL)) for name in ("n0", "n1")]
    own = [{key: one[key] for key in ("meeting", "first", "planned", "variables", "method")} for one in told]
    meeting = {"address": "10.0.0.1", "port": 5000}
    assert own == [
        {"meeting": meeting, "first": 0, "planned": ["eth0"], "variables": {"NCCL_DEBUG": "WARN"}, "method": "gloo"},
        {
            "meeting": meeting, "first": 1, "planned": ["enp3s0"], "method": "gloo",
            "variables": {"NCCL_DEBUG": "WARN", "GLOO_SOCKET_IFNAME": "enp3s0"},
        },
    ]  # fmt: skip


def test_without_a_store_no_rank_of_gloo_can_take_part() -> None:
    silent = {**BOTH, "n0": {**BOTH["n0"], MeetingFacts: MeetingFacts(why="ModuleNotFoundError: torch")}}
    with pytest.raises(CannotTakePartError, match="ModuleNotFoundError: torch"):
        task_arguments(GLOO, context(silent), task(GLOO, "n1"))


def test_gloo_needs_torch_on_every_node_and_a_network() -> None:
    assert GLOO.unfit(context(BOTH)) == ""
    without = {**BOTH, "n1": node(1, tensorflow="2.16")}
    assert GLOO.unfit(context(without)) == "the job's interpreter has no torch on n1"
    assert GLOO.unfit(context({"n0": BOTH["n0"]})) == "a single node has no other node to send to"


def test_neither_calls_itself_nccl() -> None:
    assert (TCP.method, GLOO.method) == (Method.TCP, Method.GLOO)


def test_what_cpus_cannot_do_is_said() -> None:
    assert {op: TCP.lacks(context(BOTH), op) for op in Op} == {
        Op.ALL_REDUCE: "", Op.SEND_RECV: "", Op.ALL_GATHER: "tcp has no all-gather",
        Op.REDUCE_SCATTER: "tcp has no reduce-scatter", Op.ALL_TO_ALL: "tcp has no all-to-all",
        Op.BROADCAST: "tcp has no broadcast",
    }  # fmt: skip
    lacking = {op: why for op in Op if (why := GLOO.lacks(context(BOTH), op))}
    assert lacking == {Op.REDUCE_SCATTER: "gloo has no reduce-scatter"}
