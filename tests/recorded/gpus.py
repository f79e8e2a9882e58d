"""What a node with NVIDIA GPUs answers: NVML, nvidia-smi, its topology matrix, PCI, and the kernel log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.gpus import DEVICES, NVML, SMI, SMI_QUERY
from ncheck.facts.kernel_log import DMESG, JOURNAL
from ncheck.facts.topology import TOPO
from ncheck.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host

MIB = 2**20
MEMORY, USED, HELD = 81559, 4, 73626  # MiB
BUSES = ("18", "2c", "40", "5a", "98", "ac", "c0", "da")
AFFINITY = ("0-47,96-143", "48-95,144-191")

_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

"""


def numa(index: int) -> int:
    """Return the NUMA node of a GPU and of the HCA beside it: the first half of eight, or the second."""
    return index // 4


def gpu_replies(host: Host) -> dict[str, Reply]:
    """Return every answer about GPUs, by source key."""
    denied = Reply(Status.DENIED, reason="dmesg: read kernel buffer failed: Operation not permitted", exit_status=1)
    hidden = "Hint: You are currently not seeing messages from other users and the system.\n"
    return {
        NVML.key: Reply(Status.OK, value=_nvml(host), seconds=0.31),
        SMI_QUERY.key: Reply(Status.OK, exit_status=0, stdout=_query(host), seconds=0.52),
        SMI.key: Reply(Status.OK, exit_status=0, stdout=_table(host), seconds=0.55),
        TOPO.key: Reply(Status.OK, exit_status=0, stdout=matrix(host), seconds=0.48),
        DEVICES.key: Reply(Status.OK, value=_devices(host), seconds=0.01),
        JOURNAL.key: Reply(Status.OK, exit_status=0, stdout="-- No entries --\n", stderr=hidden, seconds=0.02),
        DMESG.key: denied,
    }


def _used(host: Host, index: int) -> int:
    return HELD if index == host.held_gpu else USED


def _uuid(host: Host, index: int) -> str:
    return "GPU-" + host.identifier(f"gpu{index}")


def _nvml(host: Host) -> JsonValue:
    gpus: list[JsonValue] = [
        {
            "index": index,
            "name": host.gpu,
            "uuid": _uuid(host, index),
            "pci": f"0000:{BUSES[index]}:00.0",
            "memory_total": MEMORY * MIB,
            "memory_used": _used(host, index) * MIB,
        }
        for index in range(host.gpus)
    ]
    return {"driver": host.driver, "cuda": host.cuda, "gpus": gpus, "errors": {}, "devices": host.gpus}


def _query(host: Host) -> str:
    from ncheck.parse.nvidia_smi import QUERY

    def cell(column: str, index: int) -> str:
        known = {
            "index": str(index),
            "name": host.gpu,
            "uuid": _uuid(host, index),
            "pci.bus_id": f"00000000:{BUSES[index].upper()}:00.0",
            "gpu_bus_id": f"00000000:{BUSES[index].upper()}:00.0",
            "memory.total": str(MEMORY),
            "memory.used": str(_used(host, index)),
            "driver_version": host.driver,
        }
        return known[column]

    return "".join(", ".join(cell(column, index) for column in QUERY) + "\n" for index in range(host.gpus))


def _table(host: Host) -> str:
    head = f"| NVIDIA-SMI {host.driver:<23}Driver Version: {host.driver:<14} CUDA Version: {host.cuda:<8} |"
    ruler = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
    lines = ["+" + "-" * 89 + "+", head, "|" + ruler[1:-1] + "|"]
    lines += [
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        ruler.replace("-", "=").replace("+", "|"),
    ]
    for index in range(host.gpus):
        used = f"{_used(host, index)}MiB /  {MEMORY}MiB"
        bus = f"00000000:{BUSES[index].upper()}:00.0"
        lines += [
            f"|   {index}  {host.gpu:<26}  On  |   {bus} Off |                    0 |",
            f"| N/A   {29 + index}C    P0             {70 + index}W /  700W | {used:>22} |      0%      Default |",
            "|                                         |                        |             Disabled |",
            ruler,
        ]
    lines += ["", "+" + "-" * 89 + "+", f"| {'Processes:':<88}|", f"|  {'No running processes found':<87}|"]
    return "\n".join([*lines, "+" + "-" * 89 + "+"]) + "\n"


def matrix(host: Host) -> str:
    """Return `nvidia-smi topo -m` of a board with NVLink between all GPUs and one HCA beside each."""
    gpus, nics = [f"GPU{i}" for i in range(host.gpus)], [f"NIC{i}" for i in range(len(host.hcas))]
    rows = ["\t" + "\t".join([*gpus, *nics, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for row in (*gpus, *nics):
        cells = [row, *(_link(row, column) for column in (*gpus, *nics))]
        place = numa(int(row[3:]))
        rows.append("\t".join([*cells, AFFINITY[place], str(place), "\tN/A"] if row in gpus else [*cells, *[""] * 3]))
    legend = "".join(f"  {nic}: {hca.name}\n" for nic, hca in zip(nics, host.hcas, strict=True))
    return "\n".join(rows) + "\n" + _LEGEND + legend + "\n"


def _link(row: str, column: str) -> str:
    if row == column:
        return " X "
    if row[:3] == column[:3] == "GPU":
        return "NV18"
    if row[3:] == column[3:]:
        return "PIX"
    return "NODE" if numa(int(row[3:])) == numa(int(column[3:])) else "SYS"


def _devices(host: Host) -> JsonValue:
    tree: dict[str, JsonValue] = {"/sys/bus/pci/devices/0000:00:00.0/vendor": "0x8086\n"}
    tree["/sys/bus/pci/devices/0000:00:00.0/class"] = "0x060000\n"
    for bus in BUSES[: host.gpus]:
        tree[f"/sys/bus/pci/devices/0000:{bus}:00.0/vendor"] = "0x10de\n"
        tree[f"/sys/bus/pci/devices/0000:{bus}:00.0/class"] = "0x030200\n"
        tree[f"/proc/driver/nvidia/gpus/0000:{bus}:00.0/information"] = f"Model: \t\t {host.gpu}\n"
    return tree
