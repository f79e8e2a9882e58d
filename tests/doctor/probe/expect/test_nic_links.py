"""Which network NCCL went by, and which of the rails carried its data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.model.facts import Stage, Turn
from doctor.probe.expect.ceiling import Ceiling
from doctor.probe.expect.hardware import Hardware
from doctor.probe.expect.nic_links import Rails, by_rdma, rails_of
from tests.doctor.probe.machines import board, places, rail, rails, ran, with_rails

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
    assert by_rdma(step, Turn(step, (), planned=planned, used=used)) is answer


def test_the_rails_are_those_that_nccl_names_else_those_of_the_plan() -> None:
    assert rails_of("n1", NODE, Turn(STEP, (), planned=places(4), used=(USING,))) == Rails((rail(1), rail(3)))
    assert rails_of("n1", NODE, Turn(STEP, (), planned=("eth0", *places(2)))) == Rails(rails(2))


def test_a_rail_that_is_not_active_is_dark() -> None:
    found = rails_of("n1", NODE, Turn(STEP, (), planned=places(5)))
    assert found == Rails(rails(4), (rail(4, state="Down"),))


@pytest.mark.parametrize(("hardware", "planned", "what"), [
    (Hardware(), places(1), "the HCAs of n1"), (NODE, ("mlx5_9:1",), "mlx5_9:1 of n1"),
    (NODE, ("eth0",), "which HCAs n1 uses"), (NODE, ("mlx5_4:1",), "which HCAs n1 uses"),
])  # fmt: skip
def test_rails_that_cannot_be_told_are_unknown(hardware: Hardware, planned: tuple[str, ...], what: str) -> None:
    assert rails_of("n1", hardware, Turn(STEP, (), planned=planned)) == Ceiling(None, unknown=(what,))
