"""RDMA between HCA ports of the same index, without NCCL: perftest's ib_write_bw or ibverbs-utils' ibv_rc_pingpong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.probe import Means, ProbeFacts, Stage
from ncheck.hostlist import fold
from ncheck.nccl.hca import ipv4_index
from ncheck.probe.methods.method import MIB, Ground, NoPartError, Part, Way
from ncheck.probe.methods.tools import tools_of
from ncheck.probe.rails import Rail, rails, second_partners

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


BANDWIDTH, REACH = "ib_write_bw", "ibv_rc_pingpong"


_PINGPONGS = 1000


_LEAST_WRITES = 1000


_FOR = 0.5  # seconds that the writes take at the port's own rate


_FIRST_PORT, _PORTS, _TRIED = 20000, 10000, 4  # TCP ports, below those that kernels hand out by themselves


class Rdma(Way):
    """One pair of ports at a time: each by itself shows which cable, port or switch is slow."""

    means = Means.RDMA
    stages: ClassVar = frozenset({Stage.RAIL})
    sizes: ClassVar = {Stage.RAIL: (MIB,)}
    least, most = 3.0, 12.0

    def unfit(self, ground: Ground) -> str:
        """Say why no rail is tried."""
        if not ground.rdma:
            return "no HCA port carries the job's data"
        with_tools = [node for node in ground.nodes if tools_of(ground.cluster, node).keys() & {BANDWIDTH, REACH}]
        if len(with_tools) < 2:  # noqa: PLR2004  a pair
            without = [node for node in ground.nodes if node not in with_tools]
            return f"neither {BANDWIDTH} (perftest) nor {REACH} (ibverbs-utils) is on the PATH of {fold(without)}"
        return ""

    def fitting(self, ground: Ground, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the one size: what --sizes names is an all-reduce's."""
        return self.sizes[stage]

    def lanes(self, ground: Ground, stage: Stage, group: tuple[str, ...]) -> int:  # noqa: ARG002  one stage has them
        """Return how many rails both nodes have; none where they have no tool in common."""
        return min(len(_ports(ground, node)) for node in group) if _tool(ground, group) else 0

    def again(self, ground: Ground, probed: Mapping[str, ProbeFacts]) -> Mapping[int, Sequence[tuple[str, ...]]]:
        """Return the pairs that tell which end of a bad rail it is: each end with a node whose rail did well."""
        tried = rails(probed, ground.cluster.connected_facts(InfinibandFacts))
        found: dict[int, Sequence[tuple[str, ...]]] = {}
        for lane in range(max((len(_ports(ground, node)) for node in ground.nodes), default=0)):
            held = [rail for rail in tried if _on(ground, rail, lane)]
            if pairs := second_partners(
                [rail.nodes for rail in held if rail.bad], [r.nodes for r in held if not r.bad]
            ):
                found[lane] = pairs
        return found

    def planned(self, ground: Ground, part: Part) -> tuple[str, ...]:
        """Return this node's port of the rail."""
        return _ports(ground, part.node)[part.lane : part.lane + 1]

    def part(self, ground: Ground, part: Part) -> Mapping[str, JsonValue]:
        """Return which port it is, who serves, and where the two meet. Raises NoPartError."""
        tool = _tool(ground, part.step.group)
        address = ground.address(part.leader)
        if not tool or not address or ":" in address:
            raise NoPartError(
                "it shares no tool with its partner" if not tool else "they have no IPv4 address to meet at"
            )
        own = [_port(ground, node, part.lane) for node in part.step.group]
        device = own[part.index]
        rates = [port.rate for port in own if port.rate]
        first = _FIRST_PORT + (int(ground.cluster.token[:8], 16) + part.step.round * _TRIED) % _PORTS
        return {
            "tool": tool, "serves": part.index == 0, "device": device.hca, "hca_port": device.port,
            "gid": ipv4_index(device) if device.link_layer == "Ethernet" else None, "address": address,
            "ports": [first + number for number in range(_TRIED)], "bytes": part.step.sizes[-1],
            "iterations": _writes(min(rates, default=0.0), part.step.sizes[-1]) if tool == BANDWIDTH else _PINGPONGS,
        }  # fmt: skip


def _writes(rate: float, size: int) -> int:
    """Return how many messages take about the wanted time at this rate, in Gb/s."""
    return max(_LEAST_WRITES, round(rate * 1e9 / 8 * _FOR / size))


def _tool(ground: Ground, group: tuple[str, ...]) -> str:
    held = [tools_of(ground.cluster, node) for node in group]
    return next((name for name in (BANDWIDTH, REACH) if all(name in tools for tools in held)), "")


def _ports(ground: Ground, node: str) -> tuple[str, ...]:
    """Return the HCA ports that the plan means for a node: "mlx5_0:1" where an interface is "eth0"."""
    held = ground.cluster.connected_facts(InfinibandFacts).get(node)
    names = {port.name for port in held.ports} if held else set()
    return tuple(device for device in ground.planned.get(node, ()) if device in names)


def _on(ground: Ground, rail: Rail, lane: int) -> bool:
    return all(_ports(ground, node)[lane : lane + 1] == (port,) for node, port in rail.ports)


def _port(ground: Ground, node: str, lane: int) -> HcaPort:
    held = ground.cluster.connected_facts(InfinibandFacts).get(node)
    ports = _ports(ground, node)
    if held is None or lane >= len(ports):
        raise NoPartError(f"{node} has no rail {lane + 1}")
    return next(port for port in held.ports if port.name == ports[lane])


WAY = Rdma()
