"""What was read on a node, as flat values, and what each of them can explain: `ncheck diff` and the history use it.

Which fact says what is in one table, by its name and member, the longest one that fits. A value that is not in it is
compared too, and explains little. What changes by itself from run to run (uptime, free memory, temperatures, ports)
explains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass
from ncheck.model.fact import Absent, Unread, name_of
from ncheck.parse.interface_names import Kind

if TYPE_CHECKING:
    from ncheck.model.cluster import Facts


class Topic(str, Enum):
    """What a value is of."""

    NETWORK = "network"
    GPU = "GPUs"
    JOB = "settings of the job"
    VERSION = "versions"
    SYSTEM = "settings of the system"
    CODE = "code of the job"
    COUNTER = "counters"
    NEIGHBOURS = "neighbours"
    MACHINE = "machine"
    OTHER = "other"
    ITSELF = "differs in each run"
    AGAIN = "said by another value"


@dataclass(frozen=True)
class Value:
    """A value by the fact that has it. `member`: "ports.firmware"; `part`: of a list or a table, "mlx5_0:1"."""

    fact: str
    member: str
    part: str = ""

    @property
    def explained(self) -> tuple[Topic, str]:
        """Return what the value is of, and its name for people."""
        words = f"{self.fact}.{self.member}".split(".")
        if words[-1] in _BY_ITSELF or f"{self.member} {self.part}" in _BY_ITSELF:
            return Topic.ITSELF, ""
        for length in range(len(words), 0, -1):
            if row := _VALUES.get(".".join(words[:length])):
                topic, name = row
                rest = words[length:]
                return topic, " ".join([name or words[length - 1].removesuffix("Facts"), *rest]).replace("_", " ")
        return Topic.OTHER, " ".join([self.fact.removesuffix("Facts"), *words[1:]]).replace("_", " ")


THERE = "there"
_NAMES = ("address", "pci", "name", "path", "point", "target", "ip", "source", "hca", "index")
_MOST = 20_000  # values of one fact
_PASSING = (Kind.LOOPBACK, Kind.VETH, Kind.TUN, Kind.OVERLAY, Kind.CONTAINER_BRIDGE)  # come and go with containers

# Members that are other ones in each run, whatever the fact. A change of them explains nothing.
_BY_ITSELF = frozenset({
    "seconds", "free", "files_free", "used", "load", "stalled", "available", "memory_used", "temperature",
    "memory_temperature", "margin", "at", "sent", "received", "pid", "pids", "ids", "inode",
    "offset", "uncertainty", "count", "boot_id", "attempts", "authentication_seconds", "python_seconds",
    "shell_seconds", "detail", "index", "peer_index", "throttled", "times", "network_namespace", "owners", "late",
    "asked", "lid", "sm_lid", "tried", "variables PATH",
})  # fmt: skip

# What only says again, or measures, or tries what other facts have; and what is only about this run.
_NOT_COMPARED = frozenset({
    "ArrivalFacts", "ClockFacts", "CrashFacts", "CudaInitFacts", "ExpectedFacts", "GpuTestFacts", "JobFacts",
    "LaterErrorCountersFacts", "LinkFacts", "ListenFacts", "ListingFacts", "LoginFacts", "LostPeerFacts",
    "MeetingFacts", "NcclCopiesFacts", "PeerSshFacts", "PlannedPickFacts", "PlugInFacts", "ProbeFacts", "PromptFacts",
    "RanksFacts", "ReservationFacts", "RouteFacts", "SshFromHereFacts", "StorageProbeFacts", "ToolFacts",
    "TopologyFacts", "UnreadFacts",
})  # fmt: skip

_VALUES: Mapping[str, tuple[Topic, str]] = {
    "BondFacts": (Topic.NETWORK, "bond"),
    "EfaFacts.devices": (Topic.NETWORK, "EFA device"),
    "HcaFacts.ports": (Topic.NETWORK, "HCA port"),
    "HcaFacts.ports.gids": (Topic.OTHER, "GID"),
    "InfinibandFacts.ports": (Topic.NETWORK, "HCA port"),
    "InfinibandFacts.source": (Topic.AGAIN, ""),
    "NcclPickFacts.address": (Topic.NETWORK, "address that NCCL picks"),
    "NcclPickFacts": (Topic.AGAIN, ""),
    "NicFacts.interfaces": (Topic.NETWORK, "interface"),
    "NicFacts.interfaces.mtu": (Topic.NETWORK, "MTU of interface"),
    "PcieFacts.hcas": (Topic.NETWORK, "PCIe of HCA"),
    "RoceFacts": (Topic.NETWORK, "RoCE"),
    "AmdErrorFacts": (Topic.COUNTER, "errors of AMD GPUs"),
    "GpuFacts.gpus": (Topic.GPU, "GPU"),
    "GpuFacts.gpus.processes": (Topic.ITSELF, ""),
    "GpuFacts.source": (Topic.AGAIN, ""),
    "GpuHealthFacts.gpus": (Topic.GPU, "GPU"),
    "PcieFacts.gpus": (Topic.GPU, "PCIe of GPU"),
    "EnvironmentFacts.files": (Topic.JOB, "file"),
    "EnvironmentFacts.start_up": (Topic.OTHER, "start-up file sets"),
    "EnvironmentFacts.variables": (Topic.JOB, "variable"),
    "LimitsFacts": (Topic.SYSTEM, "limit"),
    "MpiSettingsFacts": (Topic.JOB, "Open MPI's setting"),
    "AcsFacts.controls": (Topic.SYSTEM, "PCIe access control (ACS)"),
    "GpuDirectFacts": (Topic.SYSTEM, "GPUDirect RDMA"),
    "GpuDirectFacts.kernel": (Topic.AGAIN, ""),
    "HostSettingsFacts": (Topic.SYSTEM, "system:"),
    "IommuFacts": (Topic.SYSTEM, "IOMMU"),
    "NetSettingsFacts": (Topic.SYSTEM, "kernel's network:"),
    "HcaModuleFacts": (Topic.SYSTEM, "module"),
    "CodeFacts": (Topic.CODE, "code"),
    "CudaToolkitFacts.version": (Topic.VERSION, "CUDA toolkit"),
    "CudnnFacts.version": (Topic.VERSION, "cuDNN"),
    "EfaFacts.driver": (Topic.VERSION, "EFA driver"),
    "FabricManagerFacts": (Topic.GPU, "Fabric Manager"),
    "FabricManagerFacts.version": (Topic.VERSION, "Fabric Manager"),
    "GpuFacts.cuda": (Topic.VERSION, "CUDA of the driver"),
    "GpuFacts.driver": (Topic.VERSION, "GPU driver"),
    "GpuFacts.rocm": (Topic.VERSION, "ROCm"),
    "GpuHealthFacts.gpus.vbios": (Topic.VERSION, "VBIOS of GPU"),
    "HorovodFacts": (Topic.VERSION, "Horovod"),
    "InfinibandFacts.ports.firmware": (Topic.VERSION, "firmware of HCA port"),
    "InterpreterFacts": (Topic.VERSION, "Python"),
    "InterpreterFacts.frameworks": (Topic.VERSION, "package"),
    "InterpreterFacts.libraries": (Topic.VERSION, "package"),
    "InterpreterFacts.torch": (Topic.AGAIN, ""),
    "LoadedNcclFacts": (Topic.OTHER, "NCCL"),
    "LoadedNcclFacts.version": (Topic.VERSION, "NCCL"),
    "MachineFacts": (Topic.MACHINE, "machine"),
    "MachineFacts.bios": (Topic.VERSION, "BIOS"),
    "MachineFacts.container_toolkit": (Topic.VERSION, "container toolkit"),
    "MachineFacts.image": (Topic.VERSION, "image"),
    "MachineFacts.kernel": (Topic.VERSION, "kernel"),
    "MpiFacts.version": (Topic.VERSION, "MPI"),
    "MpiFacts.implementation": (Topic.VERSION, "MPI"),
    "NetPluginFacts": (Topic.VERSION, "NCCL's network plug-in"),
    "NicFacts.interfaces.driver": (Topic.VERSION, "driver of interface"),
    "NicFacts.interfaces.firmware": (Topic.VERSION, "firmware of interface"),
    "NvidiaDriverFacts": (Topic.AGAIN, ""),  # GpuFacts says it, and a mismatch is a finding
    "OsFacts.name": (Topic.VERSION, "OS"),
    "PackagesFacts": (Topic.VERSION, "package"),
    "ErrorCountersFacts.ports": (Topic.COUNTER, "counter"),
    "GpuHealthFacts.gpus.counted": (Topic.COUNTER, "NVLink errors of GPU"),
    "GpuHealthFacts.gpus.ecc": (Topic.COUNTER, "uncorrected memory errors of GPU"),
    "GpuHealthFacts.gpus.ecc_ever": (Topic.COUNTER, "uncorrected memory errors of GPU, ever:"),
    "GpuHealthFacts.gpus.link_errors": (Topic.COUNTER, "NVLink errors of GPU"),
    "GpuHealthFacts.gpus.pcie_replays": (Topic.COUNTER, "PCIe replays of GPU"),
    "GpuHealthFacts.gpus.remapped": (Topic.COUNTER, "remapped rows of GPU"),
    "HardwareErrorFacts": (Topic.COUNTER, "errors:"),
    "HardwareErrorFacts.pcie.read": (Topic.AGAIN, ""),
    "DiskFacts": (Topic.MACHINE, "disk"),
    "FolderFacts": (Topic.MACHINE, "folder"),
    "MountFacts": (Topic.MACHINE, "mount"),
    "StorageFacts": (Topic.MACHINE, "storage"),
    "StorageFacts.folders.changed": (Topic.ITSELF, ""),
    "PciFacts": (Topic.MACHINE, "PCI device"),
    "HostLoadFacts": (Topic.MACHINE, "use:"),
    "HostLoadFacts.left_over": (Topic.NEIGHBOURS, "process of another job"),
    "HostLoadFacts.stuck": (Topic.NEIGHBOURS, "stuck process"),
    "NeighbourFacts": (Topic.ITSELF, ""),
}


def values_of(facts: Facts) -> dict[Value, str]:
    """Return what was read on a node; what is not there has no value."""
    values: dict[Value, str] = {}
    for kind, fact in facts.items():
        name = name_of(kind)
        if name not in _NOT_COMPARED and not isinstance(fact, (Absent, Unread)):
            for count, (member, part, text) in enumerate(_flat(fact, "", "")):
                if count == _MOST:
                    break
                if text:
                    values[Value(name, member, part)] = text
    return values


def unread_in(facts: Facts) -> set[str]:
    """Return the facts that could not be read: nothing can be said of them."""
    return {name_of(kind) for kind, fact in facts.items() if isinstance(fact, Unread)}


def _flat(value: object, member: str, part: str) -> Iterator[tuple[str, str, str]]:
    """Yield the member, the part and the text of each value in it. A record in a list or a table is there itself."""
    if value is None or isinstance(value, (Absent, Unread)):
        return
    if is_dataclass(value):
        for field in fields(value):
            yield from _flat(getattr(value, field.name), f"{member}.{field.name}".lstrip("."), part)
        return
    parts = _parts(value)
    for key, inner in parts:
        name = f"{part} {key}".strip()
        if is_dataclass(inner) and not isinstance(inner, (Absent, Unread)):
            yield member, name, THERE
        yield from _flat(inner, member, name)
    if isinstance(value, (frozenset, set)):
        yield member, part, ", ".join(sorted(map(str, value)))
    elif isinstance(value, tuple):
        yield member, part, "" if parts else ", ".join(map(str, value))
    elif not isinstance(value, Mapping):
        yield member, part, str(value.value if isinstance(value, Enum) else value)


def _parts(value: object) -> list[tuple[str, object]]:
    """Return what a table, or a list of records, has, by its name."""
    if isinstance(value, Mapping):
        return [(_key(key), inner) for key, inner in value.items()]
    if isinstance(value, tuple) and any(is_dataclass(one) or isinstance(one, Mapping) for one in value):
        return [(_name_of(one, at), one) for at, one in enumerate(value) if getattr(one, "kind", None) not in _PASSING]
    return []


def _key(key: object) -> str:
    return ":".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _name_of(item: object, at: int) -> str:
    port = getattr(item, "port", None)
    if port is not None and (hca := getattr(item, "hca", "")):
        return f"{hca}:{port}"
    words = _NAMES if not isinstance(getattr(item, "kind", None), Kind) else ("name",)
    return next((str(name) for name in (getattr(item, word, None) for word in words) if name), str(at or ""))


@dataclass(frozen=True)
class Difference:
    """A value that is another one now. `old`, `new`: None where there is none."""

    value: Value
    old: str | None
    new: str | None


def differences(old: Facts, new: Facts) -> Iterator[Difference]:
    """Yield what differs on a node. A fact that could not be read once is not compared; of a part that came or went,
    only that is said.
    """
    unread = unread_in(old) | unread_in(new)
    before, after = values_of(old), values_of(new)
    both = {name_of(kind) for kind in old} & {name_of(kind) for kind in new}
    moved = {
        value for value, text in {**before, **after}.items() if text == THERE and (value in before) != (value in after)
    }
    for value in dict.fromkeys((*before, *after)):
        was, is_ = before.get(value), after.get(value)
        if was == is_ or value.fact in unread or value.fact not in both or value.explained[0] is Topic.AGAIN:
            continue
        if value not in moved and any(_part_of(value, one) for one in moved):
            continue
        yield Difference(value, was, is_)


def _part_of(value: Value, whole: Value) -> bool:
    return (
        value.fact == whole.fact
        and f"{value.member}.".startswith(f"{whole.member}.")
        and f"{value.part} ".startswith(f"{whole.part} ")
    )
