"""Whether a node has an NVIDIA GPU at all: PCI and the kernel module say so when nvidia-smi does not."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.collect.reader import trouble
from doctor.model.evidence import Answer, Command, Evidence, Reply, Status, Tree
from doctor.model.fact import Absent, Unread
from doctor.parse.nvidia_smi import smi_failure

NVML = Answer("gpus")  # missing: the agent looked on PCI too, and there is no NVIDIA device
DEVICES = Tree(
    ("/sys/bus/pci/devices/*/vendor", "/sys/bus/pci/devices/*/class", "/proc/driver/nvidia/gpus/*/information")
)

# Both come with exit status 6 or 9; the second is also what a driver that died says, so PCI has the last word.
_NO_GPU = ("No devices were found", "communicate with the NVIDIA driver")
_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # PCI base class of VGA and 3D controllers; an NVSwitch is 0x0680


def shown_gpus(evidence: Evidence) -> tuple[str, ...] | None:
    """Return the PCI addresses of the NVIDIA GPUs that the system shows, or None where it could not be asked."""
    reply = evidence.reply(DEVICES)
    if reply.status is Status.MISSING:
        return ()
    if reply.succeeded and isinstance(reply.value, dict):
        return gpus_in(reply.value)
    return () if evidence.reply(NVML).status is Status.MISSING else None


def gpus_in(tree: Mapping[str, object]) -> tuple[str, ...]:
    """Return the addresses in a listing of /sys/bus/pci/devices and /proc/driver/nvidia/gpus."""
    texts = {path: str(text).strip().lower() for path, text in tree.items() if isinstance(text, str)}
    on_bus = {
        path.split("/")[-2]
        for path, vendor in texts.items()
        if path.endswith("/vendor") and vendor == _NVIDIA
        and texts.get(path.removesuffix("vendor") + "class", _DISPLAY).startswith(_DISPLAY)
    }  # fmt: skip
    bound = {path.split("/")[-2].lower() for path in texts if path.startswith("/proc/driver/nvidia/gpus/")}
    return tuple(sorted(on_bus | bound))


def smi_trouble(evidence: Evidence, command: Command) -> Unread | Absent | None:
    """Return why this nvidia-smi command gave no answer, weighed against what PCI shows; None when it did.

    A tool that is missing or finds nothing is Absent only where PCI was asked and shows no GPU either.
    """
    reply = evidence.reply(command)
    why = trouble(command, reply)
    shown = shown_gpus(evidence)
    if reply.status is Status.MISSING:
        return _without_tool(shown)
    if why is None:
        return None if reply.stdout.strip() else Unread(f"{' '.join(command.argv)} printed nothing", fix="nvidia-smi")
    if shown == () and _finds_nothing(reply):
        return Absent(f"no NVIDIA GPU: PCI shows none, and nvidia-smi says: {smi_failure(reply.stdout + reply.stderr)}")
    return why


def _without_tool(shown: tuple[str, ...] | None) -> Unread | Absent:
    if shown:
        reason = f"{len(shown)} NVIDIA GPU(s) on PCI ({shown[0]}), and no nvidia-smi to ask about them"
        return Unread(reason, fix="which nvidia-smi")
    if shown is None:
        return Unread("nvidia-smi is not there, and PCI could not be asked whether a GPU is", fix="lspci -d 10de:")
    return Absent("no NVIDIA GPU")


def _finds_nothing(reply: Reply) -> bool:
    """Tell the words of a machine that has the tools and no GPU from those of a sick driver."""
    said = smi_failure(reply.stdout + reply.stderr) or ""
    return reply.status is Status.OK and any(words in said for words in _NO_GPU)
