"""The environment as rows of a table: what an evaluation report says of hardware and software. It reads `system`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ncheck.lazy_dataclass import dataclass
from ncheck.model.report import Report
from ncheck.model.system import OF_A_WHEEL, System, SystemDisk, SystemGpus, SystemInterface, SystemPort
from ncheck.parity import nodes_by_value
from ncheck.report.text import size

_WIRES = ("physical", "cloud", "bond")
_UNSAID = "unknown: the system does not show it"


@dataclass(frozen=True)
class PropertyRow:
    """One property, and its values with the nodes that have them: one value where all agree."""

    name: str
    values: tuple[tuple[str, tuple[str, ...]], ...]


def environment(report: Report) -> tuple[PropertyRow, ...]:
    """Return the rows of all nodes that were reached; a property that no check reads, or no node has, has no row."""
    reached = {node.name for node in report.nodes if node.reached}
    rows = []
    for name, topic, value_of in _ROWS:
        values = {node: value for system in report.systems for value in (_value(system, topic, value_of),)
                  for node in system.nodes if node in reached}  # fmt: skip
        if any(values.values()):
            parted = nodes_by_value({node: value or _NONE for node, value in values.items()})
            rows.append(PropertyRow(name, tuple(sorted(parted.items(), key=lambda value: -len(value[1])))))
    return tuple(rows)


_NONE = "none"


def _value(system: System, topic: str, value_of: Callable[[System], str | None]) -> str | None:
    """Return the text of one cell; None where nothing was asked."""
    if reason := system.unknown.get(topic):
        return f"unknown: {reason}"
    if reason := system.absent.get(topic):
        return f"{_NONE} ({reason})"
    return None if getattr(system, topic) is None else value_of(system)


def _gpus(system: System) -> str | None:
    gpus = system.gpus
    if gpus is None:
        return None
    models = " + ".join(f"{count} x {model}" for model, count in gpus.models.items())
    return models + (f", {size(gpus.memory // gpus.count)} each" if _alike(gpus) and gpus.memory else "")


def _alike(gpus: SystemGpus) -> bool:
    return len(gpus.models) == 1 and gpus.count > 0


def _cpu(system: System) -> str | None:
    machine = system.machine
    if machine is None:
        return None
    sockets = f"{machine.sockets} x " if machine.sockets else ""
    numbers = ((machine.cores, "cores"), (machine.threads, "threads"), (machine.numa_nodes, "NUMA nodes"))
    counts = [f"{number} {noun if number > 1 else noun[:-1]}" for number, noun in numbers if number]
    return ", ".join([sockets + (machine.cpu or f"model unknown ({machine.architecture})"), *counts])


def _machine(system: System) -> str | None:
    return f"{system.machine.product or 'model unknown'}, {system.machine.architecture}" if system.machine else None


def _memory(system: System) -> str | None:
    return size(system.machine.memory) if system.machine and system.machine.memory else _UNSAID


def _ports(system: System) -> str:
    def shown(port: SystemPort) -> str:
        rate = f"{port.rate:g} Gb/s" if port.rate is not None else "rate unknown"
        return f"{port.link_layer} {rate}" + ("" if port.state == "Active" else f" ({port.state})")

    return _counted(shown(port) for port in system.ports or ()) or _NONE


def _hcas(system: System) -> str | None:
    """Return "8 x ConnectX-7 (MT4129), firmware 28.39.1002"; a card with two ports counts once."""
    cards = {port.name.partition(":")[0]: port for port in system.ports or ()}
    shown = (f"{port.model or 'model unknown'}, firmware {port.firmware or 'unknown'}" for port in cards.values())
    return _counted(shown) or _NONE


def _ethernet(system: System) -> str:
    def shown(wire: SystemInterface) -> str:
        speed = f"{wire.speed:g} Gb/s" if wire.speed else "speed unknown"
        card = ", ".join(word for word in (wire.driver, wire.firmware and f"firmware {wire.firmware}") if word)
        return f"{wire.name} {speed}, MTU {wire.mtu}" + (f" ({card})" if card else "")

    wires = [wire for wire in system.interfaces or () if wire.kind in _WIRES and wire.running]
    return "; ".join(map(shown, wires)) or _NONE


def _disk(folder: str) -> Callable[[System], str | None]:
    def shown(system: System) -> str | None:
        disk = next((one for one in system.disks or () if one.name == folder), None)
        return None if disk is None else _file_system(disk)

    return shown


def _file_system(disk: SystemDisk) -> str:
    if disk.error:
        return f"unknown: {disk.error}"
    return f"{disk.kind or 'kind unknown'}, {size(disk.size) if disk.size else 'size unknown'}"


def _container(system: System) -> str:
    """Return "docker, image rocm/pytorch:latest"; most runtimes do not show the image."""
    if not system.container and not system.image:
        return _NONE
    return f"{system.container or 'container'}, image {system.image or 'unknown: the container does not show it'}"


def _cuda(system: System) -> str | None:
    if system.gpus and system.gpus.rocm:
        return None
    return (system.gpus and system.gpus.cuda) or _UNSAID


def _cuda_toolkit(system: System) -> str:
    return system.cuda_toolkit or "unknown: no file of it says its version"


def _cudnn(system: System) -> str:
    """Return "9.1.0.70 (wheel); not loaded: 8.9.7 (system)": the copy that the job's framework loads comes first."""
    loaded, others = system.cudnn or "version unknown", system.system_cudnn or ()
    if not system.cudnn_path:
        loaded = "none that the job loads"
    elif OF_A_WHEEL in system.cudnn_path:
        loaded += " (wheel)"
    elif loaded in others:
        others = tuple(version for version in others if version != loaded)
        loaded += " (system)"
    return loaded + (f"; not loaded: {', '.join(others)} (system)" if others else "")


def _container_toolkit(system: System) -> str | None:
    """Return the release on a machine with NVIDIA's GPUs; in a container nothing shows it."""
    if system.container_toolkit != "":
        return system.container_toolkit
    if system.gpus is None or system.gpus.rocm:
        return None
    return "unknown: the container does not show it" if system.container else _NONE


def _nccl(system: System) -> str | None:
    of_amd = "rccl" in (system.nccl_path or "").rpartition("/")[2]
    plugin = f", network plug-in {system.net_plugin}" if system.net_plugin else ""
    return f"{system.nccl}{' (RCCL)' if of_amd else ''}{plugin}" if system.nccl else system.nccl


def _frameworks(system: System) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted((system.frameworks or {}).items())) or _NONE


# The name of a row, the member of System that says why there is none, and its text.
_ROWS: tuple[tuple[str, str, Callable[[System], str | None]], ...] = (
    ("GPU", "gpus", _gpus),
    ("GPU topology", "topology", lambda system: system.topology),
    ("HCAs", "ports", _hcas),
    ("HCA ports", "ports", _ports),
    ("Ethernet", "interfaces", _ethernet),
    ("Machine", "machine", _machine),
    ("CPU", "machine", _cpu),
    ("Memory", "machine", _memory),
    ("Disk of the home folder", "disks", _disk("home")),
    ("Disk of /", "disks", _disk("root")),
    ("OS", "os", lambda system: system.os or _UNSAID),
    ("Container", "python", _container),
    ("NVIDIA container toolkit", "machine", _container_toolkit),
    ("Kernel", "machine", lambda system: system.machine.kernel if system.machine else None),
    ("GPU driver", "gpus", lambda system: (system.gpus and system.gpus.driver) or _UNSAID),
    ("CUDA of the driver", "gpus", _cuda),
    ("CUDA toolkit", "cuda_toolkit", _cuda_toolkit),
    ("cuDNN", "cudnn", _cudnn),
    ("ROCm", "gpus", lambda system: (system.gpus and system.gpus.rocm) or None),
    ("NCCL", "nccl", _nccl),
    ("MPI", "mpi", lambda system: f"{system.mpi} {system.mpi_version}"),
    ("Python", "python", lambda system: system.python_version),
    ("Frameworks", "python", _frameworks),
)


def _counted(texts: Iterable[str]) -> str:
    return " + ".join(f"{count} x {text}" for text, count in Counter(texts).items())
