"""nvidia-smi: the table, -q, -L, nvlink, and --query-gpu as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ncheck.expression import expression
from ncheck.model.remark import Remark, error, info, warning
from ncheck.parse.nvidia_smi import Smi, parse_smi, smi_failure
from ncheck.read.reading import Reader, Reading, Record
from ncheck.read.smi_devices import parse_devices, parse_processes


def _read(text: str) -> Reading | None:
    smi = parse_smi(text)
    devices, processes = parse_devices(text), parse_processes(text)
    if not (smi.gpus or smi.driver or smi.cuda or processes):
        return None
    if (
        not smi.driver
        and not processes
        and not any(gpu.pci for gpu in smi.gpus)
        and not any(device.keys() & _OWN for device in devices)
    ):
        return None  # "GPU 0: NVIDIA H100" is also a line of torch's collect_env
    facts = _facts(smi, devices, processes)
    return Reading("smi", _tool(smi, devices), facts).saying(_remarks(smi, facts, text))


_OWN = frozenset({"uuid", "pci", "links", "mig_devices", "memory_total_mib", "memory_used_mib"})


def _tool(smi: Smi, devices: Sequence[Record]) -> str:
    if smi.links:
        return "nvidia-smi nvlink"
    if smi.tool or not smi.driver:
        return "nvidia-smi"
    return "nvidia-smi -q" if smi.count and any("compute_mode" in device for device in devices) else "nvidia-smi"


def _facts(smi: Smi, devices: Sequence[Record], processes: Sequence[Record]) -> Record:
    speeds = {speed for links in smi.links for speed in links} - {"<inactive>"}
    facts: Record = {
        "driver": smi.driver,
        "cuda": smi.cuda,
        "nvidia_smi": smi.tool,
        "gpus": smi.count or None,
        "names": [gpu.name for gpu in smi.gpus if gpu.name],
        "gpu0": smi.gpus[0].name or None if smi.gpus else None,
        "persistence_gpu0": smi.persistence[0] if smi.persistence else None,
        "fan_gpu0": smi.fans[0] if smi.fans else None,
        "links_per_gpu": len(smi.links[0]) if smi.links else None,
        "link_speed": speeds.pop() if len(speeds) == 1 else None,
        "error": smi.error,
        "devices": list(devices),
        "processes": list(processes),
    }
    return facts


def _remarks(smi: Smi, facts: Record, text: str) -> Iterator[Remark]:
    devices = cast("Sequence[Record]", facts["devices"])
    if smi.error:
        yield error(_explained(smi.error))
    if smi.driver or smi.cuda:
        yield info(f"driver {smi.driver or 'not shown'}, which runs CUDA up to {smi.cuda or '(not shown)'}")
    if smi.tool and smi.driver and smi.tool != smi.driver:
        yield warning(f"nvidia-smi is {smi.tool}, the driver {smi.driver}: an update without a reboot, or WSL")
    if smi.count and len(smi.gpus) < smi.count:
        yield warning(f"the text is cut: {smi.count} GPUs are attached, {len(smi.gpus)} are shown")
    yield from _models(smi)
    yield from _of_devices(devices)
    yield from _links(devices)
    processes = cast("Sequence[Record]", facts["processes"])
    yield from _processes(processes)
    if "Processes" in text:  # the list of processes is there, and not cut off
        yield from _memory(devices, processes)


def _models(smi: Smi) -> Iterator[Remark]:
    counts: dict[str, int] = {}
    for gpu in smi.gpus:
        counts[gpu.name or "no name"] = counts.get(gpu.name or "no name", 0) + 1
    if counts:
        yield (info if len(counts) == 1 else warning)(", ".join(f"{count} x {name}" for name, count in counts.items()))


def _of_devices(devices: Sequence[Record]) -> Iterator[Remark]:
    """Yield what is to be said of each GPU, once for all GPUs of which it is true: "GPU 0-7: needs a reset"."""
    found: dict[Remark, list[str]] = {}
    for device in devices:
        for remark in (*_broken(device), *_health(device), *_modes(device)):
            found.setdefault(remark, []).append(str(device["index"]))
    for remark, gpus in found.items():
        yield Remark(remark.level, f"GPU {', '.join(gpus)}: {remark.text}")


def _broken(device: Record) -> Iterator[Remark]:
    fields = [key for key, value in device.items() if key != "broken" and isinstance(value, str) and "ERR!" in value]
    if fields == ["fan"]:
        yield warning("its fan cannot be read (ERR!)")
    elif fields or device.get("broken"):
        what = device["broken"] if device.get("broken", "ERR!") != "ERR!" else f"ERR! for {', '.join(fields)}"
        yield error(f"{what}; look for Xid in the kernel log: sudo dmesg | grep -i xid")


def _health(device: Record) -> Iterator[Remark]:
    for key, title in _COUNTED.items():
        count = device.get(key)
        if isinstance(count, int) and count > 0:
            yield error(f"{count} {title}")
    for key, (bad, text) in _STATES.items():
        if str(device.get(key, "")).lower() in bad:
            yield error(text)
    if slowed := cast("Sequence[str]", device.get("throttled") or ()):
        yield error(f"slowed down now: {', '.join(slowed)}")
    width, widest = device.get("pcie_width"), device.get("pcie_width_max")
    if isinstance(width, int) and isinstance(widest, int) and width < widest:
        yield warning(f"PCIe x{width} of x{widest}")
    if device.get("fabric_state") not in (None, "Completed"):
        yield error(f"NVLink fabric is {device['fabric_state']}: is nvidia-fabricmanager running?")


def _modes(device: Record) -> Iterator[Remark]:
    if device.get("mig") == "Enabled" or device.get("mig_devices"):
        yield warning("MIG is enabled: NCCL cannot use MIG instances as peers of one job")
    if device.get("compute_mode") in _EXCLUSIVE:
        yield info(f"compute mode {device['compute_mode']}: one process at most may use it")


_EXCLUSIVE = ("Prohibited", "E. Process", "Exclusive_Process", "Exclusive Process")

_COUNTED: Mapping[str, str] = {
    "ecc_uncorrected": "uncorrected ECC errors since the driver was loaded: restart the job without this GPU, reset it",
    "ecc_uncorrected_dram": "uncorrected ECC errors in memory since the driver was loaded: reset the GPU",
}

_STATES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "remap_pending": (("yes",), "a row remap is pending: reset the GPU"),
    "remap_failed": (("yes",), "a row remap failed: replace the GPU"),
    "retire_pending": (("yes",), "a page retirement is pending: reset the GPU"),
    "reset_required": (("yes",), "needs a reset"),
    "fabric_status": (("failure", "error"), "the NVLink fabric failed: look at nvidia-fabricmanager"),
}


def _links(devices: Sequence[Record]) -> Iterator[Remark]:
    counts: dict[int, list[object]] = {}
    for device in devices:
        links = cast("Sequence[str]", device.get("links") or ())
        active = [link for link in links if link != "<inactive>"]
        if links:
            counts.setdefault(len(active), []).append(device["index"])
        if len(active) < len(links):
            yield error(f"GPU {device['index']}: {len(links) - len(active)} of {len(links)} NVLinks inactive")
        for errors in cast("Sequence[str]", device.get("link_errors") or ()):
            yield warning(f"GPU {device['index']}: NVLink {errors}")
    if len(counts) > 1:
        shown = "; ".join(f"{count} on GPU {', '.join(map(str, gpus))}" for count, gpus in sorted(counts.items()))
        yield error(f"the GPUs differ in active NVLinks: {shown}")
    off = [str(device["index"]) for device in devices if device.get("persistence") in ("Off", "Disabled")]
    if off:
        yield info(
            f"persistence mode is off on GPU {', '.join(off)}: the first job waits for the driver (nvidia-smi -pm 1)"
        )


def _processes(processes: Sequence[Record]) -> Iterator[Remark]:
    for process in processes[:_SHOWN]:
        where = f"GPU {process['gpu']}: " if process["gpu"] is not None else ""
        size = f" uses {process['memory_mib']} MiB" if process["memory_mib"] is not None else ""
        yield info(f"{where}process {process['pid']} ({process['name']}){size}")


def _memory(devices: Sequence[Record], processes: Sequence[Record]) -> Iterator[Remark]:
    busy = {process["gpu"] for process in processes}
    for device in devices:
        used = device.get("memory_used_mib")
        if isinstance(used, int) and used > _IDLE and device["index"] not in busy and None not in busy:
            yield warning(
                f"GPU {device['index']}: {used} MiB in use and no process listed: look in other containers, or for one "
                "that is dying (sudo fuser -v /dev/nvidia*)"
            )


_SHOWN = 16
_IDLE = 1100  # MiB: drivers with GSP firmware and ECC show up to this much on an idle GPU

_MEANING: Mapping[str, str] = {
    "version mismatch": "the driver was updated while the old one is loaded: reboot, or reload the modules",
    # A container that lost its devices says "Failed to initialize NVML"; with an address it is one GPU.
    "device handle": "this GPU fell off the bus (Xid 79): sudo dmesg | grep -i xid; reboot the node",
    "Unknown Error": "in a container, its access to the devices was lost: restart the container",
    "couldn't communicate": "the driver is not loaded: sudo modprobe nvidia; sudo dmesg | grep -i nvrm",
    "No devices": "the driver is loaded and sees no GPU: lspci | grep -i nvidia; sudo dmesg | grep -i xid",
    "GPU is lost": "the GPU fell off the bus (Xid 79): reboot the node",
    "not found": "no NVIDIA driver is installed here, or the container was started without it",
    "libnvidia-ml": "no NVIDIA driver is installed here, or the container was started without it",
}


def _explained(problem: str) -> str:
    why = next((meaning for words, meaning in _MEANING.items() if words in problem), "")
    return f"{problem}: {why}" if why else problem


# bash: nvidia-smi: command not found
_OURS = expression(r"nvidia-smi|NVML|libnvidia-ml|GPU is lost|No devices were found|device handle", re.IGNORECASE)


def _failed(text: str) -> Reading:
    problem = smi_failure(text)
    ours = problem is not None and _OURS.search(problem) is not None
    smi = Smi(error=problem or "not the output of nvidia-smi")
    facts = _facts(smi, [], [])
    return Reading("smi", "nvidia-smi" if ours else "", facts).saying([error(_explained(str(smi.error)))])


READER = Reader(
    "smi",
    ("nvidia-smi", "nvidia-smi -q", "nvidia-smi -L", "nvidia-smi nvlink", "nvlink", "nvidia_smi"),
    30,
    _read,
    _failed,
)
