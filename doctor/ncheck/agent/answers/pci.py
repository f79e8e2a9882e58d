"""The devices on the PCI bus that a job uses: GPUs and accelerators, NICs, InfiniBand adapters, NVSwitches."""

import os

from ncheck.agent.answers import MissingError
from ncheck.agent.files import line_of, matching, need_sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

DEVICES = "/sys/bus/pci/devices"
_NETWORK, _DISPLAY, _ACCELERATOR = "0x02", "0x03", "0x12"  # base classes
_NVSWITCH = "0x0680"  # "other bridge"; of NVIDIA, an NVSwitch
_NVIDIA = "0x10de"
_MOST = 512  # devices; an adapter can have hundreds of virtual functions

READS = (DEVICES + "/*/{class,vendor,device,driver,numa_node,local_cpulist,physfn}, and where each device lies",)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"devices": [DEVICE], "left_out": int}. MissingError where there is no PCI bus."""
    need_sysfs()
    if not os.path.isdir(DEVICES):
        raise MissingError("no PCI bus")
    folders = [folder for folder in matching(DEVICES + "/*") if _wanted(folder)]
    return {"devices": [_device(folder) for folder in folders[:_MOST]], "left_out": max(0, len(folders) - _MOST)}


def _wanted(folder: str) -> bool:
    kind = line_of(folder + "/class") or ""
    if kind.startswith(_NVSWITCH):
        return line_of(folder + "/vendor") == _NVIDIA
    return kind[:4] in (_NETWORK, _DISPLAY, _ACCELERATOR)


def _device(folder: str) -> "Dict[str, object]":
    numa = line_of(folder + "/numa_node")
    above = os.path.dirname(os.path.realpath(folder)).split("/")
    return {
        "address": os.path.basename(folder),
        "class": line_of(folder + "/class") or "",
        "vendor": line_of(folder + "/vendor") or "",
        "device": line_of(folder + "/device") or "",
        "driver": os.path.basename(os.path.realpath(folder + "/driver")) if os.path.exists(folder + "/driver") else "",
        "numa": int(numa) if numa and numa.isdigit() else None,
        "cpus": line_of(folder + "/local_cpulist") or "",
        "above": [part for part in above if ":" in part],
        "virtual": os.path.exists(folder + "/physfn"),
    }
