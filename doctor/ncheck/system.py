"""From facts to the values that the report has of a node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ncheck.facts.code import CodeFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import CARRIES_DATA, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.system import System, SystemGpus, SystemInterface, SystemPort

_MOST = 64  # interfaces and ports of a node, and addresses of one: containers can make thousands
_MEGA_PER_GIGA = 1000

# The first field of the topic, under which `absent` and `unknown` name it.
_TOPICS = {
    GpuFacts: "gpus", LoadedNcclFacts: "nccl", MpiFacts: "mpi", HorovodFacts: "horovod", InterpreterFacts: "python",
    InfinibandFacts: "ports", NicFacts: "interfaces",
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


def _with(system: System, fact: object) -> System:  # noqa: PLR0911  one line a kind of fact
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
            return replace(named, frameworks=dict(fact.frameworks))
        case CodeFacts():
            return replace(system, commit=fact.commit if fact.clean else None)
        case InfinibandFacts():
            ports = (SystemPort(p.name, p.state, p.physical, p.rate, p.link_layer) for p in fact.ports[:_MOST])
            return replace(system, ports=tuple(ports))
        case NicFacts():
            nics = [nic for nic in fact.interfaces if nic.kind in CARRIES_DATA or nic.uplink]
            return replace(system, interfaces=tuple(map(_interface, nics[:_MOST])))
    return system


def _gpus(fact: GpuFacts) -> SystemGpus:
    memory = [gpu.memory_total for gpu in fact.gpus if gpu.memory_total is not None]
    total = sum(memory) if fact.gpus and len(memory) == len(fact.gpus) else None
    return SystemGpus(len(fact.gpus), Counter(gpu.name for gpu in fact.gpus), fact.driver, fact.cuda, total)


def _interface(nic: Interface) -> SystemInterface:
    speed = nic.speed / _MEGA_PER_GIGA if nic.speed is not None else None
    addresses = tuple(f"{address.ip}/{address.prefix}" for address in nic.addresses[:_MOST])
    return SystemInterface(nic.name, nic.kind.value, nic.running, nic.mtu, speed, addresses)
