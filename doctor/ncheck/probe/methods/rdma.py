"""RDMA between HCA ports of the same index, without NCCL: perftest's ib_write_bw or ibverbs-utils' ibv_rc_pingpong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.tools import tools_of
from ncheck.facts.topology import TopologyFacts
from ncheck.hostlist import fold
from ncheck.nccl.hca import ipv4_index
from ncheck.parse.topology_matrix import closest_nics
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.methods.driver import MIB, CannotTakePartError, Driver, NodeTask
from ncheck.probe.node_result import Method, Stage
from ncheck.probe.rails import Rail, rails, second_partners

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue
    from ncheck.parse.nvidia_smi import Gpu
    from ncheck.probe.methods.context import ProbeContext


BANDWIDTH, REACH = "ib_write_bw", "ibv_rc_pingpong"
_PINGPONGS = 1000
_LEAST_WRITES = 1000
_FOR = 0.5  # seconds that the writes take at the port's rate
_FIRST_PORT, _PORTS, _TRIED = 20000, 10000, 4  # TCP ports, below the kernel's ephemeral range


class Rdma(Driver):
    """One pair of ports at a time, which shows which cable, port or switch is slow."""

    method = Method.RDMA
    stages: ClassVar = frozenset({Stage.RAIL})
    sizes: ClassVar = {Stage.RAIL: (MIB,)}
    least, most = 3.0, 12.0
    ops: ClassVar = frozenset()

    def unfit(self, context: ProbeContext) -> str:
        """Return why no rail is tested."""
        if not context.rdma:
            return "no HCA port carries the job's data"
        with_tools = [node for node in context.nodes if tools_of(context.cluster, node).keys() & {BANDWIDTH, REACH}]
        if len(with_tools) < 2:  # noqa: PLR2004  a pair
            without = [node for node in context.nodes if node not in with_tools]
            return f"neither {BANDWIDTH} (perftest) nor {REACH} (ibverbs-utils) is on the PATH of {fold(without)}"
        return ""

    def fitting(self, context: ProbeContext, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the one size: --sizes is for all-reduces."""
        return self.sizes[stage]

    def lanes(self, context: ProbeContext, stage: Stage, group: tuple[str, ...]) -> int:  # noqa: ARG002
        """Return how many rails both nodes have; 0 if they have no tool in common."""
        return min(len(_ports(context, node)) for node in group) if _tool(context, group) else 0

    def again(self, context: ProbeContext, probed: Mapping[str, ProbeFacts]) -> Mapping[int, Sequence[tuple[str, ...]]]:
        """Return pairs that show which end of a bad rail is at fault: each end with a node whose rail is good."""
        tried = rails(probed, context.cluster.connected_facts(InfinibandFacts))
        found: dict[int, Sequence[tuple[str, ...]]] = {}
        for lane in range(max((len(_ports(context, node)) for node in context.nodes), default=0)):
            same = [rail for rail in tried if _on(context, rail, lane)]
            bad, good = ([rail.nodes for rail in same if rail.bad is is_bad] for is_bad in (True, False))
            if pairs := second_partners(bad, good):
                found[lane] = pairs
        return found

    def planned(self, context: ProbeContext, task: NodeTask) -> tuple[str, ...]:
        """Return this node's port of the rail."""
        return _ports(context, task.node)[task.lane : task.lane + 1]

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:
        """Return the node's port, which node is the server, and the server's address. Raises CannotTakePartError."""
        tool = _tool(context, task.step.group)
        address = context.address(task.leader)
        if not tool or not address or ":" in address:
            raise CannotTakePartError(
                "it has no RDMA test program in common with its partner"
                if not tool
                else "the server has no IPv4 address"
            )
        own = [_port(context, node, task.lane) for node in task.step.group]
        device = own[task.index]
        rates = [port.rate for port in own if port.rate]
        first = _FIRST_PORT + (int(context.cluster.token[:8], 16) + task.step.round * _TRIED) % _PORTS
        return {
            "tool": tool, "serves": task.index == 0, "device": device.hca, "hca_port": device.port,
            "gid": ipv4_index(device) if device.link_layer == "Ethernet" else None, "address": address,
            "ports": [first + number for number in range(_TRIED)], "bytes": task.step.sizes[-1],
            "iterations": _writes(min(rates, default=0.0), task.step.sizes[-1]) if tool == BANDWIDTH else _PINGPONGS,
        }  # fmt: skip


def _writes(rate: float, size: int) -> int:
    """Return how many messages take about _FOR seconds at this rate (Gb/s)."""
    return max(_LEAST_WRITES, round(rate * 1e9 / 8 * _FOR / size))


def _tool(context: ProbeContext, group: tuple[str, ...]) -> str:
    installed = [tools_of(context.cluster, node) for node in group]
    return next((name for name in (BANDWIDTH, REACH) if all(name in tools for tools in installed)), "")


def _ports(context: ProbeContext, node: str) -> tuple[str, ...]:
    """Return the HCA ports among the node's planned devices, such as "mlx5_0:1"."""
    facts = context.cluster.connected_facts(InfinibandFacts).get(node)
    names = {port.name for port in facts.ports} if facts else set()
    return tuple(device for device in context.planned.get(node, ()) if device in names)


def _on(context: ProbeContext, rail: Rail, lane: int) -> bool:
    return all(_ports(context, node)[lane : lane + 1] == (port,) for node, port in rail.ports)


def _port(context: ProbeContext, node: str, lane: int) -> HcaPort:
    facts = context.cluster.connected_facts(InfinibandFacts).get(node)
    ports = _ports(context, node)
    if facts is None or lane >= len(ports):
        raise CannotTakePartError(f"{node} has no rail {lane + 1}")
    return next(port for port in facts.ports if port.name == ports[lane])


RDMA = Rdma()

_SMALL = 2  # bytes, of which the latency is measured


class Loopback(Rdma):
    """One port of each node at a time, to itself: the path between GPU and NIC, without another node."""

    method = Method.LOOPBACK
    stages: ClassVar = frozenset({Stage.NICS})
    sizes: ClassVar = {Stage.NICS: (_SMALL, 8 * MIB)}
    most = 15.0

    def unfit(self, context: ProbeContext) -> str:
        """Return why no port is tested."""
        if not context.settings.nic_test:
            return "--nic-test was not given"
        able = any(BANDWIDTH in tools_of(context.cluster, node) for node in context.nodes)
        return "" if able and context.rdma else f"no HCA port carries the job's data, or no node has {BANDWIDTH}"

    def lanes(self, context: ProbeContext, stage: Stage, group: tuple[str, ...]) -> int:  # noqa: ARG002
        """Return how many ports the node has; 0 without the program."""
        (node,) = group
        return len(_ports(context, node)) if BANDWIDTH in tools_of(context.cluster, node) else 0

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:
        """Return the arguments of a pair, for a node that is both of its ends."""
        port = _port(context, task.node, task.lane)
        gpu = _nearest_gpu(context, task.node, port.hca)
        size, first = task.step.sizes[-1], _FIRST_PORT + (task.step.round * _TRIED) % _PORTS
        return {
            "tool": BANDWIDTH, "serves": None, "device": port.hca, "hca_port": port.port,
            "gid": ipv4_index(port) if port.link_layer == "Ethernet" else None,
            "ports": [first + number for number in range(_TRIED)], "bytes": size,
            "iterations": _writes(port.rate or 0.0, size),
            "gpu": {"index": gpu.index, "pci": gpu.pci} if gpu else None,
        }  # fmt: skip


def _nearest_gpu(context: ProbeContext, node: str, hca: str) -> Gpu | None:
    """Return a GPU of NVIDIA that has this HCA nearest; None if that is not known."""
    cluster = context.cluster
    gpus, matrix = cluster.connected_facts(GpuFacts).get(node), cluster.connected_facts(TopologyFacts).get(node)
    if not gpus or not matrix or gpus.vendor != "NVIDIA":
        return None
    for gpu, name in zip(gpus.gpus, matrix.gpus, strict=False):
        near, _ = closest_nics(matrix, name)
        if hca in {matrix.legend.get(nic, nic) for nic in near}:
            return gpu
    return None


LOOPBACK = Loopback()
