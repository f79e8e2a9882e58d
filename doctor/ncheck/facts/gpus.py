"""The GPUs of a node, from NVML or nvidia-smi; where it has none of NVIDIA, from amd-smi or rocm-smi."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated

from ncheck.decode import OPTIONAL, Maybe, Null, OrEmpty, Shown
from ncheck.facts import amd
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Command, Evidence, Reply, Status, Tree
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.amd_smi import AmdSmi
from ncheck.parse.nvidia_smi import QUERY, Gpu, parse_query, parse_smi, pci_address, smi_failure


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a GPU. `name` and `user`: "" where this user is not shown them. `ended`: there is no
    such process any more, although the driver lists it.
    """

    pid: int
    name: Shown = ""
    user: Shown = ""
    ended: bool = False

    @property
    def called(self) -> str:
        """As in "pid 4711 python3 of user anna"."""
        if self.ended:
            return f"pid {self.pid}, which has ended"
        return " ".join((f"pid {self.pid}", *filter(None, (self.name, self.user and f"of user {self.user}"))))


@dataclass(frozen=True)
class GpuFacts:
    """The GPUs of a node, read from NVML or, if that fails, from nvidia-smi. Those of AMD are read where there is
    none of NVIDIA.

    `driver`: its version. `cuda`: the newest version that the driver supports, such as "12.4", and "" with AMD;
    `rocm`: the version of ROCm, "" without AMD. `hung`: the nvidia-smi command that did not end in time, although
    another source listed the GPUs. `owners` maps the numbers of the first processes on GPUs to what is known of them.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    cuda: str
    source: str  # "nvml", "nvidia-smi" or "amd-smi"
    hung: str = ""
    vendor: str = "NVIDIA"
    rocm: str = ""
    owners: Mapping[int, GpuProcess] = field(default_factory=dict)

    @property
    def models(self) -> tuple[str, ...]:
        """The different model names, sorted."""
        return tuple(sorted({gpu.name for gpu in self.gpus}))

    @property
    def runtime(self) -> str:
        """What programs use the driver by: "CUDA 12.4" or "ROCm 6.4.1"."""
        return f"CUDA {self.cuda}" if self.vendor == "NVIDIA" else f"ROCm {self.rocm or 'unknown'}"

    @property
    def listed_by(self) -> str:
        """The command that lists them."""
        return "nvidia-smi -L" if self.vendor == "NVIDIA" else "amd-smi list"

    @property
    def usage_shown_by(self) -> str:
        """The command that shows what uses them."""
        return "nvidia-smi pmon -c 1" if self.vendor == "NVIDIA" else "amd-smi process"

    @property
    def driver_shown_by(self) -> str:
        """The command that shows which version of the driver is installed, loaded or not."""
        return "modinfo -F version nvidia" if self.vendor == "NVIDIA" else "amd-smi version"

    @property
    def links_shown_by(self) -> str:
        """The command that shows what the matrix of links is made of: of NVIDIA, behind which switch each device is."""
        return "lspci -tv" if self.vendor == "NVIDIA" else "amd-smi topology"


@dataclass(frozen=True)
class NvmlGpu:
    """One GPU as NVML shows it; memory in bytes. `processes`: the number and the memory of each that computes;
    `graphics`: the numbers of those that draw.
    """

    index: int
    name: str
    uuid: OrEmpty = ""
    pci: OrEmpty = ""
    memory_total: Maybe[int] = None
    memory_used: Maybe[int] = None
    processes: Maybe[tuple[tuple[int, int | None], ...]] = None
    graphics: Annotated[tuple[int, ...], OPTIONAL, Null(())] = ()


def _gpu(one: NvmlGpu) -> Gpu:
    processes = None if one.processes is None else dict(one.processes)
    pci = pci_address(one.pci) if one.pci else ""
    return Gpu(one.index, one.name, one.uuid, pci, one.memory_total, one.memory_used, processes, one.graphics)


@dataclass(frozen=True)
class NvmlAnswer:
    """What NVML says. `errors`: the functions that failed; `devices`: how many NVIDIA GPUs PCI shows; `owners`: of the
    first processes.
    """

    gpus: tuple[Annotated[Gpu, _gpu], ...]
    driver: OrEmpty = ""
    cuda: OrEmpty = ""
    errors: Maybe[Mapping[str, str]] = None
    devices: Annotated[int, OPTIONAL, Null(0)] = 0
    owners: Annotated[tuple[GpuProcess, ...], OPTIONAL, Null(())] = ()


WAKING = 30.0  # seconds: without persistence mode, the driver needs 10 to 25 s to wake eight GPUs
# MISSING: the agent looked on PCI too and found no NVIDIA device
NVML = Answer("gpus", timeout=WAKING, shape=NvmlAnswer, slow=True)

DEVICES = Tree(
    ("/sys/bus/pci/devices/*/vendor", "/sys/bus/pci/devices/*/class", "/proc/driver/nvidia/gpus/*/information")
)

# Both come with exit status 6 or 9. A driver that died prints the second one too, so PCI decides.
_NO_GPU = ("No devices were found", "communicate with the NVIDIA driver")
_NVIDIA, _AMD = "0x10de", "0x1002"
_DISPLAY = "0x03"  # PCI base class of VGA and 3D controllers; an NVSwitch is 0x0680
_ACCELERATOR = "0x12"


def shown_gpus(evidence: Evidence) -> tuple[str, ...] | None:
    """Return the PCI addresses of the NVIDIA GPUs that the system shows, or None if it could not be read."""
    reply = evidence.reply(DEVICES)
    if reply.status is Status.MISSING:
        return ()
    if reply.succeeded and isinstance(reply.value, dict):
        return gpus_in(reply.value)
    return () if evidence.reply(NVML).status is Status.MISSING else None


def gpus_in(tree: Mapping[str, object]) -> tuple[str, ...]:
    """Return the addresses in a listing of /sys/bus/pci/devices and /proc/driver/nvidia/gpus."""
    bound = {path.split("/")[-2].lower() for path in tree if path.startswith("/proc/driver/nvidia/gpus/")}
    return tuple(sorted(_on_bus(tree, _NVIDIA, _DISPLAY) | bound))


def _on_bus(tree: Mapping[str, object], vendor: str, kind: str) -> set[str]:
    texts = {path: str(text).strip().lower() for path, text in tree.items() if isinstance(text, str)}
    return {
        path.split("/")[-2]
        for path, text in texts.items()
        if path.endswith("/vendor") and text == vendor
        and texts.get(path.removesuffix("vendor") + "class", kind).startswith(kind)
    }  # fmt: skip


def amd_says(command: Command, evidence: Evidence) -> AmdSmi | Unread | Absent:
    """Return what AMD's tools say; see `amd.asked`. Instinct GPUs are accelerators on PCI since the MI200."""
    reply = evidence.reply(DEVICES)
    tree = reply.value if reply.succeeded and isinstance(reply.value, dict) else {}
    return amd.asked(command, evidence, tuple(sorted(_on_bus(tree, _AMD, _ACCELERATOR))))


def smi_trouble(evidence: Evidence, command: Command) -> Unread | Absent | None:
    """Return why this nvidia-smi command failed, given what PCI shows; None if it succeeded.

    A tool that is missing or finds no GPU is Absent only if PCI could be read and shows no GPU either.
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
        reason = f"{len(shown)} NVIDIA GPU(s) on PCI ({shown[0]}), but nvidia-smi was not found"
        return Unread(reason, fix="which nvidia-smi")
    if shown is None:
        return Unread("nvidia-smi was not found, and PCI could not be read to look for a GPU", fix="lspci -d 10de:")
    return Absent("no NVIDIA GPU")


def _finds_nothing(reply: Reply) -> bool:
    """Return whether nvidia-smi says that there is no GPU, and not that the driver fails."""
    message = smi_failure(reply.stdout + reply.stderr) or ""
    return reply.status is Status.OK and any(words in message for words in _NO_GPU)


SMI_QUERY = Command(("nvidia-smi", "--query-gpu=" + ",".join(QUERY), "--format=csv,noheader,nounits"), slow=True)
SMI = Command(("nvidia-smi",), slow=True)

# If one of these fails, the number or the names of the GPUs are unknown.
_VITAL = ("GetCount", "GetHandle", "GetName")


def gpus(evidence: Evidence) -> Read[GpuFacts]:
    """Read the GPUs. Record an nvidia-smi that hangs although NVML answers: tools and jobs that run it hang too."""
    facts = _from_either(evidence)
    if isinstance(facts, Absent):
        return _of_amd(evidence, facts)
    return replace(facts, hung=_hung(evidence)) if isinstance(facts, GpuFacts) else facts


def _of_amd(evidence: Evidence, none_of_nvidia: Absent) -> Read[GpuFacts]:
    found = amd_says(amd.LISTING, evidence)
    if isinstance(found, Absent):
        return none_of_nvidia
    if isinstance(found, Unread):
        return found
    driver, rocm = found.versions.get("driver", ""), amd.rocm_version(evidence)
    return GpuFacts(amd.gpus_of(found), driver, "", "amd-smi", vendor="AMD", rocm=rocm)


def _hung(evidence: Evidence) -> str:
    failures = (trouble(command, evidence.reply(command)) for command in (SMI_QUERY, SMI))
    return next((failure.reason for failure in failures if isinstance(failure, Unread) and failure.hung), "")


def _from_either(evidence: Evidence) -> Read[GpuFacts]:
    """Read NVML, else nvidia-smi. If both fail, the result is Unread; Absent only if PCI shows no GPU either."""
    reply = evidence.reply(NVML)
    if reply.succeeded:
        return _from_nvml(answer_of(NVML, evidence))
    facts = _from_smi(evidence)
    if isinstance(facts, GpuFacts) or (isinstance(facts, Unread) and facts.hung):
        return facts
    nvml_trouble = trouble(NVML, reply)
    if reply.status is not Status.MISSING and isinstance(nvml_trouble, Unread) and isinstance(facts, Absent):
        return nvml_trouble if shown_gpus(evidence) != () else facts
    return facts


def _from_nvml(answer: NvmlAnswer) -> Read[GpuFacts]:
    for function, words in (answer.errors or {}).items():
        if any(vital in function for vital in _VITAL) or "lost" in words.lower():
            return Unread(f"NVML cannot read every GPU: {function}: {words}", fix="nvidia-smi")
    if answer.gpus:
        owners = {one.pid: one for one in answer.owners}
        return GpuFacts(answer.gpus, answer.driver, answer.cuda, "nvml", owners=owners)
    if answer.devices:
        return Unread(f"{answer.devices} NVIDIA GPU(s) on PCI, but NVML finds none", fix="nvidia-smi")
    return Absent("no NVIDIA GPU")


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


DRIVER_HANGS = "hanging driver"  # what nvidia-smi-hangs explains: what else could not be read of the driver
DRIVER_FAILS = "failing driver"  # what gpu-unusable and nvidia-driver-mismatched explain: the same, where nothing hangs
OF_DRIVER = frozenset({"GpuFacts", "GpuHealthFacts", "NvidiaDriverFacts", "TopologyFacts"})
FACTS = (Fact(GpuFacts, (NVML, SMI_QUERY, SMI, DEVICES, amd.LISTING, amd.ROCM), gpus),)
