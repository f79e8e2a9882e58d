"""What a node's fabric looks like: the counters of its ports and cards, the same at both looks but for the traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.error_counters import FIRST, LATER
from ncheck.facts.gpudirect import SOURCE as GPUDIRECT
from ncheck.facts.isolation import ACS, GROUPS, PROCESSOR
from ncheck.facts.roce import ROCE
from ncheck.model.evidence import JsonValue, Reply, Status

from .gpus import BUSES

if TYPE_CHECKING:
    from .host import Host

_ERRORS_OF_A_PORT, _ERRORS_OF_A_CARD = 18, 3
_BRIDGE = "0000:15:01.0 PCI bridge: Intel Corporation Device 352a (rev 30)\n\tCapabilities: <access denied>\n"
_CARRIED = 10**9  # bytes during the run


def fabric_replies(host: Host) -> dict[str, Reply]:
    """Return the answers, by source key."""
    return {
        FIRST.key: Reply(Status.OK, value={"at": 1000.0, "ports": _ports(host, 0)}, seconds=0.004),
        GPUDIRECT.key: Reply(Status.OK, value=_gpudirect(host), seconds=0.001),
        ACS.key: Reply(Status.OK, exit_status=0, stdout=_BRIDGE, seconds=0.05),
        GROUPS.key: Reply(Status.OK, value=_groups(host), seconds=0.001),
        PROCESSOR.key: Reply(Status.OK, exit_status=0, stdout="GenuineIntel\nGenuineIntel\n", seconds=0.001),
        ROCE.key: Reply(Status.OK, value={"ports": {}}, seconds=0.002),
        LATER.key: Reply(Status.OK, value={"at": 1042.0, "ports": _ports(host, _CARRIED)}, seconds=0.004),
    }


def _gpudirect(host: Host) -> JsonValue:
    """Return what NCCL looks for: MLNX_OFED, with nvidia_peermem registered as nv_mem."""
    driver = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {host.driver}  Tue Oct  8 03:13:39 UTC 2024\n"
    loaded = {
        "/proc/driver/nvidia/version": driver, "/sys/module/nvidia_peermem/version": f"{host.driver}\n",
        "/sys/kernel/mm/memory_peers/nv_mem/version": f"{host.driver}\n",
    }  # fmt: skip
    return {"/proc/sys/kernel/osrelease": "5.15.0-119-generic\n", **(loaded if host.gpus else {})}


def _groups(host: Host) -> JsonValue:
    """Return the types of IOMMU groups under iommu=pt."""
    gpus = [f"/sys/bus/pci/drivers/nvidia/0000:{bus}:00.0/iommu_group/type" for bus in BUSES[: host.gpus]]
    hcas = [f"/sys/bus/pci/drivers/mlx5_core/{hca.pci}/iommu_group/type" for hca in host.hcas]
    return dict.fromkeys((*gpus, *hcas), "identity\n")


def _ports(host: Host, more: int) -> dict[str, JsonValue]:
    """Return what is counted. Every port once lost its link, when its switch was exchanged."""
    carried: dict[str, JsonValue] = {"sent": 7 * 10**12 + more, "received": 7 * 10**12 + more}
    ports: dict[str, JsonValue] = {
        f"{hca.name}:1": {"read": _ERRORS_OF_A_PORT, "errors": {"link_downed": 1}, **carried} for hca in host.hcas
    }
    cards = [nic.name for nic in host.nics if nic.pci]
    return ports | {name: {"read": _ERRORS_OF_A_CARD, "errors": {}, **carried} for name in cards}
