"""The values of a node in the report: those of its facts, and a reason for each that is not there."""

from __future__ import annotations

from ncheck.facts.topology import TopologyFacts
from ncheck.model.fact import name_of
from ncheck.model.system import System, SystemDisk, SystemGpus, SystemInterface, SystemMachine, SystemPort
from ncheck.system import system_of

from tests.recorded.replayed import replayed

TOPICS = {
    "gpus", "cuda_toolkit", "cudnn", "nccl", "net_plugin", "mpi", "horovod", "python", "ports", "interfaces", "machine",
    "os", "disks", "topology",
}  # fmt: skip


NO_PLUGIN = {"net_plugin": "no network plug-in of NCCL"}
CARD = ("bnxt_en", "229.1.123.0")


def systems(cluster: str) -> dict[str, System]:
    return replayed(cluster).system_of


def test_a_healthy_node_has_every_value() -> None:
    report = replayed("mixed-nccl")
    assert [system.nodes for system in report.systems] == [("gpu01", "gpu02", "gpu04"), ("gpu03",)]
    assert report.nodes[2].addresses["eno1"] == ("10.20.0.13/24", "fe80::3:2/64")
    system = report.system_of["gpu03"]
    assert system.gpus == SystemGpus(8, {"NVIDIA H100 80GB HBM3": 8}, "550.127.08", "12.4", 684166479872)
    assert (system.nccl, system.nccl_path) == ("2.20.5", "/usr/lib/x86_64-linux-gnu/libnccl.so.2.20.5")
    assert (system.cuda_toolkit, system.cuda_toolkit_path) == ("12.4.1", "/usr/local/cuda-12.4")
    cudnn = (system.cudnn, system.cudnn_path, system.system_cudnn)
    assert cudnn == ("9.1.0", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0", ("9.1.0",))
    assert (system.mpi, system.mpi_version, system.horovod) == ("Open MPI", "4.1.6", "0.28.1")
    assert (system.python, system.python_version) == ("/usr/bin/python3", "3.10.12")
    assert system.frameworks == {"horovod": "0.28.1", "torch": "2.5.1+cu124"}
    assert system.ports
    assert system.ports[0] == SystemPort(
        "mlx5_0:1", "Active", "LinkUp", 400, "InfiniBand", "ConnectX-7 (MT4129)", "28.39.1002"
    )
    assert len(system.ports) == 8
    assert system.interfaces
    assert system.interfaces[:2] == (
        SystemInterface("eno1", "physical", True, 1500, 25.0, "10.20.0.0/24", *CARD),  # noqa: FBT003  its columns
        SystemInterface("eno2", "physical", False, 1500, None, "", *CARD),  # noqa: FBT003  the same
    )
    assert system.machine == SystemMachine(
        "5.15.0-105-generic", "x86_64", "Supermicro SYS-821GE-TNHR", "Intel(R) Xeon(R) Platinum 8468", 2, 96, 192, 2,
        2163873042432,
    )  # fmt: skip
    assert (system.os, system.container, system.image) == ("Ubuntu 22.04.4 LTS", "", "")
    assert system.container_toolkit == "1.16.2"
    assert system.disks == (
        SystemDisk("home", "nfs4", 109951162777600),
        SystemDisk("root", "ext4", 1886218649600),
    )
    assert system.topology == "8 GPUs, NV18 all to all, one NIC PIX each"
    assert (system.absent, system.unknown) == (NO_PLUGIN, {})


def test_a_matrix_that_is_not_even_is_said_in_a_line() -> None:
    pairs = {("GPU0", "GPU1"): "NV4", ("GPU0", "GPU2"): "SYS", ("GPU1", "GPU2"): "SYS"}
    paths = {("GPU0", "NIC0"): "PIX", ("GPU1", "NIC0"): "PIX", ("GPU2", "NIC0"): "SYS"}
    uneven = TopologyFacts(("GPU0", "GPU1", "GPU2"), ("NIC0",), {**pairs, **paths}, {}, {}, {})
    assert (
        system_of({TopologyFacts: uneven}, {}).topology
        == "3 GPUs, NV4 between 1 of 3 pairs, SYS between 2 of 3 pairs, nearest NIC PIX for 2, nearest NIC SYS for 1"
    )
    one = TopologyFacts(("GPU0",), (), {}, {}, {}, {})
    assert system_of({TopologyFacts: one}, {}).topology == "1 GPU"


def test_of_a_node_that_was_not_reached_everything_is_unknown_with_the_reason() -> None:
    system = systems("one-node-down")["gpu03"]
    assert system == System(nodes=("gpu03",), unknown=dict.fromkeys(TOPICS, "not reached (refused)"))


def test_a_bridge_of_containers_is_no_interface_for_data() -> None:
    interfaces = systems("docker0-and-veth")["gpu01"].interfaces or ()
    assert {"docker0", "lo"} & {one.name for one in interfaces} == set()


def test_each_finding_has_the_title_of_its_page_and_the_command_that_prints_it() -> None:
    (finding, *_) = replayed("mixed-nccl").findings
    assert finding.title == "The NCCL version differs between nodes"
    assert finding.page == "ncheck explain NC201"


def test_a_plug_ins_own_fact_of_the_same_name_is_another_fact() -> None:
    own = type("OsFacts", (), {"__module__": "site_checks.os"})
    assert system_of({own: own()}, {}) == System(absent={}, unknown={})
    assert name_of(own) == "site_checks.os.OsFacts"
    assert name_of(TopologyFacts) == "TopologyFacts"
