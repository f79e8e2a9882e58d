"""The matrix from the PCI bus and NVML is the one that nvidia-smi prints, on boards of several kinds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.infiniband import SYSFS
from ncheck.facts.topology import BUS_AND_NVML, NVLINKS, TOPO, TopologyFacts, topology
from ncheck.fleet.recording import load
from ncheck.model.evidence import Reply, Status
from ncheck.model.fact import Absent, Unread

from tests.boards import CPU, GPU, SWITCH, UNKNOWN, Board, Device, asked, compile_driver, topology_of

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make a library with")
MISSING, HUNG = Reply(Status.MISSING), Reply(Status.TIMEOUT, seconds=10.0)
HEALTHY = load(Path(__file__).parents[3] / "fixtures" / "healthy-4x8-h100")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


def root(number: str) -> str:
    return f"pci0000:{number}"


def port(address: str, *above: str, numa: int = 0, cpus: str = "0-15") -> Device:
    return Device(address, above, numa, cpus)


# Four GPUs of one processor in slots of two host bridges, and a card in a slot of the first.
WORKSTATION = Board(
    gpus={
        "GPU0": port("0000:01:00.0", root("00"), "0000:00:01.0"),
        "GPU1": port("0000:02:00.0", root("00"), "0000:00:02.0"),
        "GPU2": port("0000:41:00.0", root("40"), "0000:40:01.0"),
        "GPU3": port("0000:42:00.0", root("40"), "0000:40:02.0"),
    },
    nics={"mlx5_0": port("0000:03:00.0", root("00"), "0000:00:03.0")},
)
WORKSTATION_PRINTED = """\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tPHB\tNODE\tNODE\tPHB\t0-15\t0
GPU1\tPHB\t X \tNODE\tNODE\tPHB\t0-15\t0
GPU2\tNODE\tNODE\t X \tPHB\tNODE\t0-15\t0
GPU3\tNODE\tNODE\tPHB\t X \tNODE\t0-15\t0
mlx5_0\tPHB\tPHB\tNODE\tNODE\t X
"""

# Two processors; on the first, a switch below a switch. The adapter has two ports: two functions of one device.
LOW, HIGH = (root("15"), "0000:15:01.0", "0000:16:00.0"), (root("97"), "0000:97:01.0", "0000:98:00.0")
TWO_SOCKETS = Board(
    gpus={
        "GPU0": port("0000:18:00.0", *LOW, "0000:17:00.0"),
        "GPU1": port("0000:1c:00.0", *LOW, "0000:17:01.0", "0000:1a:00.0", "0000:1b:00.0"),
        "GPU2": port("0000:9a:00.0", *HIGH, "0000:99:00.0", numa=1, cpus="16-31"),
        "GPU3": port("0000:9b:00.0", *HIGH, "0000:99:01.0", numa=1, cpus="16-31"),
    },
    nics={
        "mlx5_0": port("0000:1d:00.0", *LOW, "0000:17:01.0", "0000:1a:00.0", "0000:1b:01.0"),
        "mlx5_1": port("0000:1d:00.1", *LOW, "0000:17:01.0", "0000:1a:00.0", "0000:1b:01.0"),
    },
    links={
        "GPU0": [(1, GPU, "GPU1")] * 4, "GPU1": [(1, GPU, "GPU0")] * 4,
        "GPU2": [*[(1, GPU, "GPU3")] * 3, (0, GPU, "-")], "GPU3": [*[(1, GPU, "GPU2")] * 3, (0, GPU, "-")],
    },
)  # fmt: skip
TWO_SOCKETS_PRINTED = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tSYS\tSYS\tPXB\tPXB\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tSYS\tPIX\tPIX\t0-15\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tNV3\tSYS\tSYS\t16-31\t1\t\tN/A
GPU3\tSYS\tSYS\tNV3\t X \tSYS\tSYS\t16-31\t1\t\tN/A
NIC0\tPXB\tPIX\tSYS\tSYS\t X \tPIX
NIC1\tPXB\tPIX\tSYS\tSYS\tPIX\t X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""

# A virtual machine with NVSwitch: everything on one bus, without NUMA nodes.
VIRTUAL = Board(
    gpus={f"GPU{slot}": port(f"0000:00:0{slot + 4}.0", root("00"), numa=-1, cpus="0-129") for slot in range(2)},
    nics={"mlx5_0": port("0000:00:06.0", root("00"), numa=-1, cpus="0-129")},
    links={f"GPU{slot}": [(1, SWITCH, f"0000:00:0{7 + link % 2}.0") for link in range(18)] for slot in range(2)},
)
VIRTUAL_PRINTED = """\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tPHB\t0-129\tN/A
GPU1\tNV18\t X \tPHB\t0-129\tN/A
mlx5_0\tPHB\tPHB\t X
"""

# Each device of an Azure machine has a PCI domain of its own. Where the NUMA nodes are not known, it is SYS.
DOMAINS = Board(
    gpus={
        "GPU0": port("0001:00:00.0", "pci0001:00", numa=1, cpus="24-47"),
        "GPU1": port("10002:00:00.0", "pci10002:00", numa=1, cpus="24-47"),
        "GPU2": port("0003:00:00.0", "pci0003:00", numa=-1, cpus="0-47"),
        "GPU3": port("0004:00:00.0", "pci0004:00", numa=-1, cpus="0-47"),
    },
)
DOMAINS_PRINTED = """\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNODE\tSYS\tSYS\t24-47\t1
GPU1\tNODE\t X \tSYS\tSYS\t24-47\t1
GPU2\tSYS\tSYS\t X \tSYS\t0-47\tN/A
GPU3\tSYS\tSYS\tSYS\t X \t0-47\tN/A
"""

ALONE = Board(gpus={"GPU0": port("0000:01:00.0", root("00"), "0000:00:01.0", cpus="0-7")})
ALONE_PRINTED = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\t0\n"

BOARDS = {
    "workstation": (WORKSTATION, WORKSTATION_PRINTED),
    "two sockets": (TWO_SOCKETS, TWO_SOCKETS_PRINTED),
    "virtual machine": (VIRTUAL, VIRTUAL_PRINTED),
    "a domain each": (DOMAINS, DOMAINS_PRINTED),
    "one GPU": (ALONE, ALONE_PRINTED),
}


def by_device(facts: object) -> tuple[object, ...]:
    """Return the matrix with NICs by the names of their devices, however they are printed."""
    assert isinstance(facts, TopologyFacts)
    names = {name: facts.legend.get(name, name) for name in (*facts.gpus, *facts.nics)}
    pairs = {(names[row], names[column]): level for (row, column), level in facts.pairs.items()}
    return facts.gpus, sorted(names[nic] for nic in facts.nics), pairs, facts.cpu_affinity, facts.numa_affinity


@needs_compiler
@pytest.mark.parametrize("name", BOARDS)
def test_both_sources_give_one_matrix(name: str, tmp_path: Path, driver: Path) -> None:
    board, text = BOARDS[name]
    bus, links = asked(board.lay(tmp_path), driver)
    printed = topology_of(board, bus, links, Reply(Status.OK, exit_status=0, stdout=text))
    computed = topology_of(board, bus, links, MISSING)
    assert by_device(computed) == by_device(printed)
    assert (printed.source, computed.source) == ("nvidia-smi", BUS_AND_NVML)


def test_both_sources_give_one_matrix_of_a_recorded_node() -> None:
    node = HEALTHY[0]
    without = replace(node, replies={**node.replies, TOPO.key: HUNG})
    printed, computed = topology(node), topology(without)
    assert by_device(printed) == by_device(computed)
    assert isinstance(computed, TopologyFacts)
    assert computed.hung == "nvidia-smi topo -m did not end within 10 s and was killed"


def test_the_matrix_of_nvidia_smi_counts_where_both_are_there() -> None:
    node = HEALTHY[0]
    failed = replace(node, replies={**node.replies, NVLINKS.key: Reply(Status.FAILED, reason="NVML did not answer")})
    assert topology(failed) == topology(node)


@needs_compiler
def test_an_nvml_that_hangs_is_ended_and_named(tmp_path: Path, driver: Path) -> None:
    bus, links = asked(ALONE.lay(tmp_path), driver, 0.5, NVML_HANGS="1")
    assert (links.status, links.reason) == (Status.FAILED, "NVML did not answer within 0.5 s")
    fact = topology_of(ALONE, bus, links, HUNG)
    assert fact == Unread(
        "nvidia-smi topo -m did not end within 10 s and was killed; nor from the PCI bus and NVML: the agent's nvlinks:"
        " NVML did not answer within 0.5 s",
        fix="timeout 10 nvidia-smi topo -m",
        hung="nvidia-smi topo -m",
    )


@needs_compiler
@pytest.mark.parametrize("function", ["nvmlInit_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetNvLinkState"])
def test_a_gpu_that_was_lost_is_not_one_without_nvlinks(tmp_path: Path, driver: Path, function: str) -> None:
    bus, links = asked(VIRTUAL.lay(tmp_path), driver, NVML_FAILS=function)
    assert (links.status, links.reason) == (Status.FAILED, f"OSError: {function}: GPU is lost")
    assert isinstance(topology_of(VIRTUAL, bus, links, MISSING), Unread)


@needs_compiler
@pytest.mark.parametrize("function", ["nvmlDeviceGetNvLinkState", "nvmlDeviceGetMigMode"])
def test_a_function_that_fails_does_not_say_that_there_is_no_nvlink(
    tmp_path: Path, driver: Path, function: str
) -> None:
    board = replace(VIRTUAL, links={"GPU0": [(1, GPU, "GPU1")], "GPU1": [(1, GPU, "GPU0")]})
    bus, links = asked(board.lay(tmp_path), driver, NVML_FAILS=function, NVML_CODE="999")
    assert (links.status, links.reason) == (Status.FAILED, f"OSError: {function}: Unknown Error")
    assert isinstance(topology_of(board, bus, links, MISSING), Unread)


@needs_compiler
def test_a_gpu_of_another_job_is_left_out(tmp_path: Path, driver: Path) -> None:
    bus, links = asked(VIRTUAL.lay(tmp_path), driver, NVML_FORBIDS="0")
    fact = topology_of(VIRTUAL, bus, links, MISSING)
    assert isinstance(fact, TopologyFacts)
    assert fact.gpus == tuple(f"GPU{index}" for index in range(len(VIRTUAL.gpus) - 1))


@needs_compiler
@pytest.mark.parametrize(("link", "level"), [
    ((1, GPU, "GPU1"), "NV1"), ((1, UNKNOWN, "GPU1"), "NV1"), ((1, CPU, "-"), "PHB"),
    ((1, GPU, "0000:77:00.0"), "PHB"), ((0, GPU, "-"), "PHB"),
    ((1, UNKNOWN, "-"), None), ((1, GPU, "-"), None), ((1, UNKNOWN, "0000:77:00.0"), None),
])  # fmt: skip
def test_what_a_link_leads_to_is_known_or_the_matrix_is_unread(
    tmp_path: Path, driver: Path, link: tuple[int, int, str], level: str | None
) -> None:
    board = replace(VIRTUAL, links={"GPU0": [link], "GPU1": [(1, GPU, "GPU0")]})
    fact = topology_of(board, *asked(board.lay(tmp_path), driver), MISSING)
    assert (fact.pairs["GPU0", "GPU1"] if isinstance(fact, TopologyFacts) else None) == level


@needs_compiler
def test_a_gpu_in_mig_mode_is_known(tmp_path: Path, driver: Path) -> None:
    board = replace(VIRTUAL, mig=("GPU1",))
    bus, links = asked(board.lay(tmp_path), driver)
    for printed in (MISSING, Reply(Status.OK, exit_status=0, stdout=VIRTUAL_PRINTED)):
        assert topology_of(board, bus, links, printed).mig == ("GPU1",)


def test_a_node_without_a_gpu_has_no_topology() -> None:
    none = Board(gpus={})
    absent = Reply(Status.MISSING, reason="no NVIDIA device on PCI")
    assert topology_of(none, Reply(Status.OK, value={"devices": [], "left_out": 0}), absent, MISSING) == Absent(
        "no NVIDIA GPU"
    )


def test_a_container_that_hides_gpus_hides_them_from_the_matrix_too() -> None:
    """The bus shows all eight, NVML those of the container."""
    node = HEALTHY[0]
    links = node.replies[NVLINKS.key].value
    assert isinstance(links, dict)
    assert isinstance(links["gpus"], list)
    two = Reply(Status.OK, value={"gpus": links["gpus"][:2]})
    fact = topology(replace(node, replies={**node.replies, TOPO.key: MISSING, NVLINKS.key: two}))
    assert isinstance(fact, TopologyFacts)
    assert fact.gpus == ("GPU0", "GPU1")


def test_an_adapter_that_cannot_be_placed_is_not_left_out() -> None:
    """A GPU would then seem to have no NIC near it."""
    node = HEALTHY[0]
    tree = node.replies[SYSFS.key]
    for other in (Reply(Status.FAILED, reason="lost"), replace(tree, truncated=True)):
        assert isinstance(topology(replace(node, replies={**node.replies, TOPO.key: HUNG, SYSFS.key: other})), Unread)
    assert isinstance(tree.value, dict)
    moved = {**tree.value, "/sys/class/infiniband/mlx5_9/device": "/sys/devices/pci0000:00/0000:77:00.0"}
    soft = {**tree.value, "/sys/class/infiniband/rxe0/node_guid": "0"}
    facts = [
        topology(replace(node, replies={**node.replies, TOPO.key: HUNG, SYSFS.key: replace(tree, value=value)}))
        for value in (moved, soft)
    ]
    assert isinstance(facts[0], Unread)
    assert facts[0].reason.endswith("nor from the PCI bus and NVML: the PCI bus does not show mlx5_9")
    assert isinstance(facts[1], TopologyFacts)
    assert len(facts[1].nics) == 8
