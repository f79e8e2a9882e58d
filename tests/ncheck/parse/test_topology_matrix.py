"""The matrix of `nvidia-smi topo -m`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ncheck.parse.topology_matrix import Matrix, closest_nics, parse_topology

MATRIX = """\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPIX\tSYS\t0-31,64-95\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tPXB\t32-63,96-127\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_2
  NIC1: rocep77s0f1
"""
SAME = {
    ("GPU0", "GPU1"): "NV18", ("GPU0", "NIC0"): "PIX", ("GPU0", "NIC1"): "SYS", ("GPU1", "NIC0"): "SYS",
    ("GPU1", "NIC1"): "PXB", ("NIC0", "NIC1"): "SYS",
}  # fmt: skip
FACTS = Matrix(
    gpus=("GPU0", "GPU1"),
    nics=("NIC0", "NIC1"),
    pairs={
        **SAME,
        **{(other, one): path for (one, other), path in SAME.items()},
        **{(name, name): "X" for name in ("GPU0", "GPU1", "NIC0", "NIC1")},
    },
    legend={"NIC0": "mlx5_2", "NIC1": "rocep77s0f1"},
    cpu_affinity={"GPU0": "0-31,64-95", "GPU1": "32-63,96-127"},
    numa_affinity={"GPU0": "0", "GPU1": "1"},
    gpu_numa_id={"GPU0": "N/A", "GPU1": "N/A"},
)


def wrapped(text: str, width: int = 40) -> str:
    flat = text.expandtabs().split("\n")
    return "\n".join(line[at : at + width] for line in flat for at in range(0, max(len(line), 1), width))


def test_the_matrix_is_read_whole() -> None:
    assert parse_topology(MATRIX) == (FACTS, ())


@pytest.mark.parametrize(
    "pasted",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.expandtabs(),
        lambda text: text.lstrip("\t"),
        lambda text: "\x1b[4m" + text.replace("ID\n", "ID\x1b[0m\n"),
        lambda text: "\n".join("> " + line for line in text.split("\n")),
        lambda text: "\n".join("gpu07: " + line for line in text.split("\n")),
        lambda text: "$ srun -N1 nvidia-smi topo -m\n" + text + "\n$ exit\n",
        lambda text: "\n".join(" ".join(line.split()) for line in text.split("\n")),
        lambda text: text.replace("NIC0\tNIC1\tCPU", "NIC0NIC1\tCPU").replace("PIX\tSYS\t0", "PIXSYS\t0"),
        wrapped,
    ],
)
def test_what_a_paste_does_to_the_matrix_is_undone(pasted: Callable[[str], str]) -> None:
    assert parse_topology(pasted(MATRIX)) == (FACTS, ())


def test_a_direction_that_was_cut_off_is_taken_from_the_other_row() -> None:
    facts, _ = parse_topology(MATRIX.split("NIC0\tPIX", maxsplit=1)[0])
    assert (facts.pairs["NIC1", "GPU1"], facts.nics, facts.legend) == ("PXB", ("NIC0", "NIC1"), {})


def test_garbage_in_the_legend_is_named_and_not_believed() -> None:
    facts, unreadable = parse_topology(MATRIX.replace("NIC0: mlx5_2", "NIC0: IX      PIX     PIX"))
    assert (facts.legend, unreadable) == ({"NIC1": "rocep77s0f1"}, ("NIC0",))


def test_a_driver_of_2017_prints_soc_and_no_numa() -> None:
    old = (
        "\tGPU0\tGPU1\tmlx4_0\tCPU Affinity\n"
        "GPU0\t X \tSOC\tPHB\t0-9\nGPU1\tSOC\t X \tSOC\t10-19\nmlx4_0\tPHB\tSOC\t X\n"
    )
    facts, _ = parse_topology(old)
    assert (facts.nics, facts.cpu_affinity["GPU1"], facts.numa_affinity, facts.gpu_numa_id) == (
        ("mlx4_0",), "10-19", {}, None,
    )  # fmt: skip
    assert closest_nics(facts, "GPU1") == (("mlx4_0",), "SOC")


def test_the_closest_nics_are_those_on_the_shortest_path() -> None:
    assert [closest_nics(FACTS, gpu) for gpu in FACTS.gpus] == [(("NIC0",), "PIX"), (("NIC1",), "PXB")]


@pytest.mark.parametrize(
    "text",
    [
        "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n",
        "Failed to initialize NVML: Driver/library version mismatch\n",
        "",
    ],
)
def test_another_matrix_or_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="topo -m"):
        parse_topology(text)


def test_a_page_that_calls_the_numa_column_numa_alone_is_understood() -> None:
    facts, _ = parse_topology("GPU0 GPU1 CPU Affinity NUMA\nGPU0 X NV18 0-51 0\nGPU1 NV18 X 52-103 1\n")
    assert (facts.cpu_affinity["GPU1"], facts.numa_affinity["GPU1"], facts.gpu_numa_id) == ("52-103", "1", None)


def test_a_matrix_of_another_makers_devices_is_an_error() -> None:
    with pytest.raises(ValueError, match="no GPU among"):
        parse_topology("| TOOL | Device 0 | Device 1 |\n| Device 0 | X | NODE |\n| Device 1 | NODE | X |\n")
