"""The PCIe links of GPUs and HCAs (lanes and speeds), and the processor above them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ncheck.expression import expression
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Tree
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class PcieLink:
    """One link. None: the system does not show it. An idle GPU lowers its speed, but never its width.

    `width`: lanes now; `most_width`: lanes at most; `speed`: GT/s per lane now; `most_speed`: GT/s per lane at
    most.
    """

    width: int | None
    speed: float | None
    most_width: int | None
    most_speed: float | None


@dataclass(frozen=True)
class Processor:
    """The processor as /proc/cpuinfo names it. `vendor`: "GenuineIntel" or "AuthenticAMD"; `family` and `model`:
    the vendor's numbers.
    """

    vendor: str
    family: int
    model: int


@dataclass(frozen=True)
class PcieFacts:
    """The links of each device, its own first, then those of the switches above it, up to the processor.

    `gpus` are by PCI address ("0000:0f:00.0"), `hcas` by name ("mlx5_0").
    """

    gpus: Mapping[str, tuple[PcieLink, ...]]
    hcas: Mapping[str, tuple[PcieLink, ...]]
    processor: Processor | None = None


GPUS = "/sys/bus/pci/drivers/nvidia"
HCAS = "/sys/class/infiniband"
_FILES = ("current_link_width", "current_link_speed", "max_link_width", "max_link_speed")

# The device; the port above it, which limits the speed of the slot; the switch above that port.
_SLOT, _SWITCH = "/..", "/../.."
_DEVICES = (f"{GPUS}/*:*", f"{HCAS}/*/device")
_PLACES = (*(f"/{file}" for file in _FILES), f"{_SLOT}/max_link_speed", *(f"{_SWITCH}/{file}" for file in _FILES))
PATTERNS = tuple(device + place for device in _DEVICES for place in _PLACES)

# 32.0 GT/s PCIe
_SPEED = expression(r"(?P<number>\d{1,3}(?:\.\d)?) GT/s")

# "model		: 143", a line of /proc/cpuinfo
_CPU = expression(r"^(?P<name>vendor_id|cpu family|model)\s*:\s*(?P<value>\S+)\s*$", re.MULTILINE)
_WIDEST = 32  # lanes; a virtual machine may show 63 or 255, which are meaningless


def gpu_links(tree: Mapping[str, object]) -> dict[str, tuple[PcieLink, ...]]:
    """Return the links of each device of NVIDIA's driver, by PCI address."""
    prefix = GPUS + "/"
    names = {path[len(prefix) :].split("/")[0] for path in tree if path.startswith(prefix)}
    return {name.lower(): links for name in sorted(names) if (links := tuple(_links(tree, prefix + name)))}


def hca_links(tree: Mapping[str, object]) -> dict[str, tuple[PcieLink, ...]]:
    """Return the links of each HCA, by its name."""
    prefix = HCAS + "/"
    names = {path[len(prefix) :].split("/")[0] for path in tree if path.startswith(prefix)}
    return {name: links for name in sorted(names) if (links := tuple(_links(tree, f"{prefix}{name}/device")))}


def processor(text: str) -> Processor | None:
    """Return the first processor of /proc/cpuinfo; None where it has no vendor, as on ARM."""
    found = {match["name"]: match["value"] for match in reversed(list(_CPU.finditer(text)))}
    family, model = found.get("cpu family", ""), found.get("model", "")
    if "vendor_id" not in found or not (family.isdecimal() and model.isdecimal()):
        return None
    return Processor(found["vendor_id"], int(family), int(model))


def _links(tree: Mapping[str, object], device: str) -> Iterator[PcieLink]:
    """Yield its own link, limited to the speed of the slot, and that of the switch above it, if there is one."""
    own, slot, switch = (_link(tree, device + place) for place in ("", _SLOT, _SWITCH))
    if own:
        fastest = min((speed for end in (own, slot) if end and (speed := end.most_speed)), default=None)
        yield PcieLink(own.width, own.speed, own.most_width, fastest)
    if own and switch:
        yield switch


def _link(tree: Mapping[str, object], place: str) -> PcieLink | None:
    """Return the link as one end shows it; None if it has none, as a host bridge."""
    texts = [tree.get(f"{place}/{file}") for file in _FILES]
    if not any(isinstance(text, str) for text in texts):
        return None
    width, speed, most_width, most_speed = (text.strip() if isinstance(text, str) else "" for text in texts)
    return PcieLink(_width(width), _speed(speed), _width(most_width), _speed(most_speed))


def _width(text: str) -> int | None:
    """Return the lanes; None for 0, which a link that is down and a virtual function show."""
    return int(text) if text.isdecimal() and 0 < int(text) <= _WIDEST else None


def _speed(text: str) -> float | None:
    found = _SPEED.match(text)
    return float(found["number"]) or None if found else None


LINKS = Tree(PATTERNS)

# Only the first processor: the whole file is a megabyte on a large machine.
PROCESSOR = Command(("grep", "-m4", "-E", "^(vendor_id|cpu family|model)", "/proc/cpuinfo"))


def pcie(evidence: Evidence) -> Read[PcieFacts]:
    """Read the links; the processor is None where /proc/cpuinfo names none."""
    reply = evidence.reply(LINKS)
    if why := trouble(LINKS, reply):
        return why
    if not isinstance(reply.value, dict):
        return Unread("the PCIe links are not a file tree", fix="ls /sys/bus/pci/devices")
    gpus, hcas = gpu_links(reply.value), hca_links(reply.value)
    if not gpus and not hcas:
        return Absent("no NVIDIA GPU or HCA with a PCIe link")
    cpuinfo = evidence.reply(PROCESSOR)
    return PcieFacts(gpus, hcas, processor(cpuinfo.stdout) if cpuinfo.succeeded else None)


FACTS = (Fact(PcieFacts, (LINKS, PROCESSOR), pcie),)
