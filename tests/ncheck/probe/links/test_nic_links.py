"""Which network NCCL went by, and which of the rails carried its data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.parse.interface_names import Kind
from ncheck.probe.expected import Expected, expected
from ncheck.probe.links.ceiling import Ceiling
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.links.nic_links import Rails, by_rdma, rails_of
from ncheck.probe.node_result import Method, NodeResult, Stage

from tests.ncheck.probe.machines import board, places, rail, rails, ran, wired, with_rails

STEP = ran(Stage.PAIR, ["n1", "n2"], 1).step
NODE = with_rails(board("NVIDIA H200", 8), *rails(4), rail(4, state="Down"))
USING = "n1:7:9 [0] NCCL INFO NET/IB : Using [0]mlx5_1:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"


@pytest.mark.parametrize(("net", "planned", "used", "answer"), [
    ("IB", (), (), True), ("Socket", places(2), (), False), ("", places(2), (), True), ("", ("eth0",), (), False),
    ("", ("eth0",), (USING,), True), ("IB", places(2), ("NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",), False),
    ("", places(2), ("NCCL INFO NET/OFI Selected Provider is efa",), None), ("AWS Libfabric", places(2), (), None),
])  # fmt: skip
def test_nccls_own_words_count_before_what_it_was_told(
    net: str, planned: tuple[str, ...], used: tuple[str, ...], answer: object
) -> None:
    step = replace(STEP, net=net)
    assert by_rdma(step, NodeResult(step, (), planned=planned, used=used)) is answer


def test_the_rails_are_those_that_nccl_names_else_those_of_the_plan() -> None:
    assert rails_of("n1", NODE, NodeResult(STEP, (), planned=places(4), used=(USING,))) == Rails((rail(1), rail(3)))
    assert rails_of("n1", NODE, NodeResult(STEP, (), planned=("eth0", *places(2)))) == Rails(rails(2))


def test_a_rail_that_is_not_active_is_dark() -> None:
    found = rails_of("n1", NODE, NodeResult(STEP, (), planned=places(5)))
    assert found == Rails(rails(4), (rail(4, state="Down"),))


@pytest.mark.parametrize(("hardware", "planned", "what"), [
    (NodeHardware(), places(1), "the HCAs of n1"), (NODE, ("mlx5_9:1",), "mlx5_9:1 of n1"),
    (NODE, ("eth0",), "which HCAs n1 uses"), (NODE, ("mlx5_4:1",), "which HCAs n1 uses"),
])  # fmt: skip
def test_rails_that_cannot_be_told_are_unknown(hardware: NodeHardware, planned: tuple[str, ...], what: str) -> None:
    assert rails_of("n1", hardware, NodeResult(STEP, (), planned=planned)) == Ceiling(None, unknown=(what,))


@pytest.mark.parametrize(("hardware", "found"), [
    (wired(1000), Expected(0.1175, "TCP over one interface of 1 Gb/s")),
    (wired(10000), Expected(1.175, "TCP over one interface of 10 Gb/s")),
    (wired(25000), Expected(None, unknown=("how fast one core of n1 copies: eth0 has 25 Gb/s",
                                           "how fast one core of n2 copies: eth0 has 25 Gb/s"))),
    (wired(10000, Kind.VETH),
     Expected(None, unknown=("the speed of eth0 of n1 (veth)", "the speed of eth0 of n2 (veth)"))),
    (wired(None, Kind.CLOUD),
     Expected(None, unknown=("the speed of eth0 of n1 (cloud)", "the speed of eth0 of n2 (cloud)"))),
])  # fmt: skip
def test_tcp_is_expected_only_where_the_wire_is_slower_than_a_core(hardware: NodeHardware, found: Expected) -> None:
    for method, net in ((Method.TCP, ""), (Method.NCCL, "Socket")):
        run = ran(Stage.PAIR, ["n1", "n2"], 1, planned=("eth0",), method=method, net=net)
        told = expected(run, {"n1": hardware, "n2": hardware})
        assert replace(told, busbw=told.busbw and round(told.busbw, 6)) == found


def test_sockets_of_more_than_one_pair_and_gloo_expect_nothing() -> None:
    held = replace(NODE, nics=wired(10000).nics)
    run = ran(Stage.ALL, ["n1", "n2", "n3"], 8, planned=("eth0",), net="Socket")
    several = "the bandwidth of sockets between more than two ranks"
    assert expected(run, dict.fromkeys(run.step.group, held)).unknown == (several,)
    gloo = ran(Stage.PAIR, ["n1", "n2"], 1, planned=("eth0",), method=Method.GLOO)
    assert expected(gloo, dict.fromkeys(gloo.step.group, wired(10000))).unknown == ("the bandwidth of gloo on CPUs",)


def test_a_plug_in_that_carries_the_data_leaves_it_unknown() -> None:
    said = "n1:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa"
    run = ran(Stage.ALL, ["n1", "n2", "n3"], 8, planned=places(8), used=(said,))
    held = with_rails(board("NVIDIA H200", 8), *rails(8))
    assert expected(run, dict.fromkeys(run.step.group, held)).unknown == ("the bandwidth of the network plug-in",)
