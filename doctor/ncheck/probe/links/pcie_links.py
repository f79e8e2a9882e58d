"""What PCIe lets through: between the GPUs of a node without NVLink, and to an HCA.

Source: NCCL source, graph/topo.cc (the bandwidths of links, of Intel host bridges and between processors).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ncheck.facts.pcie import PcieLink, Processor
from ncheck.facts.topology import TopologyFacts
from ncheck.parse.topology_matrix import RANK
from ncheck.probe.links.ceiling import Ceiling, Component, lowest, unknown
from ncheck.probe.links.hardware import NodeHardware

# GT/s per lane: the number of the generation, and the GB/s per lane that NCCL assumes between GPUs.
_GENERATIONS = {2.5: (1, 0.1875), 5.0: (2, 0.375), 8.0: (3, 0.75), 16.0: (4, 1.5), 32.0: (5, 3.0), 64.0: (6, 6.0)}

# The share of a link's raw bits that is data of one streaming device: a 400 Gb/s HCA fills its PCIe 5.0 x16.
_DATA = 0.85
INTEL, _AMD = "GenuineIntel", "AuthenticAMD"
_HOST_BRIDGE = 5 / 6  # of the PCIe bandwidth, between GPUs of one Intel processor

# What NCCL assumes between two processors; measured was up to 1.3 times as much (tests/ncheck/probe/published.toml).
# GB/s between Intel processors, from this model number on, newest first; the last is for models before Skylake.
_BETWEEN_INTELS = ((0xCF, 40.0), (0x8F, 22.0), (0x55, 10.0), (0, 6.0))
_BETWEEN_AMDS = 16.0


def between_gpus(node: str, hardware: NodeHardware, used: Sequence[str]) -> Ceiling:
    """Return what the slowest hop of a ring over these GPUs carries; they are named as in the matrix (GPU0)."""
    topology, pcie, gpus = hardware.topology, hardware.pcie, hardware.gpus
    if topology is None or pcie is None or gpus is None:
        return unknown(f"the PCIe links of the GPUs of {node}")
    addresses = {f"GPU{gpu.index}": gpu.pci for gpu in gpus.gpus}
    links = lowest(_of_gpu(node, gpu, pcie.gpus.get(addresses.get(gpu, ""), ())) for gpu in used)
    far = _farthest(topology, used)
    if far >= RANK["SYS"]:
        return lowest((links, between_processors(node, pcie.processor)))
    if far >= RANK["PHB"] and pcie.processor and pcie.processor.vendor == INTEL and links.busbw is not None:
        term = f"{links.term}, through the host bridge of an Intel processor"
        return replace(links, busbw=links.busbw * _HOST_BRIDGE, term=term)
    return links


def assumed(links: Iterable[PcieLink]) -> float | None:
    """Return the GB/s that NCCL assumes of a device: it reads what the links can do at most, not what they do now."""
    known = [
        one.most_width * _GENERATIONS[one.most_speed][1]
        for one in links
        if one.most_width is not None and one.most_speed in _GENERATIONS
    ]
    return min(known, default=None)


def to_device(name: str, node: str, links: Iterable[PcieLink], *, idle: bool = False) -> Ceiling | None:
    """Return what the links to a device carry, None if unknown; `idle`: power saving may have lowered their speed."""
    ceilings = [ceiling for link in links if (ceiling := _streamed(name, node, link, idle=idle))]
    return lowest(ceilings) if ceilings else None


def _streamed(name: str, node: str, link: PcieLink, *, idle: bool) -> Ceiling | None:
    speed = link.most_speed if idle else link.speed
    if link.width is None or speed not in _GENERATIONS:
        return None
    carried = link.width * speed / 8 * _DATA * (128 / 130 if speed >= 8.0 else 0.8)  # noqa: PLR2004  8b/10b before
    return _ceiling(carried, f"PCIe {_GENERATIONS[speed][0]}.0 x{link.width} of {name}", _narrowed(name, node, link))


def _ceiling(busbw: float, term: str, narrowed: tuple[str, ...]) -> Ceiling:
    return Ceiling(busbw, term, narrowed, component=Component.PCIE, narrow=bool(narrowed))


def _of_gpu(node: str, gpu: str, links: Sequence[PcieLink]) -> Ceiling:
    """Return what NCCL assumes. Idle GPUs lower their link speed, so the highest speed of the link counts."""
    known = [link for link in links if link.width is not None and link.most_speed in _GENERATIONS]
    if not known:
        return unknown(f"the PCIe link of {gpu} of {node}")
    return lowest(_counted(node, gpu, link) for link in known)


def _counted(node: str, gpu: str, link: PcieLink) -> Ceiling:
    number, lane = _GENERATIONS[link.most_speed or 0.0]
    width = link.width or 0
    return _ceiling(width * lane, f"PCIe {number}.0 x{width} between GPUs", _narrowed(gpu, node, link))


def _narrowed(name: str, node: str, link: PcieLink) -> tuple[str, ...]:
    if link.width is None or link.most_width is None or link.width >= link.most_width:
        return ()
    return (f"PCIe x{link.width} of x{link.most_width} at {name} of {node}",)


def _farthest(topology: TopologyFacts, used: Sequence[str]) -> int:
    """Return the level that a ring must cross: the lowest that connects all of these GPUs."""
    for level in sorted(set(RANK.values())):
        if _together(topology, used, level):
            return level
    return RANK["SYS"]


def _together(topology: TopologyFacts, used: Sequence[str], level: int) -> bool:
    """Return whether hops of at most this level lead from the first GPU to all others; NVLink counts as nearest."""
    reached, fresh = {used[0]}, [used[0]]
    while fresh:
        last = fresh.pop()
        near = [
            gpu for gpu in used if gpu not in reached and RANK.get(topology.pairs.get((last, gpu), ""), -1) <= level
        ]
        reached.update(near)
        fresh += near
    return reached.issuperset(used)


def between_processors(node: str, processor: Processor | None) -> Ceiling:
    """Return what NCCL assumes between the processors of a node."""
    if processor and processor.vendor == _AMD:
        return Ceiling(_BETWEEN_AMDS, "the link between the processors (AMD), at least")
    if processor and processor.vendor == INTEL:
        speed = next(speed for model, speed in _BETWEEN_INTELS if processor.model >= model)
        return Ceiling(speed, "the link between the processors (Intel), at least")
    return unknown(f"the link between the processors of {node}")
