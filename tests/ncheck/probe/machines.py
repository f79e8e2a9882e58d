"""Machines by hand, and what collectives on them measured: facts as the readers make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpu_health import Fabric, GpuHealth, GpuHealthFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.facts.pcie import PcieFacts, PcieLink, Processor
from ncheck.facts.topology import TopologyFacts
from ncheck.model.op import Op
from ncheck.parse.interface_names import Kind
from ncheck.parse.nvidia_smi import Gpu
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.node_result import Carried, Method, NodeResult, Row, Stage, Step, StepFailure
from ncheck.probe.results import Collective, collectives

V100, A100, H100, H200 = "Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200"
A100_PCIE, H100_NVL, B200, L40S = "NVIDIA A100 80GB PCIe", "NVIDIA H100 NVL", "NVIDIA B200", "NVIDIA L40S"
GIB = 2**30
GEN = {3: 8.0, 4: 16.0, 5: 32.0}
AMD, SAPPHIRE_RAPIDS = Processor("AuthenticAMD", 25, 1), Processor("GenuineIntel", 6, 143)

# Eight V100s in a cube: NVLinks of each pair that has any (nvidia-smi topo -m of such a machine).
CUBE = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip


def matrix(count: int, level: str, special: Mapping[tuple[int, int], str] | None = None) -> TopologyFacts:
    """Return a matrix in which all pairs have one level, but for the special ones."""
    names = tuple(f"GPU{index}" for index in range(count))
    pairs = {(one, other): "X" if one == other else level for one in names for other in names}
    for (one, other), own in (special or {}).items():
        pairs[names[one], names[other]] = pairs[names[other], names[one]] = own
    return TopologyFacts(names, (), pairs, {}, {}, {})


def lanes(generation: int = 5, width: int = 16, most: int = 16) -> tuple[PcieLink, ...]:
    """Return a device's own link."""
    return (PcieLink(width, GEN[generation], most, GEN[generation]),)


def board(
    model: str,
    count: int,
    level: str = "NV18",
    special: Mapping[tuple[int, int], str] | None = None,
    pcie: PcieFacts | None = None,
) -> NodeHardware:
    """Return a node of so many GPUs of one model."""
    gpus = tuple(Gpu(index, model, pci=f"0000:{16 + index:x}:00.0") for index in range(count))
    return NodeHardware(GpuFacts(gpus, "550.54", "12.4", "nvml"), matrix(count, level, special), pcie)


def bus(count: int, generation: int, processor: Processor | None = None, **narrow: int) -> PcieFacts:
    """Return the PCIe links of so many GPUs at x16; `narrow` maps "GPU3" to its lanes."""
    links = {f"0000:{16 + index:x}:00.0": lanes(generation, narrow.get(f"GPU{index}", 16)) for index in range(count)}
    return PcieFacts(links, {}, processor)


def rail(index: int, rate: float = 400, state: str = "Active") -> HcaPort:
    """Return the port of one HCA."""
    return HcaPort(f"mlx5_{index}", 1, state, "LinkUp", rate, "InfiniBand", pci=f"0000:{64 + index:x}:00.0")


def with_rails(hardware: NodeHardware, *ports: HcaPort) -> NodeHardware:
    """Return the same node with these HCAs."""
    return replace(hardware, infiniband=InfinibandFacts(ports, "sysfs"))


def rails(count: int, rate: float = 400) -> tuple[HcaPort, ...]:
    """Return so many rails of one rate."""
    return tuple(rail(index, rate) for index in range(count))


def in_domain(hardware: NodeHardware, number: int, clique: int = 0, links: int = 18) -> NodeHardware:
    """Return the same node in an NVLink domain of several nodes; the last of its GPUs has so many links."""
    assert hardware.gpus
    fabric = Fabric(3, cluster=f"{number + 1:032x}", clique=clique)
    *others, last = hardware.gpus.gpus
    gpus = (*((gpu, 18) for gpu in others), (last, links))
    health = tuple(GpuHealth(gpu.index, gpu.pci, links=(1,) * active, fabric=fabric) for gpu, active in gpus)
    return replace(hardware, health=GpuHealthFacts(health))


def wired(speed: int | None, kind: Kind = Kind.PHYSICAL, name: str = "eth0") -> NodeHardware:
    """Return a node with one interface."""
    return NodeHardware(nics=NicFacts((Interface(name, 2, kind, up=True, running=True, mtu=1500, speed=speed),)))


def settings(**variables: str) -> EnvironmentFacts:
    """Return an environment."""
    return EnvironmentFacts(variables, {})


def places(count: int) -> tuple[str, ...]:
    """Return the HCA ports that a plan means."""
    return tuple(f"mlx5_{index}:1" for index in range(count))


def ran(  # noqa: PLR0913  what a step and its results are made of
    stage: Stage,
    nodes: Sequence[str],
    ranks: int | Sequence[int],
    busbw: float | None = 1.0,
    *,
    planned: tuple[str, ...] = (),
    round_: int = 1,
    method: Method = Method.NCCL,
    size: int = GIB,
    net: str = "",
    expect: float | None = None,
    version: str = "2.23.4",
    used: tuple[str, ...] = (),
    carried: Mapping[str, Carried] | None = None,
    op: Op = Op.ALL_REDUCE,
) -> Collective:
    """Return a collective that reached so much bus bandwidth; None for one that failed."""
    counts = (ranks,) * len(nodes) if isinstance(ranks, int) else tuple(ranks)
    step = Step(round_, stage, method, tuple(nodes), counts, (size,), net=net, expect=expect, op=op)
    return of_step(step, busbw, planned=planned, version=version, used=used, carried=carried or {})


def of_step(  # type: ignore[no-untyped-def]
    step: Step,
    busbw: float | None,
    **result,  # noqa: ANN003  what a NodeResult has
) -> Collective:
    """Return what all nodes of a step told."""
    seconds = step.sizes[-1] * step.op.bus_factor(step.world) / ((busbw or 1.0) * 1e9)
    rows = (
        (Row(step.sizes[-1], in_place=False, seconds=seconds, fastest=seconds, slowest=seconds, wrong=0),)
        if busbw is not None
        else ()
    )
    failure = None if busbw is not None else StepFailure("init", "connection refused")
    told = NodeResult(step, rows, failure=failure, **result)
    return collectives({node: ProbeFacts((told,)) for node in step.group})[0]


def at_half(one: Collective, busbw: float) -> Collective:
    """Return the same with what it reached at half of its size."""
    (row,) = one.rows
    seconds = row.size / 2 * one.step.op.bus_factor(one.step.world) / (busbw * 1e9)
    return replace(one, rows=(replace(row, size=row.size // 2, seconds=seconds), row))
