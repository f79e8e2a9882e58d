"""What a node says of the machine itself: a board with two processors for eight GPUs, and healthy parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.disks import DISKS
from ncheck.facts.hardware_errors import HARDWARE_ERRORS
from ncheck.facts.machine import MACHINE
from ncheck.model.evidence import JsonValue, Reply, Status

from .gpus import BUSES

if TYPE_CHECKING:
    from .host import Host

KERNEL = "5.15.0-105-generic"


def machine_replies(host: Host) -> dict[str, Reply]:
    """Return the machine, by source key."""
    answer: dict[str, JsonValue] = {
        "kernel": KERNEL, "architecture": "x86_64", "cpu": "Intel(R) Xeon(R) Platinum 8468", "sockets": 2, "cores": 96,
        "threads": 192, "numa_nodes": 2, "memory": 2163873042432, "vendor": "Supermicro",
        "product": "SYS-821GE-TNHR", "image": None, "bios": "2.1", "nvme_drives": 5,
        "container_toolkit": "1.16.2",
    }  # fmt: skip
    said = {MACHINE: answer, HARDWARE_ERRORS: _errors(host), DISKS: _DISKS}
    return {source.key: Reply(Status.OK, value=value, seconds=0.02) for source, value in said.items()}


def _errors(host: Host) -> JsonValue:
    """Return what healthy hardware counts: errors that were corrected, and a request from the search for devices."""
    counts: JsonValue = {"class": "0x030200", "vendor": "0x10de", "corrected": {"RxErr": 1},
                         "nonfatal": {"UnsupReq": 1}, "fatal": {}}  # fmt: skip
    devices: JsonValue = {f"0000:{BUSES[0]}:00.0": counts} if host.gpus else {}
    module: JsonValue = {"label": "CPU_SrcID#0_MC#1_Chan#0_DIMM#0", "location": "channel 0 slot 0", "uncorrected": 0,
                         "corrected": 1}  # fmt: skip
    memory: JsonValue = {"controllers": 8, "uncorrected": 0, "corrected": 1, "modules": [module]}
    return {"pcie": {"read": 54, "devices": devices}, "memory": memory}


_DISKS: JsonValue = {
    "states": dict.fromkeys(("nvme0", "nvme1", "nvme2", "nvme3", "nvme4"), "live"),
    "hot": {},
    "arrays": {"md0": {"level": "raid1", "array_state": "clean", "sync_action": "idle", "degraded": 0}},
}
