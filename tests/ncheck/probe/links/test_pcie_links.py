"""PCIe between GPUs as NCCL counts on it, and to a card as it streams."""

from __future__ import annotations

import pytest
from ncheck.facts.pcie import PcieLink, Processor
from ncheck.probe.links.ceiling import Ceiling
from ncheck.probe.links.pcie_links import between_gpus, to_device

from tests.ncheck.probe.machines import L40S, board, bus, lanes


@pytest.mark.parametrize(("processor", "speed"), [
    (Processor("GenuineIntel", 6, 207), 40.0), (Processor("GenuineIntel", 6, 143), 22.0),
    (Processor("GenuineIntel", 6, 106), 10.0), (Processor("GenuineIntel", 6, 79), 6.0),
    (Processor("AuthenticAMD", 26, 2), 16.0), (Processor("CentaurHauls", 7, 59), None), (None, None),
])  # fmt: skip
def test_the_way_between_processors_is_told_by_their_model(processor: Processor | None, speed: float | None) -> None:
    hardware = board(L40S, 2, "SYS", pcie=bus(2, 5, processor))
    assert between_gpus("n1", hardware, ("GPU0", "GPU1")).busbw == speed


@pytest.mark.parametrize(("generation", "speed"), [(3, 12.0), (4, 24.0), (5, 48.0)])
def test_gpus_behind_one_switch_have_their_link(generation: int, speed: float) -> None:
    hardware = board(L40S, 4, "PIX", pcie=bus(4, generation))
    assert between_gpus("n1", hardware, ("GPU0", "GPU1", "GPU2", "GPU3")) == Ceiling(
        speed, f"PCIe {generation}.0 x16 between GPUs"
    )


def test_a_ring_crosses_the_farthest_hop_that_it_cannot_avoid() -> None:
    """GPU0 sees GPU2 across the processors, and a chain of nearer hops leads there all the same."""
    near = board(L40S, 3, "PXB", {(0, 2): "SYS"}, bus(3, 4))
    assert between_gpus("n1", near, ("GPU0", "GPU1", "GPU2")).busbw == 24.0


def test_a_card_that_fills_its_link_is_not_limited_by_it() -> None:
    for rate, generation in ((400, 5), (200, 4), (100, 3)):
        found = to_device("mlx5_0", "n1", lanes(generation))
        assert found is not None
        assert found.busbw is not None
        assert found.busbw > rate / 8


def test_an_idle_gpu_is_held_to_the_speed_that_it_can_have() -> None:
    idle = (PcieLink(16, 2.5, 16, 32.0),)
    awake = to_device("GPU 0", "n1", idle, idle=True)
    assert awake == to_device("GPU 0", "n1", lanes())
    assert to_device("mlx5_0", "n1", idle) != awake


def test_a_link_of_which_nothing_is_known_limits_nothing() -> None:
    assert to_device("mlx5_0", "n1", (PcieLink(None, None, None, None),)) is None
    assert to_device("mlx5_0", "n1", ()) is None
