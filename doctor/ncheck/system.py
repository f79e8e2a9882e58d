"""From facts to the values that the report has of the nodes.

Facts go by name here, so that those that were not read need not be imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.model.board import Board
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.fact import Absent, Unread, name_of
from ncheck.model.system import (
    Hardware,
    System,
    SystemDisk,
    SystemGpus,
    SystemInterface,
    SystemMachine,
    SystemPort,
)
from ncheck.parity import nodes_by_value

if TYPE_CHECKING:
    from ncheck.facts.code import CodeFacts
    from ncheck.facts.cuda import CudnnFacts
    from ncheck.facts.folders import Folder
    from ncheck.facts.gpus import GpuFacts
    from ncheck.facts.infiniband import InfinibandFacts
    from ncheck.facts.interpreter import InterpreterFacts
    from ncheck.facts.machine import MachineFacts
    from ncheck.facts.nics import Interface, NicFacts
    from ncheck.facts.topology import TopologyFacts

_MOST = 64  # interfaces and ports of a node, and addresses of one: containers can make thousands
_MEGA_PER_GIGA = 1000


def systems_of(known: Mapping[str, Facts]) -> tuple[System, ...]:
    """Return what the nodes have: one for those that are alike."""
    alike: dict[str, tuple[System, list[str]]] = {}
    cache: Cache = {}
    for node, facts in known.items():
        system = system_of(facts, cache)
        alike.setdefault(repr(system), (system, []))[1].append(node)
    return tuple(replace(system, nodes=tuple(nodes)) for system, nodes in alike.values())


Cache = dict[int, Mapping[str, Any]]  # what facts say, by their identity: nodes that are alike share them


def system_of(facts: Facts, cache: Cache) -> System:
    """Return what is known of a node, and why the rest is not. `cache` holds what the facts of earlier nodes say."""
    absent: dict[str, str] = {}
    unknown: dict[str, str] = {}
    read = {name_of(fact): value for fact, value in facts.items()}
    values = _code(read.get("CodeFacts"))
    for name, (topic, values_of) in _TOPICS.items():
        value = read.get(name)
        if isinstance(value, Absent):
            absent[topic] = value.reason
        elif isinstance(value, Unread):
            unknown[topic] = value.reason
        elif value is not None:
            if id(value) not in cache:
                cache[id(value)] = values_of(value)
            values |= cache[id(value)]
    return System(absent=absent, unknown=unknown, **values)


def hardware_of(known: Mapping[str, Facts]) -> tuple[Hardware, ...]:
    """Return what identifies each node that was reached, and its parts."""
    return tuple(
        _hardware(node, {name_of(fact): value for fact, value in facts.items()})
        for node, facts in known.items()
        if isinstance(facts.get(IdentityFacts), IdentityFacts)
    )


def _hardware(node: str, facts: Mapping[str, Any]) -> Hardware:
    identity = facts["IdentityFacts"]
    known = {name: fact for name, fact in facts.items() if not isinstance(fact, (Absent, Unread))}
    gpus = known["GpuFacts"].gpus if "GpuFacts" in known else ()
    health = known["GpuHealthFacts"].gpus if "GpuHealthFacts" in known else ()
    ports = known["InfinibandFacts"].ports if "InfinibandFacts" in known else ()
    counted = known["ErrorCountersFacts"].ports if "ErrorCountersFacts" in known else {}
    return Hardware(
        node, identity.host_name, identity.boot_id,
        serial=known["MachineFacts"].serial if "MachineFacts" in known else "",
        gpus={gpu.pci: gpu.uuid for gpu in gpus[:_MOST] if gpu.uuid},
        gpu_serials={gpu.pci: gpu.serial for gpu in health[:_MOST] if gpu.serial},
        vbios=tuple(sorted({gpu.vbios for gpu in health if gpu.vbios})),
        hcas={port.hca: port.node_guid for port in ports[:_MOST] if port.node_guid},
        counters={
            f"{port} {name}": count for port, one in list(counted.items())[:_MOST] for name, count in one.errors.items()
        },
    )  # fmt: skip


def _read(facts: Facts, name: str) -> Any:  # noqa: ANN401  the caller knows the type by the name
    """Return a node's fact by its name; None where it was not read."""
    return next((value for fact, value in facts.items() if name_of(fact) == name), None)


def addresses_of(facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return the addresses of a node's interfaces, which no other node has: 10.1.0.7/24."""
    nics: NicFacts | Unread | Absent | None = _read(facts, "NicFacts")
    if nics is None or isinstance(nics, (Unread, Absent)):
        return {}
    return {
        nic.name: tuple(f"{address.ip}/{address.prefix}" for address in nic.addresses[:_MOST])
        for nic in _listed(nics)
        if nic.addresses
    }


def interpreter_of(facts: Facts) -> tuple[str, str]:
    """Return what the report says of a node's interpreter, and the container that it runs in."""
    python: InterpreterFacts | Unread | Absent | None = _read(facts, "InterpreterFacts")
    if python is None or isinstance(python, Absent):
        return "", ""
    if isinstance(python, Unread):
        return f"unknown: {python.reason}", ""
    return f"{python.path} {python.version} ({python.how})", python.container


_MOST_BOARDS = 16  # kinds of nodes: more are no cluster that anybody looks at


def boards_of(cluster: Cluster) -> tuple[Board, ...]:
    """Return how GPUs and NICs lie, once for the nodes that are alike; one device alone is nothing to draw."""
    matrices: dict[str, TopologyFacts] = cluster.facts_called("TopologyFacts")
    if not matrices:
        return ()
    from ncheck.topology.drawing import board

    alike: dict[object, list[str]] = {}
    for nodes in nodes_by_value({node: id(matrix.pairs) for node, matrix in matrices.items()}).values():
        matrix = matrices[nodes[0]]  # equal texts are parsed once
        tables = (matrix.pairs, matrix.legend, matrix.cpu_affinity, matrix.numa_affinity)
        alike.setdefault((matrix.source, *(tuple(sorted(table.items())) for table in tables)), []).extend(nodes)
    kinds = [(matrices[nodes[0]], nodes) for nodes in sorted(alike.values(), key=len, reverse=True)[:_MOST_BOARDS]]
    return tuple(
        replace(board(matrix), nodes=tuple(nodes), source=matrix.source)
        for matrix, nodes in kinds
        if len(matrix.gpus) + len(matrix.nics) > 1
    )


def cpus_only(cluster: Cluster) -> bool:
    """Return whether every node that was reached was asked for its GPUs and has none."""
    reached = [name for name, fact in cluster.facts(LoginFacts).items() if fact.login.reached]
    return bool(reached) and all(isinstance(_read(cluster.known[name], "GpuFacts"), Absent) for name in reached)


def lacks_python(cluster: Cluster) -> bool:
    """Return whether ncheck found no Python with a framework on nodes with GPUs.

    A job that loads an NCCL of its own on each of them may need none.
    """
    pythons: dict[str, InterpreterFacts] = cluster.facts_called("InterpreterFacts")
    absent = any(isinstance(_read(cluster.known[name], "InterpreterFacts"), Absent) for name in cluster.names)
    trains = any(python.trains for python in pythons.values())
    gpus: dict[str, GpuFacts] = cluster.facts_called("GpuFacts")
    without_nccl = {node for node, held in gpus.items() if held.gpus} - cluster.facts_called("LoadedNcclFacts").keys()
    return not trains and bool(pythons or absent) and bool(without_nccl)


def _listed(fact: NicFacts) -> list[Interface]:
    from ncheck.facts.nics import CARRIES_DATA

    return [nic for nic in fact.interfaces if nic.kind in CARRIES_DATA or nic.uplink][:_MOST]


def _gpus(fact: GpuFacts) -> SystemGpus:
    memory = [gpu.memory_total for gpu in fact.gpus if gpu.memory_total is not None]
    total = sum(memory) if fact.gpus and len(memory) == len(fact.gpus) else None
    models = dict(Counter(gpu.name for gpu in fact.gpus))
    return SystemGpus(len(fact.gpus), models, fact.driver, fact.cuda, total, fact.rocm)


def _interface(nic: Interface) -> SystemInterface:
    speed = nic.speed / _MEGA_PER_GIGA if nic.speed is not None else None
    network = str(nic.addresses[0].network) if nic.addresses and (nic.usable or nic.uplink) else ""
    return SystemInterface(
        nic.name, nic.kind.value, nic.running, nic.mtu, speed, network, nic.driver, nic.firmware
    )  # fmt: skip


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
    from ncheck.parse.topology_matrix import closest_nics

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


def _code(fact: object) -> dict[str, Any]:
    if fact is None or isinstance(fact, (Unread, Absent)):
        return {}
    code = cast("CodeFacts", fact)
    return {"commit": code.commit if code.clean else None}


def _ports(fact: InfinibandFacts) -> dict[str, Any]:
    from ncheck.parse.infiniband import model_of

    ports = (
        SystemPort(p.name, p.state, p.physical, p.rate, p.link_layer, model_of(p.hca_type), p.firmware)
        for p in fact.ports[:_MOST]
    )
    return {"ports": tuple(ports)}


def _cudnn(fact: CudnnFacts) -> dict[str, Any]:
    return {"cudnn": fact.version, "cudnn_path": fact.path, "system_cudnn": fact.system}


def _machine_and_container(fact: MachineFacts) -> dict[str, Any]:
    return {"machine": _machine(fact), "image": fact.image, "container_toolkit": fact.container_toolkit}


def _python(fact: InterpreterFacts) -> dict[str, Any]:
    named = {"python": fact.path, "python_version": fact.version}
    return {**named, "frameworks": dict(fact.frameworks), "container": fact.container}


# Of each fact, by its name: the first field of its topic, under which `absent` and `unknown` name it, and its values.
_TOPICS: Mapping[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "GpuFacts": ("gpus", lambda fact: {"gpus": _gpus(fact)}),
    "CudaToolkitFacts": (
        "cuda_toolkit",
        lambda fact: {"cuda_toolkit": fact.version, "cuda_toolkit_path": fact.path},
    ),
    "CudnnFacts": ("cudnn", _cudnn),
    "LoadedNcclFacts": ("nccl", lambda fact: {"nccl": fact.version, "nccl_path": fact.path}),
    "NetPluginFacts": (
        "net_plugin",
        lambda fact: {"net_plugin": fact.plugin.described if fact.plugin else ""},
    ),
    "MpiFacts": ("mpi", lambda fact: {"mpi": fact.implementation, "mpi_version": fact.version}),
    "HorovodFacts": ("horovod", lambda fact: {"horovod": fact.version}),
    "InterpreterFacts": ("python", _python),
    "InfinibandFacts": ("ports", _ports),
    "NicFacts": ("interfaces", lambda fact: {"interfaces": tuple(map(_interface, _listed(fact)))}),
    "MachineFacts": ("machine", _machine_and_container),
    "OsFacts": ("os", lambda fact: {"os": fact.name}),
    "FolderFacts": ("disks", lambda fact: {"disks": (_disk("home", fact.home), _disk("root", fact.root))}),
    "TopologyFacts": ("topology", lambda fact: {"topology": _topology(fact)}),
}
