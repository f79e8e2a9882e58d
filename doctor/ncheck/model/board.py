"""How the GPUs and NICs of a node lie: what is drawn of a node, in text and on the page."""

from __future__ import annotations

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Domain:
    """One NUMA node.

    title: The NUMA node and its CPUs.
    bridges: Each host bridge as a list of PCIe switches, each switch as a list of devices.
    alone: Devices near no other one.
    """

    title: str
    bridges: tuple[tuple[tuple[str, ...], ...], ...]
    alone: tuple[str, ...] = ()


@dataclass(frozen=True)
class Board:
    """One kind of node.

    domains: The NUMA nodes, as far as the matrix shows them.
    unplaced: Devices whose place the matrix does not show.
    nvlinks: Which GPUs NVLinks join, one line per kind of path.
    rails: The nearest NICs of each GPU, one line per GPU.
    worst_hop: The path that a ring over all GPUs must take at worst, such as SYS, in words; empty if unknown.
    nodes: The nodes of this kind.
    source: What showed the matrix: nvidia-smi, or the PCI bus and NVML.
    matrix: The matrix: a heading and a row per device, as nvidia-smi topo -m prints it, NICs by name.
    """

    domains: tuple[Domain, ...]
    unplaced: tuple[str, ...]
    nvlinks: tuple[str, ...]
    rails: tuple[str, ...]
    worst_hop: str
    nodes: tuple[str, ...] = ()
    source: str = ""
    matrix: tuple[tuple[str, ...], ...] = ()
