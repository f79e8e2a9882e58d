"""What is said of a matrix, and its drawing."""

from __future__ import annotations

from ncheck.read.text import read_as

TWO_SOCKETS = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tSYS\tSYS\tPIX\tSYS\t0-31\t0
GPU1\tNV4\t X \tSYS\tSYS\tPIX\tSYS\t0-31\t0
GPU2\tSYS\tSYS\t X \tNV4\tSYS\tPHB\t32-63\t1
GPU3\tSYS\tSYS\tNV4\t X \tSYS\tNODE\t32-63\t1
NIC0\tPIX\tPIX\tSYS\tSYS\t X \tSYS
NIC1\tSYS\tSYS\tPHB\tNODE\tSYS\t X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""


def said(text: str) -> list[str]:
    return [f"{remark.level}: {remark.text}" for remark in read_as("topo", text).remarks]


def test_the_worst_hop_of_a_ring_and_the_rails() -> None:
    assert said(TWO_SOCKETS) == [
        "info: worst hop of a ring over all 4 GPUs: SYS (the link between the CPUs)",
        "warning: no NIC within the host bridge of GPU3 (nearest mlx5_1: NODE), although 3 other GPUs have one",
        "info: GPU0, GPU1 share NIC0 as their nearest NIC",
        "info: GPU2, GPU3 share NIC1 as their nearest NIC",
    ]


def test_a_ring_takes_the_best_way_round() -> None:
    """GPU0 and GPU2 have no link, but a ring need not join them."""
    text = "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV2\tPHB\tNV1\nGPU1\tNV2\t X \tNV1\tPHB\n"
    text += "GPU2\tPHB\tNV1\t X \tNV2\nGPU3\tNV1\tPHB\tNV2\t X \n"
    assert said(text)[0] == "info: worst hop of a ring over all 4 GPUs: NV1 (NVLink)"


def test_a_gpu_without_nvlink_among_others_and_a_matrix_of_two_minds() -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\tPHB\nGPU1\tNV4\t X \tSYS\nGPU2\tPHB\tPHB\t X \n"
    assert said(text)[:2] == [
        "warning: GPU1 to GPU2 is SYS, but GPU2 to GPU1 is PHB: one of the two rows is wrong",
        "info: no NVLink at GPU2: usual where bridges join pairs of GPUs",
    ]


def test_a_truncated_matrix_says_what_is_missing() -> None:
    assert said("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\tNV4\n")[0] == (
        "warning: the text is cut: no path from GPU1 to GPU2 and 1 more"
    )


def test_the_drawing() -> None:
    assert read_as("topo", TWO_SOCKETS).drawing == (
        "NUMA node 0: CPUs 0-31",
        "  host bridge",
        "    PCIe switch: GPU0, GPU1, NIC0 (mlx5_0)",
        "NUMA node 1: CPUs 32-63",
        "  host bridge",
        "    directly: GPU2",
        "    directly: NIC1 (mlx5_1)",
        "  no device near: GPU3",
        "NVLink NV4: GPU0-GPU1, GPU2-GPU3",
        "rail: GPU0 -> NIC0 (mlx5_0) (PIX)",
        "rail: GPU1 -> NIC0 (mlx5_0) (PIX)",
        "rail: GPU2 -> NIC1 (mlx5_1) (PHB)",
        "rail: GPU3 -> NIC1 (mlx5_1) (NODE)",
    )
