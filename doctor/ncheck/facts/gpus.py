"""GPUs, how they hang together, and what the kernel said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from ncheck.facts.definition import Fact, trouble
from ncheck.model.evidence import Answer, Command, Evidence, Reply, Status, Tree
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.nvidia_smi import QUERY, Gpu, parse_query, parse_smi, pci_address, smi_failure


@dataclass(frozen=True)
class GpuFacts:
    """The GPUs of a node, asked of NVML and, where that is silent, of nvidia-smi. `cuda` is the driver's, as "12.4".

    `hung` says which nvidia-smi did not end in its time although another source told of the GPUs.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    cuda: str
    source: str  # "nvml" or "nvidia-smi"
    hung: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The different model names, sorted."""
        return tuple(sorted({gpu.name for gpu in self.gpus}))


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


SMI_QUERY = Command(("nvidia-smi", "--query-gpu=" + ",".join(QUERY), "--format=csv,noheader,nounits"))


SMI = Command(("nvidia-smi",))


Said = Mapping[str, object]


# Without these there is no telling how many GPUs there are, or which.
_VITAL = ("GetCount", "GetHandle", "GetName")


def gpus(evidence: Evidence) -> Read[GpuFacts]:
    """Read the GPUs, and note an nvidia-smi that hangs although NVML answers: tools and jobs that ask it hang, too."""
    told = _asked(evidence)
    return replace(told, hung=_hung(evidence)) if isinstance(told, GpuFacts) else told


def _hung(evidence: Evidence) -> str:
    why = (trouble(command, evidence.reply(command)) for command in (SMI_QUERY, SMI))
    return next((one.reason for one in why if isinstance(one, Unread) and one.hung), "")


def _asked(evidence: Evidence) -> Read[GpuFacts]:
    """Ask both. Two sources that both fail are Unread; that there is none takes PCI's word as well."""
    reply = evidence.reply(NVML)
    if reply.succeeded:
        return _from_nvml(cast("Said", reply.value))
    told = _from_smi(evidence)
    if isinstance(told, GpuFacts) or (isinstance(told, Unread) and told.hung):
        return told
    silent = trouble(NVML, reply)
    if reply.status is not Status.MISSING and isinstance(silent, Unread) and isinstance(told, Absent):
        return silent if shown_gpus(evidence) != () else told
    return told


def _from_nvml(value: Said) -> Read[GpuFacts]:
    errors = cast("Mapping[str, object]", value.get("errors") or {})
    for function, words in errors.items():
        if any(vital in function for vital in _VITAL) or "lost" in str(words).lower():
            return Unread(f"NVML cannot read every GPU: {function}: {words}", fix="nvidia-smi")
    found = tuple(_gpu(one) for one in cast("list[Said]", value["gpus"]))
    if not found:
        return _none_found(value)
    return GpuFacts(found, str(value.get("driver") or ""), str(value.get("cuda") or ""), "nvml")


def _none_found(value: Said) -> Unread | Absent:
    if value.get("devices"):
        return Unread(f"{value['devices']} NVIDIA GPU(s) on PCI, and NVML counts none", fix="nvidia-smi")
    return Absent("no NVIDIA GPU")


def _gpu(one: Said) -> Gpu:
    return Gpu(
        index=cast("int", one["index"]),
        name=str(one["name"]),
        uuid=str(one.get("uuid") or ""),
        pci=pci_address(str(one["pci"])) if one.get("pci") else "",
        memory_total=cast("int | None", one.get("memory_total")),
        memory_used=cast("int | None", one.get("memory_used")),
    )


def _from_smi(evidence: Evidence) -> Read[GpuFacts]:
    if why := smi_trouble(evidence, SMI_QUERY):
        return why
    try:
        found, driver = parse_query(evidence.reply(SMI_QUERY).stdout)
    except ValueError as error:
        return Unread(str(error), fix="nvidia-smi")
    header = evidence.reply(SMI)
    cuda = parse_smi(header.stdout).cuda if header.succeeded else None
    return GpuFacts(found, driver, cuda or "", "nvidia-smi")


FACTS = (Fact(GpuFacts, (NVML, SMI_QUERY, SMI, DEVICES), gpus),)
