"""How many neighbours of its own each node has to know in a cluster, and how many its kernel's tables hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from doctor.model.facts import NetSettingsFacts
from doctor.reasoning.parity import gathered
from doctor.reasoning.subnets import Nodes, networks

KEPT_FREE = 0.25  # of a table, for routers, storage, and whoever else is in these subnets


@dataclass(frozen=True)
class Tight:
    """Tables of one family (4 or 6) that hold too few entries, by the same numbers on these nodes."""

    family: int
    holds: int
    needed: int
    nodes: tuple[str, ...]

    @property
    def fix(self) -> str:
        """A line that makes room for twice as many and more, to be typed on the node."""
        most, where = 1 << (4 * self.needed - 1).bit_length(), f"net.ipv{self.family}.neigh.default.gc_thresh"
        return f"sudo sysctl -w {where}3={most} {where}2={most // 2} {where}1={most // 4}"


def tight_tables(nodes: Nodes, settings: Mapping[str, NetSettingsFacts]) -> Iterator[Tight]:
    """Yield the tables that are too small; of one that a node is not shown nothing is said."""
    for family in (4, 6):
        needs = _needed(nodes, family)
        held = {node: (settings[node].neighbours.get(family), needed) for node, needed in needs.items()}
        for (holds, needed), names in gathered(held).items():
            if holds is not None and needed > (1 - KEPT_FREE) * holds:
                yield Tight(family, holds, needed, names)


def _needed(nodes: Nodes, family: int) -> Mapping[str, int]:
    """Map each node to the entries that its neighbour table of a family needs for the addresses of all other nodes."""
    needed: Counter[str] = Counter()
    for subnet, members in networks(nodes).items():
        seated = sum(len(held) for held in members.values())
        for node, held in members.items() if family == (6 if ":" in subnet else 4) else ():
            own = len({seat.interface.name for seat in held})
            needed[node] += own * (seated - len(held))
    return needed
