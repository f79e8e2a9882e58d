"""What the run shows by itself: rails that carried nothing, and who carried most."""

from __future__ import annotations

from ncheck.model.op import Op
from ncheck.probe.links.ceiling import Component
from ncheck.probe.node_result import Carried, Method, NodeResult, Stage, Step
from ncheck.probe.shortfalls import Observation, busiest, idle_rails, observations

from tests.ncheck.probe.machines import H100, L40S, board, bus, places


def result(ranks: int, *counts: int, used: tuple[str, ...] = (), op: Op = Op.ALL_REDUCE) -> NodeResult:
    step = Step(1, Stage.ALL, Method.NCCL, ("n1", "n2"), (ranks, ranks), (2**30,), op=op)
    carried = {place: Carried(count, count) for place, count in zip(places(len(counts)), counts, strict=True)}
    return NodeResult(step, (), planned=("eth0", *places(len(counts))), carried=carried, used=used)


def test_the_busiest_is_the_one_that_carried_most() -> None:
    assert busiest(result(1, 0, 10**9, 10**6)) == "mlx5_1:1"
    assert busiest(result(1, 0, 0)) == ""


def test_a_rail_that_carried_next_to_nothing_beside_others_is_idle() -> None:
    assert idle_rails([result(8, 10**9, 10**6, 10**9)]) == ("mlx5_1:1",)
    for op, idle in ((Op.ALL_TO_ALL, ("mlx5_1:1",)), (Op.SEND_RECV, ()), (Op.BROADCAST, ())):
        assert idle_rails([result(8, 10**9, 10**6, 10**9, op=op)]) == idle, "a ring of ranks crosses by one NIC"


def test_one_rank_a_node_uses_one_rail_and_tells_nothing_of_the_others() -> None:
    assert idle_rails([result(1, 10**9, 0, 0), result(8, 0, 0)]) == ()


def test_what_nccl_says_of_gpudirect_and_lanes_that_are_missing_are_told_as_lines() -> None:
    said = "n1:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    hardware = board(L40S, 2, "PIX", pcie=bus(2, 4, GPU1=8))
    assert observations("n1", hardware, [result(8, 10**9, 10**9, used=(said,))]) == (
        Observation(Component.GPUDIRECT, "NCCL's log: GPUDirect RDMA is off for mlx5_0 of n1"),
        Observation(Component.PCIE, "PCIe x8 of x16 at GPU 1 of n1"),
    )


def test_a_sound_node_shows_nothing() -> None:
    assert observations("n1", board(H100, 8, pcie=bus(8, 5)), [result(8, 10**9, 10**9)]) == ()
