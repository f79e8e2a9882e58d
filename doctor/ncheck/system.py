"""From facts to the values that the report has of a node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

from ncheck.facts.code import CodeFacts
from ncheck.facts.folders import Folder, FolderFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.machine import MachineFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import CARRIES_DATA, Interface, NicFacts
from ncheck.facts.os_release import OsFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.system import System, SystemDisk, SystemGpus, SystemInterface, SystemMachine, SystemPort
from ncheck.parse.topology_matrix import closest_nics

_MOST = 64  # interfaces and ports of a node, and addresses of one: containers can make thousands
_MEGA_PER_GIGA = 1000

# The first field of the topic, under which `absent` and `unknown` name it.
_TOPICS = {
    GpuFacts: "gpus", LoadedNcclFacts: "nccl", MpiFacts: "mpi", HorovodFacts: "horovod", InterpreterFacts: "python",
    InfinibandFacts: "ports", NicFacts: "interfaces", MachineFacts: "machine", OsFacts: "os", FolderFacts: "disks",
    TopologyFacts: "topology",
}  # fmt: skip


def system_of(facts: Facts) -> System:
    """Return what is known of a node, and why the rest is not."""
    system, absent, unknown = System(), {}, {}
    for fact, topic in _TOPICS.items():
        value = facts.get(fact)
        if isinstance(value, Absent):
            absent[topic] = value.reason
        elif isinstance(value, Unread):
            unknown[topic] = value.reason
        else:
            system = _with(system, value)
    return replace(_with(system, facts.get(CodeFacts)), absent=absent, unknown=unknown)


def _with(system: System, fact: object) -> System:  # noqa: C901, PLR0911  one line a kind of fact
    match fact:
        case GpuFacts():
            return replace(system, gpus=_gpus(fact))
        case LoadedNcclFacts():
            return replace(system, nccl=fact.version, nccl_path=fact.path)
        case MpiFacts():
            return replace(system, mpi=fact.implementation, mpi_version=fact.version)
        case HorovodFacts():
            return replace(system, horovod=fact.version)
        case InterpreterFacts():
            named = replace(system, python=fact.path, python_version=fact.version)
            return replace(named, frameworks=dict(fact.frameworks), container=fact.container)
        case CodeFacts():
            return replace(system, commit=fact.commit if fact.clean else None)
        case InfinibandFacts():
            ports = (SystemPort(p.name, p.state, p.physical, p.rate, p.link_layer) for p in fact.ports[:_MOST])
            return replace(system, ports=tuple(ports))
        case NicFacts():
            nics = [nic for nic in fact.interfaces if nic.kind in CARRIES_DATA or nic.uplink]
            return replace(system, interfaces=tuple(map(_interface, nics[:_MOST])))
        case MachineFacts():
            return replace(system, machine=_machine(fact), image=fact.image)
        case OsFacts():
            return replace(system, os=fact.name)
        case FolderFacts():
            return replace(system, disks=(_disk("home", fact.home), _disk("root", fact.root)))
        case TopologyFacts():
            return replace(system, topology=_topology(fact))
    return system


def _gpus(fact: GpuFacts) -> SystemGpus:
    memory = [gpu.memory_total for gpu in fact.gpus if gpu.memory_total is not None]
    total = sum(memory) if fact.gpus and len(memory) == len(fact.gpus) else None
    return SystemGpus(len(fact.gpus), Counter(gpu.name for gpu in fact.gpus), fact.driver, fact.cuda, total, fact.rocm)


def _interface(nic: Interface) -> SystemInterface:
    speed = nic.speed / _MEGA_PER_GIGA if nic.speed is not None else None
    addresses = tuple(f"{address.ip}/{address.prefix}" for address in nic.addresses[:_MOST])
    return SystemInterface(nic.name, nic.kind.value, nic.running, nic.mtu, speed, addresses)


def _machine(fact: MachineFacts) -> SystemMachine:
    return SystemMachine(
        fact.kernel, fact.architecture, fact.product, fact.cpu, fact.sockets, fact.cores, fact.threads,
        fact.numa_nodes, fact.memory,
    )  # fmt: skip


def _disk(name: str, folder: Folder | Unread) -> SystemDisk:
    if isinstance(folder, Unread):
        return SystemDisk(name, None, None, folder.reason)
    return SystemDisk(name, folder.kind, folder.size)


def _topology(fact: TopologyFacts) -> str:
    """Say the matrix in a line: "8 GPUs, NV18 all to all, one NIC PIX each"."""
    between = Counter(fact.pairs[pair] for pair in combinations(fact.gpus, 2) if pair in fact.pairs)
    total = between.total()
    paths = [f"{path} between {count} of {total} pairs" for path, count in between.items()]
    parts = ["1 GPU" if len(fact.gpus) == 1 else f"{len(fact.gpus)} GPUs"]
    parts += [f"{path} all to all" for path in between] if len(between) == 1 else paths
    nearest = [closest_nics(fact, gpu) for gpu in fact.gpus]
    levels = Counter(level for nics, level in nearest if nics)
    own = len({nics for nics, _ in nearest if len(nics) == 1}) == len(fact.gpus)
    if own and len(levels) == 1:
        parts += [f"one NIC {level} each" for level in levels]
    else:
        parts += [f"nearest NIC {level} for {count}" for level, count in levels.items()]
    return ", ".join(parts)
