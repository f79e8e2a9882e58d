"""NVLinks: by model how fast, by matrix how many, with a switch and without."""

from __future__ import annotations

import pytest
from ncheck.probe.links.gpu_links import Generation, Wiring, generation_of, wiring_of

from tests.ncheck.probe.machines import CUBE, matrix

HOPPER, BLACKWELL = Generation(20.6, 18, 0.85), Generation(40.1, 18, 0.74)
AMPERE, SMALL_AMPERE, VOLTA = Generation(20.0, 12), Generation(12.0, 4), Generation(20.0, 6)


@pytest.mark.parametrize(("models", "generation"), [
    (("NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL", "NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA H800", "NVIDIA H20",
      "NVIDIA GH200 480GB"), HOPPER),
    (("NVIDIA B200", "NVIDIA GB200", "NVIDIA B300 SXM6 AC", "NVIDIA GB300"), BLACKWELL),
    (("NVIDIA A100-SXM4-80GB", "A100-SXM4-40GB", "NVIDIA A100 80GB PCIe", "NVIDIA A800-SXM4-80GB", "NVIDIA A30"),
     AMPERE),
    (("NVIDIA A40", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 3090"), SMALL_AMPERE),
    (("Tesla V100-SXM2-16GB", "Tesla V100-SXM3-32GB", "Tesla V100S-PCIE-32GB"), VOLTA),
    (("Tesla P100-SXM2-16GB",), Generation(18.0, 4)),
    (("NVIDIA L40S", "NVIDIA L4", "Tesla T4", "NVIDIA GeForce RTX 4090", "NVIDIA RTX 6000 Ada Generation",
      "NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA X900", "NVIDIA A1000", ""), None),
])  # fmt: skip
def test_the_generation_is_told_by_the_models_name(models: tuple[str, ...], generation: Generation | None) -> None:
    assert {model: generation_of(model) for model in models} == dict.fromkeys(models, generation)


@pytest.mark.parametrize(("count", "level", "most", "wiring"), [
    (8, "NV18", 18, Wiring(18, switched=True)), (8, "NV8", 12, Wiring(8, switched=True)),
    (16, "NV6", 6, Wiring(6, switched=True)), (4, "NV4", 12, Wiring(12, switched=False)),
    (2, "NV12", 18, Wiring(12, switched=False)), (8, "SYS", 18, None), (2, "PIX", 18, None),
])  # fmt: skip
def test_links_are_those_to_the_switch_or_those_of_all_pairs(
    count: int, level: str, most: int, wiring: Wiring | None
) -> None:
    topology = matrix(count, level)
    assert wiring_of(topology, topology.gpus, most) == wiring


def test_a_cube_of_eight_has_a_ring_over_all_and_over_four() -> None:
    cube = matrix(8, "SYS", {pair: f"NV{links}" for pair, links in CUBE.items()})
    assert wiring_of(cube, cube.gpus, 6) == Wiring(6, switched=False)
    assert wiring_of(cube, cube.gpus[:4], 6) == Wiring(4, switched=False)
    assert wiring_of(cube, ("GPU0", "GPU5"), 6) is None


def test_two_pairs_with_bridges_make_no_ring() -> None:
    topology = matrix(4, "NODE", {(0, 1): "NV12", (2, 3): "NV12"})
    assert wiring_of(topology, topology.gpus, 12) is None
    assert wiring_of(topology, topology.gpus[:2], 12) == Wiring(12, switched=False)


def test_a_large_matrix_of_no_ring_is_not_searched_through() -> None:
    topology = matrix(16, "NV1", {(0, other): "SYS" for other in range(1, 16)})
    assert wiring_of(topology, topology.gpus, 12) is None
