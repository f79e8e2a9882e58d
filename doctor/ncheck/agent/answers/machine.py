"""The machine itself: its kernel, processors, memory and model, and the image of its container where that is shown."""

import os
import re
import shutil

from ncheck.agent import proc
from ncheck.agent.commands import SYSTEM_FOLDERS, run
from ncheck.agent.files import leaf, line_of, matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Sources

CPUS = "/sys/devices/system/cpu/cpu[0-9]*/topology"
NODES = "/sys/devices/system/node/node[0-9]*/cpulist"
PROC, CPUINFO, MEMINFO = proc.ROOT, "/proc/cpuinfo", "/proc/meminfo"
DMI = "/sys/class/dmi/id"
CLASSES = "/sys/class"
NVME = CLASSES + "/nvme/nvme[0-9]*"
CONTAINER = "/run/.containerenv"
IMAGES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
RELEASES = ("NVIDIA_PYTORCH_VERSION", "NVIDIA_TENSORFLOW_VERSION", "NVIDIA_BUILD_ID")
TOOLKIT = ("/usr/lib/*-linux-gnu/libnvidia-container.so.1", "/usr/lib64/libnvidia-container.so.1")
READS = (
    "uname, the first processor of {}, {}, lscpu where the first names no model".format(CPUINFO, MEMINFO),
    CPUS + "/{physical_package_id,thread_siblings_list}, " + NODES,
    DMI
    + "/{sys_vendor,product_name,bios_version,product_serial}, "
    + NVME
    + "/transport, the image in "
    + CONTAINER
    + ", $"
    + ", $".join(IMAGES + RELEASES)
    + ", here or in "
    + proc.path(1, "environ"),
    "the name of " + TOOLKIT[0] + ".*; whether nvidia-ctk is on the PATH",
)

_HEAD = 8192  # bytes: one processor. To read all, the kernel asks each one for its frequency
# model name	: AMD EPYC 9654 96-Core Processor      |     cpu		: POWER9, altivec supported
_MODEL = re.compile(r"^(?:model name|cpu)\s*:\s*(\S.*)$", re.IGNORECASE | re.MULTILINE)
# Model name:                         Neoverse-V2
_LISTED = re.compile(r"^(?:BIOS )?Model name:\s*(\S.*)$", re.MULTILINE)
_MEMORY = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)
# the line: image="docker.io/rocm/pytorch:latest"
_IMAGE = re.compile(r'^image="?([^"\n]+)', re.MULTILINE)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return what the machine is."""
    system = os.uname()
    places = matching(CPUS)
    siblings = {line_of(place + "/thread_siblings_list") for place in places} - {None}
    packages = {line_of(place + "/physical_package_id") for place in places} - {None, "-1"}
    memory = _MEMORY.search(_text(MEMINFO))
    serial = line_of(DMI + "/product_serial")  # None for all but root
    return {
        "kernel": system.release,
        "architecture": system.machine,
        "cpu": _model(timeout),
        "sockets": len(packages) or None,
        "cores": len(siblings) or None,
        "threads": len(places) or None,
        "numa_nodes": sum(1 for node in matching(NODES) if line_of(node)) or None,  # memory alone makes nodes, too
        "memory": int(memory.group(1)) * 1024 if memory else None,
        "vendor": line_of(DMI + "/sys_vendor") or None,
        "product": line_of(DMI + "/product_name") or None,
        "image": _image(sources.job.environment),
        "container_toolkit": _container_toolkit(),
        "bios": line_of(DMI + "/bios_version") or None,
        "nvme_drives": _drives(),
        **({"serial": serial} if serial else {}),
    }


def _drives() -> "Optional[int]":
    """Count the drives on this machine's own bus; None without a view of the hardware."""
    if not os.path.isdir(CLASSES):
        return None
    return sum(1 for drive in matching(NVME) if line_of(drive + "/transport") in ("pcie", None))


def _text(path: str) -> str:
    text = leaf(path)
    return text if isinstance(text, str) else ""


def _model(timeout: float) -> "Optional[str]":
    try:
        with open(CPUINFO, "rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except OSError:
        head = ""
    found = _MODEL.search(head) or _LISTED.search(run(["lscpu"], min(2.0, timeout)).get("stdout", ""))
    return " ".join(found.group(1).split()) if found else None


def _image(environment: "Environment") -> "Optional[str]":
    """Name the image. Of a file only its last part: the folders are the user's own.

    An ssh login does not have the image's variables; the first process of the container has them.
    """
    started = proc.environment(1, PROC) or {}
    values = {name: environment.get(name) or started.get(name) for name in IMAGES + RELEASES}
    file = values[IMAGES[0]] or values[IMAGES[1]] or ""
    found = _IMAGE.search(_text(CONTAINER))
    return os.path.basename(file) or (found.group(1) if found else None) or _of_nvidia(*map(values.get, RELEASES))


def _of_nvidia(pytorch: "Optional[str]", tensorflow: "Optional[str]", build: "Optional[str]") -> "Optional[str]":
    """Name the image of NVIDIA's that this one was made from; its own name is not in it."""
    framework = "PyTorch {}".format(pytorch) if pytorch else tensorflow and "TensorFlow {}".format(tensorflow)
    if not framework:
        return None
    return "made from NVIDIA's {}".format(framework) + (" (build {})".format(build) if build else "")


def _container_toolkit() -> str:
    """Return the release of NVIDIA's container toolkit, by the name of its library; "" where there is none."""
    for pattern in TOOLKIT:
        for library in matching(pattern):
            # libnvidia-container.so.1.17.4
            return os.path.realpath(library).partition(".so.")[2]
    return "installed" if shutil.which("nvidia-ctk", path=SYSTEM_FOLDERS) else ""
