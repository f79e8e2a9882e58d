"""AMD's GPUs: what amd-smi or rocm-smi says of them and of the links between them, and what the driver has counted.

GpuFacts and TopologyFacts are made of the first two where a node has no NVIDIA GPU, so that their checks hold for both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from ncheck.expression import expression
from ncheck.facts.definition import Fact, called, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, File, Reply, Status, Tree
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.amd_smi import AmdSmi, amd_failure, parse_amd
from ncheck.parse.nvidia_smi import Gpu
from ncheck.text import LONGEST_MESSAGE


def _either(amd: str, rocm: str) -> Command:
    """Ask amd-smi, or rocm-smi where that fails or is missing; neither where there is no driver to answer them.

    ROCm's own folder is on few logins' PATH.
    """
    lines = (
        "test -e /sys/module/amdgpu || { echo the driver amdgpu is not loaded >&2; exit 1; }",
        'PATH="$PATH:/opt/rocm/bin"',
        f"said=$(amd-smi {amd} --json) && printf '%s\\n' \"$said\" || rocm-smi {rocm} --json",
    )
    return Command(("sh", "-c", "; ".join(lines)))


LISTING = _either(
    "static --asic --bus --driver --vram", "--showproductname --showbus --showdriverversion --showmeminfo vram"
)

LINKS = _either("topology", "--showtopo")
ROCM = File("/opt/rocm/.info/version")
_RAS = "/sys/bus/pci/drivers/amdgpu/*/ras"
COUNTS = Tree((f"{_RAS}/*_err_count", f"{_RAS}/aca_*", f"{_RAS}/gpu_vram_bad_pages"))

# sh: 1: amd-smi: not found
_NOT_FOUND = expression(r"(?:amd|rocm)-smi: (?:command )?not found")


def asked(command: Command, evidence: Evidence, accelerators: tuple[str, ...]) -> AmdSmi | Unread | Absent:
    """Return what a tool printed. Without one, or where it fails, AMD's GPUs are absent unless PCI shows accelerators:
    an integrated GPU, which computes nothing, is no reason to have ROCm.
    """
    reply = evidence.reply(command)
    found = parse_amd(reply.stdout) if reply.succeeded else None
    if found and (found.devices or found.links):
        return found
    if not accelerators:
        return Absent("no AMD GPU")
    return Unread(
        f"{len(accelerators)} AMD GPU(s) on PCI ({accelerators[0]}), but {_why(command, reply)}",
        fix="amd-smi list || rocm-smi",
        unanswered=reply.status is Status.UNANSWERED,
        hung="amd-smi" if reply.status is Status.TIMEOUT else "",
    )


def _why(command: Command, reply: Reply) -> str:
    if reply.status is not Status.OK or reply.truncated:
        failure = trouble(command, reply)
        return failure.reason.replace(called(command), "amd-smi") if failure else "amd-smi was not asked"
    lines = [line.strip() for line in (reply.stderr + reply.stdout).splitlines() if line.strip()]
    words = [line for line in lines if not _NOT_FOUND.search(line)]
    if lines and not words:
        return "neither amd-smi nor rocm-smi was found"
    last = amd_failure("\n".join(words)) or (words[-1] if words else "nothing")
    return f"amd-smi and rocm-smi list none: {last[:LONGEST_MESSAGE]}"


def rocm_version(evidence: Evidence) -> str:
    """Return "6.4.1-83", "" where ROCm does not say it."""
    value = evidence.reply(ROCM).value
    found = re.match(r"\d[\w.\-]{0,30}$", value.strip()) if isinstance(value, str) else None
    return found[0] if found else ""


def gpus_of(found: AmdSmi) -> tuple[Gpu, ...]:
    """Return the GPUs. Of a partitioned one (CPX) only the first part says its model: that of the others is N/A."""
    models = {_bus(device): str(device["name"]) for device in reversed(found.devices) if device.get("name")}
    return tuple(
        Gpu(
            index=int(str(device["index"])),
            name=str(device.get("name") or models.get(_bus(device), "AMD GPU")),
            uuid=str(device.get("uuid", "")),
            pci=str(device.get("pci", "")).lower(),
            memory_total=_bytes(device.get("memory_total_mb")),
            memory_used=_bytes(device.get("memory_used_mb")),
        )
        for device in found.devices
    )


def _bytes(mebibytes: object) -> int | None:
    return mebibytes << 20 if isinstance(mebibytes, int) else None


def _bus(device: Mapping[str, object]) -> str:
    return str(device.get("pci", "")).partition(".")[0]


@dataclass(frozen=True)
class AmdErrors:
    """What the driver counted since it was loaded. `uncorrectable`: errors by block; umc is the memory. `pending`:
    bad pages of the memory that wait for their retirement; `kept`: bad pages that could not be retired.
    """

    uncorrectable: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
    kept: int = 0


@dataclass(frozen=True)
class AmdErrorFacts:
    """By the PCI address of each AMD GPU that counts errors; consumer models and virtual functions do not."""

    gpus: Mapping[str, AmdErrors]


# /sys/bus/pci/drivers/amdgpu/0000:83:00.0/ras/umc_err_count, .../aca_umc
_PATH = expression(r".*/(?P<address>[0-9a-f:]{7,13}\.[0-7])/ras/(?:(?:aca_)?(?P<block>\w+?)(?:_err_count)?)")

# a line: ue: 0
_UNCORRECTABLE = expression(r"^ue:\s*(\d{1,18})$", re.MULTILINE)

# 0x027f5d43 : 0x00001000 : R
_PAGE = expression(r"^0x[0-9a-f]+ : 0x[0-9a-f]+ : ([RPF])$", re.MULTILINE)


def errors(evidence: Evidence) -> Read[AmdErrorFacts]:
    """Read the counters, in the format of the kernel's documentation of amdgpu's RAS interface."""
    reply = evidence.reply(COUNTS)
    if why := trouble(COUNTS, reply):
        return why
    uncorrectable: dict[str, dict[str, int]] = {}
    pages: dict[str, Counter[str]] = {}
    for path, text in reply.value.items() if isinstance(reply.value, dict) else ():
        place = _PATH.fullmatch(path)
        if place is None or not isinstance(text, str):
            continue  # what cannot be read is a block that this GPU does not have
        counts = uncorrectable.setdefault(place["address"], {})
        if place["block"] == "gpu_vram_bad_pages":
            pages[place["address"]] = Counter(_PAGE.findall(text))
        elif (found := _UNCORRECTABLE.search(text)) and int(found[1]):
            counts[place["block"]] = int(found[1])
    if not uncorrectable:
        return Unread("amdgpu's error counters cannot be read") if reply.value else Absent("no AMD GPU counts errors")
    none: Counter[str] = Counter()
    return AmdErrorFacts({
        address: AmdErrors(counts, pages.get(address, none)["P"], pages.get(address, none)["F"])
        for address, counts in uncorrectable.items()
    })  # fmt: skip


FACTS = (Fact(AmdErrorFacts, (COUNTS,), errors),)
