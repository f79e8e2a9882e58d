"""What was read on a node, as flat values, and what each of them can explain: `ncheck diff` and the history use it.

Which fact says what is in one table, by its name and member, the longest one that fits. A value that is not in it is
compared too, and explains little. What changes by itself from run to run (uptime, free memory, temperatures, ports)
explains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

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


class Value(NamedTuple):
    """A value by the fact that has it. `member`: "ports.firmware"; `part`: in lists and tables, ("mlx5_0:1",)."""

    fact: str
    member: str
    part: tuple[str, ...] = ()

    @property
    def explained(self) -> tuple[Topic, str]:
        """Return what the value is of, and its name for people."""
        if f"{self.member} {' '.join(self.part)}" in _BY_ITSELF:
            return Topic.ITSELF, ""
        return _explained(self.fact, self.member)


@lru_cache(maxsize=4096)  # every node has the same members
def _explained(fact: str, member: str) -> tuple[Topic, str]:
    words = f"{fact}.{member}".split(".")
    if words[-1] in _BY_ITSELF:
        return Topic.ITSELF, ""
    for length in range(len(words), 0, -1):
        if row := _VALUES.get(".".join(words[:length])):
            topic, name = row
            return topic, " ".join([name, *words[length:]]).replace("_", " ")
    return Topic.OTHER, " ".join([fact.removesuffix("Facts"), *words[1:]]).replace("_", " ")


THERE = "there"
_NAMES = ("address", "pci", "name", "path", "point", "target", "ip", "source", "hca", "index")
_MOST = 50_000  # values of one node
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
    "ArrivalFacts", "ClockFacts", "CrashFacts", "CudaInitFacts", "ExpectedFacts", "GpuTestFacts", "GroupFacts",
    "JobFacts", "LaterErrorCountersFacts", "LinkFacts", "ListenFacts", "ListingFacts", "LoginFacts", "LostPeerFacts",
    "MeetingFacts", "NcclCopiesFacts", "PeerSshFacts", "PlannedPickFacts", "PlugInFacts", "ProbeFacts", "PromptFacts",
    "RanksFacts", "ReservationFacts", "RouteFacts", "SshFromHereFacts", "StorageProbeFacts", "ToolFacts",
    "TopologyFacts", "UnreadFacts",
})  # fmt: skip

OF_INTERFACES = ("rp_filter", "arp_ignore", "arp_announce", "arp_filter")  # settings of each, those of containers too

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
    "NameFacts": (Topic.OTHER, "name resolution:"),
    "NetSettingsFacts": (Topic.SYSTEM, "kernel's network:"),
    "NetSettingsFacts.conf": (Topic.ITSELF, ""),  # an interface of a container comes or goes
    **{f"NetSettingsFacts.conf.{name}": (Topic.SYSTEM, f"{name} of") for name in OF_INTERFACES},
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
        if name not in _NOT_COMPARED:
            _read(values, Value(name, ""), fact)
    return values


def facts_about(topics: Iterable[Topic]) -> frozenset[str]:
    """Return the names of the facts that have values of these topics."""
    wanted = frozenset(topics)
    return frozenset(name.partition(".")[0] for name, (topic, _) in _VALUES.items() if topic in wanted)


def unread_in(facts: Facts) -> set[str]:
    """Return the facts that could not be read: nothing can be said of them."""
    return {name_of(kind) for kind, fact in facts.items() if isinstance(fact, Unread)}


def _read(values: dict[Value, str], where: Value, value: object) -> None:
    """Add the text of each value in it. A record in a list or a table is there itself."""
    if isinstance(value, (str, int, float)):  # also what an Enum with texts has
        text = str(value.value if isinstance(value, Enum) else value)
        if text and len(values) < _MOST:
            values[where] = text
    elif value is None or isinstance(value, (Absent, Unread)):
        return
    elif is_dataclass(value) and not isinstance(value, type):
        fact, member, part = where
        for name, longer in _members(type(value), member):
            _read(values, Value(fact, longer, part), getattr(value, name))
    elif parts := _parts(value):
        fact, member, part = where
        for key, inner in parts:
            of_part = Value(fact, member, (*part, key) if key else part)
            if is_dataclass(inner) and not isinstance(inner, (Absent, Unread)):
                values[of_part] = THERE
            _read(values, of_part, inner)
    elif value and not isinstance(value, Mapping):
        listed = (
            value if isinstance(value, tuple) else sorted(map(str, value)) if isinstance(value, frozenset) else [value]
        )
        values[where] = ", ".join(map(str, listed))


@lru_cache(maxsize=1024)
def _members(kind: type, member: str) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, f"{member}.{field.name}".lstrip(".")) for field in fields(kind))


def _parts(value: object) -> list[tuple[str, object]]:
    """Return what a table, or a list of records, has, by its name."""
    if isinstance(value, Mapping):
        return [(_key(key), inner) for key, inner in value.items()]
    if isinstance(value, tuple) and value and (is_dataclass(value[0]) or isinstance(value[0], Mapping)):
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
        if value in moved or moved.isdisjoint(_wholes(value)):
            yield Difference(value, was, is_)


def _wholes(value: Value) -> Iterator[Value]:
    """Yield what the value may be a part of."""
    words = value.member.split(".")
    for length in range(len(words)):
        for depth in range(1, len(value.part) + 1):
            yield Value(value.fact, ".".join(words[: length + 1]), value.part[:depth])
