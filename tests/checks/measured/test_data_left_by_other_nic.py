"""NC703: the bytes of an all-reduce left by a card that the plan does not name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.parse.interface_names import Kind
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Carried, Method, NodeResult, Step
from ncheck.steps.judge import judge
from ncheck_checks.measured.data_left_by_other_nic import data_left_by_other_nic

from .results import MIB, late, sent, step, well

GIB = 1024 * MIB
PAIR, SOCKETS = step(1, "n1", "n2"), step(1, "n1", "n2", method=Method.TCP)


def nic(name: str, index: int, kind: Kind = Kind.PHYSICAL, address: str = "", **more: object) -> Interface:
    addresses = (Address(address, 24),) if address else ()
    return Interface(name, index, kind, up=True, running=True, mtu=1500, addresses=addresses, **more)  # type: ignore[arg-type]


NICS = (
    nic("lo", 1, Kind.LOOPBACK, "127.0.0.1"),
    nic("eth0", 2, address="10.1.0.1"),
    nic("eth1", 3, address="10.2.0.1", hca="mlx5_0"),
    nic("docker0", 4, Kind.CONTAINER_BRIDGE, "172.17.0.1"),
    nic("bond0", 5, Kind.BOND, "10.3.0.1"),
    nic("eth4", 6, master="bond0"),
    nic("eth5", 7, master="bond0"),
    nic("bond0.7", 8, Kind.VLAN, "10.4.0.1", peer_index=5),
    nic("bond0.8", 9, Kind.VLAN, "10.5.0.1", peer_index=5),
)


def node(result: NodeResult) -> dict[str, Facts]:
    return {"n1": {ProbeFacts: ProbeFacts((result,)), NicFacts: NicFacts(NICS)}}


def went(planned: tuple[str, ...], carried: Mapping[str, Carried], one: Step = PAIR) -> dict[str, Facts]:
    return node(well(one, planned=planned, carried=carried))


def test_the_card_that_carried_the_data_instead_is_named_with_what_each_moved() -> None:
    assert judge([data_left_by_other_nic], went(("eth1",), sent(eth0=GIB, eth1=MIB, lo=5 * GIB))).findings == [
        Finding("NC703", "data-left-by-other-nic", Severity.ERROR, ("n1",),
                "data left through eth0 instead of eth1: 1.07 GB through eth0, 1.05 MB through the planned devices",
                ("lo: 5.37 GB sent, 5.37 GB received", "eth0: 1.07 GB sent, 1.07 GB received",
                 "eth1 (planned): 1.05 MB sent, 1.05 MB received"),
                "ncheck plan nodes.txt", where="here", kind="look", summary="data left by another interface"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("planned", "carried"),
    [
        pytest.param(
            ("bond0.7",), sent(**{"bond0.7": 0, "bond0.8": GIB, "bond0": GIB, "eth4": GIB}), id="another VLAN"
        ),
        pytest.param(("mlx5_0:1", "eth0"), sent(mlx5_0__1=0, eth0=GIB), id="sockets under a pin to IB"),
        pytest.param(("mlx5_0:1", "eth0"), sent(mlx5_0__1=0, mlx5_3__1=GIB, eth0=MIB), id="another HCA"),
    ],
)
def test_it_fires_wherever_the_planned_devices_did_not_carry_it(
    planned: tuple[str, ...], carried: Mapping[str, Carried]
) -> None:
    one = step(1, "n1", "n2", net="IB" if ":" in planned[0] else "")
    assert len(judge([data_left_by_other_nic], went(planned, carried, one)).findings) == 1


@pytest.mark.parametrize(
    ("planned", "carried"),
    [
        pytest.param(("eth1",), sent(eth0=3 * MIB, eth1=GIB), id="the plan's card carried it"),
        pytest.param(("eth1",), sent(eth0=50 * GIB, eth1=GIB), id="a storage network is busy meanwhile"),
        pytest.param(("eth0", "eth1"), sent(eth0=GIB, eth1=0), id="one of two planned cards carried all"),
        pytest.param(("bond0",), sent(bond0=GIB, eth4=GIB, eth5=MIB), id="the slaves of a bond"),
        pytest.param(("bond0.7",), sent(**{"bond0.7": GIB, "bond0": GIB, "eth4": GIB}), id="what a VLAN stands on"),
        pytest.param(("mlx5_0:1",), sent(mlx5_0__1=0, eth1=GIB), id="an HCA that counts by its interface"),
        pytest.param(("eth1",), sent(eth1=0, docker0=GIB, lo=GIB), id="what never leaves the node"),
        pytest.param(("eth1",), sent(eth0=3 * MIB, eth1=0), id="too little to say anything"),
    ],
)
def test_it_is_silent_where(planned: tuple[str, ...], carried: Mapping[str, Carried]) -> None:
    assert judge([data_left_by_other_nic], went(planned, carried)).findings == []


def test_it_is_skipped_where_the_plans_devices_have_no_counters_and_inside_a_node() -> None:
    alone = node(well(step(1, "n1"), planned=("eth1",), carried=sent(eth0=GIB, eth1=0)))
    failed = node(late(PAIR, planned=("eth1",), carried=sent(eth0=GIB, eth1=0)))
    for nodes in (went(("mlx5_9:1",), sent(eth0=GIB)), alone, failed, went((), sent(eth0=GIB))):
        verdicts = judge([data_left_by_other_nic], nodes).verdicts
        assert [(one.outcome, one.reason) for one in verdicts] == [
            (Outcome.SKIPPED, "no step with other nodes has counters for all planned devices")
        ]


def test_the_worst_step_of_several_is_told() -> None:
    results = tuple(
        well(replace(SOCKETS, round=number), planned=("eth1",), carried=sent(eth0=count, eth1=0))
        for number, count in enumerate((GIB, 3 * GIB, 2 * GIB), start=1)
    )
    nodes: dict[str, Facts] = {"n1": {ProbeFacts: ProbeFacts(results), NicFacts: NicFacts(NICS)}}
    (finding,) = judge([data_left_by_other_nic], nodes).findings
    assert finding.message.endswith("instead of eth1: 3.22 GB through eth0, 0 B through the planned devices")


def test_what_other_operations_move_is_judged_but_what_a_broadcast_does_not() -> None:
    for op, number in ((Op.ALL_TO_ALL, 1), (Op.SEND_RECV, 1), (Op.BROADCAST, 0)):
        nodes = went(("eth1",), sent(eth0=GIB, eth1=MIB), step(1, "n1", "n2", op=op))
        assert len(judge([data_left_by_other_nic], nodes).findings) == number
