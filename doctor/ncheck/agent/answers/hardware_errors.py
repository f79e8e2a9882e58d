"""What the hardware has counted of errors: PCIe devices that a job uses, with the bridges above them, and memory."""

import os

from ncheck.agent.files import leaf, line_of, matching, need_sysfs, number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

DEVICES = "/sys/bus/pci/devices"
MEMORY = "/sys/devices/system/edac/mc"
_WANTED = ("0x02", "0x03", "0x12", "0x0108", "0x0680")  # networks, displays, accelerators, NVMe, NVSwitches
_FILES = {"corrected": "aer_dev_correctable", "nonfatal": "aer_dev_nonfatal", "fatal": "aer_dev_fatal"}
_MOST = 512  # devices

READS = (
    DEVICES + "/*/{class,vendor,physfn," + ",".join(_FILES.values()) + "}, and where each device lies",
    MEMORY + "/mc*/{ue_count,ce_count}, and of each dimm, rank or csrow there its label, location and counts",
)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"pcie": {"read", "devices": {address: DEVICE}, "left_out"}, "memory": {..., "modules": [MODULE]}}.

    Null stands for hardware that counts nothing. What has counted no error is not listed: a node has hundreds of
    devices. `left_out` were too many to read.
    """
    need_sysfs()
    return {"pcie": _pcie(), "memory": _memory()}


def _pcie() -> "Optional[Dict[str, object]]":
    folders = {os.path.basename(folder): folder for folder in matching(DEVICES + "/*")}
    kinds = {name: line_of(folder + "/class") or "" for name, folder in folders.items()}
    used = [name for name, kind in kinds.items() if kind.startswith(_WANTED) and not _virtual(folders[name])]
    above = {part for name in used for part in os.path.realpath(folders[name]).split("/") if part in folders}
    read, devices = 0, {}
    for name in sorted(above)[:_MOST]:  # each is the last part of its own path
        texts = {sort: leaf(folders[name] + "/" + file) for sort, file in _FILES.items()}
        errors = {sort: _counts(text) for sort, text in texts.items() if isinstance(text, str)}
        read += 1 if errors else 0
        if any(errors.values()):
            devices[name] = dict(errors, **{"class": kinds[name], "vendor": line_of(folders[name] + "/vendor") or ""})
    return {"read": read, "devices": devices, "left_out": max(0, len(above) - _MOST)} if read else None


def _virtual(folder: str) -> bool:
    return os.path.exists(folder + "/physfn")


def _counts(text: str) -> "Dict[str, int]":
    """Return the counters of a file that are not 0, without their sum: DLP 0, then TLP 3, then TOTAL_ERR_FATAL 3."""
    pairs = [line.split() for line in text.splitlines() if not line.startswith("TOTAL")]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit() and int(pair[1])}


def _memory() -> "Optional[Dict[str, object]]":
    controllers = matching(MEMORY + "/mc*")
    if not controllers:
        return None
    read, corrected = ([number_in(one + file) for one in controllers] for file in ("/ue_count", "/ce_count"))
    uncorrected = [count for count in read if count is not None]
    if len(uncorrected) < len(controllers):
        return {"error": "a memory controller does not show how many errors it has counted"}
    folders = [folder for sort in ("dimm", "rank") for folder in matching(MEMORY + "/mc*/" + sort + "*")]
    modules = [_module(folder, "dimm_") for folder in folders]
    if not any(module["uncorrected"] is not None for module in modules):  # Linux before 4.8
        modules = [_module(folder, "") for folder in matching(MEMORY + "/mc*/csrow*")]
    return {
        "controllers": len(controllers),
        "uncorrected": sum(uncorrected),
        "corrected": sum(filter(None, corrected)),
        "modules": [module for module in modules if module["uncorrected"] or module["corrected"]],
    }


def _module(folder: str, prefix: str) -> "Dict[str, object]":
    label = line_of(folder + ("/dimm_label" if prefix else "/ch0_dimm_label"))
    return {
        "label": label or "/".join(folder.split("/")[-2:]),
        "location": line_of(folder + "/dimm_location") or "",
        "uncorrected": number_in(folder + "/" + prefix + "ue_count"),
        "corrected": number_in(folder + "/" + prefix + "ce_count"),
    }
