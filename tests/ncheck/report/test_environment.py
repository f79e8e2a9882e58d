"""The environment's tables: once for nodes that agree, apart for those that differ; what is unknown says why."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from ncheck.model.board import Board
from ncheck.model.report import NodeSummary, Report
from ncheck.model.system import System, SystemDisk, SystemGpus, SystemInterface, SystemMachine, SystemPort
from ncheck.report import show
from ncheck.report.environment import PropertyRow, environment

from tests.recorded.replayed import replayed

from .test_markdown import texts

MACHINE = SystemMachine("6.8.0-45-generic", "x86_64", "", "AMD EPYC 9654", 2, 192, 384, 2, 1622832254976)
SYSTEM = System(
    gpus=SystemGpus(8, {"NVIDIA H100": 8}, "550.1", "12.4", 8 * 80 * 2**30),
    cuda_toolkit="12.4.1",
    cuda_toolkit_path="/usr/local/cuda-12.4",
    cudnn="9.1.0.70",
    cudnn_path="/home/ann/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
    system_cudnn=("8.9.7",),
    nccl="2.21.5",
    ports=(SystemPort("mlx5_0:1", "Active", "LinkUp", 400.0, "InfiniBand", "ConnectX-7 (MT4129)", "28.39.1002"),
           SystemPort("mlx5_1:1", "Down", "Polling", None, "InfiniBand", "MT4000")),
    interfaces=(SystemInterface("eno1", "physical", True, 9000, 25.0, "10.0.0.0/24", "ice", "4.40"),  # noqa: FBT003
                SystemInterface("ib0", "infiniband", True, 2044, 400.0)),  # noqa: FBT003
    python="/home/ann/venv/bin/python",
    python_version="3.11.7",
    frameworks={"torch": "2.5.1"},
    machine=MACHINE,
    os="Ubuntu 24.04 LTS",
    container="docker",
    container_toolkit="",
    image="",
    disks=(SystemDisk("home", "nfs4", 10 * 2**40), SystemDisk("root", None, None, "Stale file handle")),
    topology="8 GPUs, NV18 all to all, one NIC PIX each",
    absent={"mpi": "no MPI"},
)  # fmt: skip


def report(base: Report, **systems: System) -> Report:
    nodes = tuple(NodeSummary(name, reached=True) for name in systems)
    held = tuple(replace(system, nodes=(name,)) for name, system in systems.items())
    return replace(base, nodes=nodes, systems=held, findings=(), bad=(), measurements=())


def test_every_row_of_a_node(reports: dict[str, Report]) -> None:
    rows = {row.name: row.values for row in environment(report(reports["healthy"], gpu01=SYSTEM))}
    assert {name: text for name, ((text, _),) in rows.items()} == {
        "GPU": "8 x NVIDIA H100, 80 GiB each",
        "GPU topology": "8 GPUs, NV18 all to all, one NIC PIX each",
        "HCAs": "1 x ConnectX-7 (MT4129), firmware 28.39.1002 + 1 x MT4000, firmware unknown",
        "HCA ports": "1 x InfiniBand 400 Gb/s + 1 x InfiniBand rate unknown (Down)",
        "Ethernet": "eno1 25 Gb/s, MTU 9000 (ice, firmware 4.40)",
        "Machine": "model unknown, x86_64",
        "CPU": "2 x AMD EPYC 9654, 192 cores, 384 threads, 2 NUMA nodes",
        "Memory": "1.48 TiB",
        "Disk of the home folder": "nfs4, 10 TiB",
        "Disk of /": "unknown: Stale file handle",
        "OS": "Ubuntu 24.04 LTS",
        "Container": "docker, image unknown: the container does not show it",
        "NVIDIA container toolkit": "unknown: the container does not show it",
        "Kernel": "6.8.0-45-generic",
        "GPU driver": "550.1",
        "CUDA of the driver": "12.4",
        "CUDA toolkit": "12.4.1",
        "cuDNN": "9.1.0.70 (wheel); not loaded: 8.9.7 (system)",
        "NCCL": "2.21.5",
        "MPI": "none (no MPI)",
        "Python": "3.11.7",
        "Frameworks": "torch 2.5.1",
    }


def test_a_node_that_was_not_asked_for_the_container_toolkit_is_not_said_to_lack_it(
    reports: dict[str, Report],
) -> None:
    for asked, rows in ((replace(SYSTEM, container_toolkit=None), []), (replace(SYSTEM, container=""), ["none"])):
        found = environment(report(reports["healthy"], gpu01=asked))
        assert [row.values[0][0] for row in found if row.name == "NVIDIA container toolkit"] == rows


@pytest.mark.parametrize(
    ("path", "version", "system", "text"),
    [
        ("", "", ("8.9.7",), "none that the job loads; not loaded: 8.9.7 (system)"),
        ("/usr/lib64/libcudnn.so.9.1.0", "9.1.0", ("8.9.7", "9.1.0"), "9.1.0 (system); not loaded: 8.9.7 (system)"),
        ("/home/ann/cudnn/libcudnn.so.9", "", (), "version unknown"),
    ],
)
def test_the_cudnn_that_the_job_loads_comes_first(
    reports: dict[str, Report], path: str, version: str, system: tuple[str, ...], text: str
) -> None:
    one = replace(SYSTEM, cudnn=version, cudnn_path=path, system_cudnn=system)
    rows = {row.name: row.values for row in environment(report(reports["healthy"], gpu01=one))}
    assert rows["cuDNN"] == ((text, ("gpu01",)),)


def test_amds_gpus_have_rocm_and_rccl_in_the_place_of_cuda_and_nccl(reports: dict[str, Report]) -> None:
    gpus = SystemGpus(8, {"AMD Instinct MI300X": 8}, "6.16.6", "", 8 * 196592 * 2**20, "7.1.1-38")
    system = replace(SYSTEM, gpus=gpus, nccl="2.22.3", nccl_path="/opt/rocm-7.1.1/lib/librccl.so.1.0.70101")
    rows = {row.name: row.values[0][0] for row in environment(report(reports["healthy"], gpu01=system))}
    assert "CUDA of the driver" not in rows
    assert (rows["GPU"], rows["ROCm"], rows["NCCL"]) == (
        "8 x AMD Instinct MI300X, 192 GiB each",
        "7.1.1-38",
        "2.22.3 (RCCL)",
    )


def test_what_one_kind_of_gpu_has_is_none_on_the_other(reports: dict[str, Report]) -> None:
    gpus = SystemGpus(8, {"AMD Instinct MI300X": 8}, "6.16.6", "", None, "7.1.1")
    made = report(reports["healthy"], gpu01=SYSTEM, gpu02=replace(SYSTEM, gpus=gpus))
    rows = {row.name: row.values for row in environment(made)}
    assert rows["CUDA of the driver"] == (("12.4", ("gpu01",)), ("none", ("gpu02",)))
    assert rows["ROCm"] == (("none", ("gpu01",)), ("7.1.1", ("gpu02",)))


def test_the_network_plug_in_is_beside_nccl(reports: dict[str, Report]) -> None:
    system = replace(SYSTEM, net_plugin="aws-ofi-nccl 1.16.3")
    rows = {row.name: row.values[0][0] for row in environment(report(reports["healthy"], gpu01=system))}
    assert rows["NCCL"] == "2.21.5, network plug-in aws-ofi-nccl 1.16.3"


def test_nodes_that_differ_have_rows_of_their_own_with_the_larger_group_first(reports: dict[str, Report]) -> None:
    other = replace(
        SYSTEM, nccl=None, unknown={"nccl": "it hangs"}, machine=replace(MACHINE, kernel="6.8.0-47-generic")
    )
    made = report(reports["healthy"], gpu01=other, gpu02=SYSTEM, gpu03=SYSTEM)
    assert [row for row in environment(made) if len(row.values) > 1] == [
        PropertyRow("Kernel", (("6.8.0-45-generic", ("gpu02", "gpu03")), ("6.8.0-47-generic", ("gpu01",)))),
        PropertyRow("NCCL", (("2.21.5", ("gpu02", "gpu03")), ("unknown: it hangs", ("gpu01",)))),
    ]


@pytest.fixture
def tables(request: pytest.FixtureRequest) -> list[str]:
    """Return the cells of a recorded cluster's report."""
    stream = io.StringIO()
    show(replayed(request.param), "markdown", stream, {})
    tokens = MarkdownIt("gfm-like", {"linkify": False}).enable("table").parse(stream.getvalue())
    return [*texts(tokens, "th"), *texts(tokens, "td"), *texts(tokens, "paragraph")]


@pytest.mark.parametrize("tables", ["mixed-nccl"], indirect=True)
def test_markdown_has_one_table_of_what_is_alike_and_one_of_what_differs(tables: list[str]) -> None:
    assert tables[tables.index("what") + 1] == "gpu[01-04]"
    at = tables.index("NCCL")
    assert tables[at : at + 6] == ["NCCL", "gpu[01-02,04]", "2.21.5", "NCCL", "gpu03", "2.20.5"]
    assert tables[tables.index("Kernel") + 1] == "5.15.0-105-generic"


@pytest.mark.parametrize("tables", ["one-node-down"], indirect=True)
def test_a_node_that_was_not_reached_is_not_in_the_tables(tables: list[str]) -> None:
    assert "gpu[01-02,04]" in tables
    assert "Not reached, so not in these tables: gpu03" in tables


def test_many_values_are_cut(reports: dict[str, Report]) -> None:
    systems = {f"n{number:02}": replace(SYSTEM, nccl=f"2.{number}") for number in range(20)}
    stream = io.StringIO()
    show(report(reports["healthy"], **systems), "markdown", stream, {})
    assert stream.getvalue().count("| NCCL |") == 13
    assert "| NCCL | n\\[12-19\\] | other values: see -o json |" in stream.getvalue()


def test_no_path_of_a_user_is_shown(reports: dict[str, Report]) -> None:
    stream = io.StringIO()
    show(report(reports["healthy"], gpu01=SYSTEM), "markdown", stream, {})
    assert "ann" not in stream.getvalue()


def test_a_run_that_asked_nothing_has_no_tables(reports: dict[str, Report]) -> None:
    stream = io.StringIO()
    show(report(reports["healthy"], gpu01=System()), "markdown", stream, {})
    assert "Environment" not in stream.getvalue()


def test_each_kind_of_node_has_its_matrix_as_a_block_of_code(reports: dict[str, Report]) -> None:
    rows = (("", "GPU0", "mlx5_0", "CPU Affinity"), ("GPU0", "X", "PIX", "0-47"), ("mlx5_0", "PIX", "X", ""))
    one = Board((), (), (), (), "", ("gpu01", "gpu03"), "nvidia-smi", rows)
    other = replace(one, nodes=("gpu02",), source="the PCI bus and NVML", matrix=rows[:2])
    made = replace(report(reports["healthy"], gpu01=SYSTEM), boards=(one, other))
    stream = io.StringIO()
    show(made, "markdown", stream, {})
    assert (
        "GPU topology of gpu\\[01,03\\], from nvidia-smi:\n\n```text\n"
        "        GPU0  mlx5_0  CPU Affinity\nGPU0    X     PIX     0-47\nmlx5_0  PIX   X\n```\n\n"
        "GPU topology of gpu02, from the PCI bus and NVML:\n\n```text\n"
        "      GPU0  mlx5_0  CPU Affinity\nGPU0  X     PIX     0-47\n```\n"
    ) in stream.getvalue()
