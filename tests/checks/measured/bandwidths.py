"""Nodes of one board whose collectives reached so much, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpu_health import Fabric, GpuHealth, GpuHealthFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Facts
from ncheck.model.op import Op
from ncheck.parse.nvidia_smi import Gpu
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step

GIB = 2**30
H100 = "NVIDIA H100 80GB HBM3"


def board(model: str = H100, rails: int = 8, down: int = 0, **settings: str) -> Facts:
    """Return 8 GPUs on NVSwitches and so many rails of 400 Gb/s, the last of them Down."""
    names = tuple(f"GPU{index}" for index in range(8))
    ports = tuple(
        HcaPort(f"mlx5_{index}", 1, "Down" if index >= rails - down else "Active", "LinkUp", 400, "InfiniBand")
        for index in range(rails)
    )
    pairs = {(one, other): "X" if one == other else "NV18" for one in names for other in names}
    return {
        **dict.fromkeys(HARDWARE_FACTS),
        GpuFacts: GpuFacts(tuple(Gpu(index, model) for index in range(8)), "550.54", "12.4", "nvml"),
        TopologyFacts: TopologyFacts(names, (), pairs, {}, {}, {}),
        InfinibandFacts: InfinibandFacts(ports, "sysfs"),
        EnvironmentFacts: EnvironmentFacts(settings, {}),
    }


def part(  # noqa: PLR0913
    stage: Stage, group: Sequence[str], ranks: int, busbw: float, expect: float | None = None, *,
    op: Op = Op.ALL_REDUCE,
) -> NodeResult:  # fmt: skip
    """Return a part in an operation on 1 GiB that reached so much, over eight rails."""
    step = Step(1, stage, Method.NCCL, tuple(group), (ranks,) * len(group), (GIB,), expect=expect, op=op)
    step = replace(step, round=1 + list(Stage).index(stage) + len(group))
    seconds = GIB * op.bus_factor(step.world) / (busbw * 1e9)
    row = Row(GIB, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds)
    places = tuple(f"mlx5_{index}:1" for index in range(8))
    return NodeResult(step, (row,), planned=places, version="2.23.4", seconds=20.0)


def inside(op: Op = Op.ALL_REDUCE, **reached: float) -> dict[str, Facts]:
    """Return nodes whose eight GPUs reached so much by themselves."""
    return {node: probed(part(Stage.INSIDE, (node,), 8, busbw, op=op)) for node, busbw in reached.items()}


def probed(*results: NodeResult, **hardware: object) -> Facts:
    """Return a node with these parts."""
    return {**board(**hardware), ProbeFacts: ProbeFacts(results)}  # type: ignore[arg-type]


def together(count: int, busbw: float, expect: float | None = None, *, op: Op = Op.ALL_REDUCE) -> dict[str, Facts]:
    """Return so many nodes, all of whose GPUs reached so much together."""
    names = [f"n{number + 1}" for number in range(count)]
    return {node: probed(part(Stage.ALL, names, 8, busbw, expect, op=op)) for node in names}


def in_one_domain() -> Facts:
    """Return the GPUs of a node that shares an NVLink domain with others."""
    health = tuple(GpuHealth(index, links=(1,) * 18, fabric=Fabric(3, cluster=f"{7:032x}")) for index in range(8))
    gpus = tuple(Gpu(index, "NVIDIA GB200") for index in range(8))
    return {GpuHealthFacts: GpuHealthFacts(health), GpuFacts: GpuFacts(gpus, "570.133", "12.8", "nvml")}
