"""How the GPUs and NICs of a node lie: what is drawn of a node, in text and on the page."""

from __future__ import annotations

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Domain:
    """One NUMA node. `bridges`: each host bridge with its PCIe switches, each switch with its devices."""

    title: str
    bridges: tuple[tuple[tuple[str, ...], ...], ...]
    alone: tuple[str, ...] = ()


@dataclass(frozen=True)
class Board:
    """One kind of node. `nodes` are all of this kind; `source` is what showed the matrix.

    `matrix` is a heading and a row per device, as `nvidia-smi topo -m` prints them.
    """

    domains: tuple[Domain, ...]
    unplaced: tuple[str, ...]
    nvlinks: tuple[str, ...]
    rails: tuple[str, ...]
    worst_hop: str
    nodes: tuple[str, ...] = ()
    source: str = ""
    matrix: tuple[tuple[str, ...], ...] = ()
