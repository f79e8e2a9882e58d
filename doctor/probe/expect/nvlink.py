"""NVLinks: how fast one is, how many of them a ring has, and what NVLS makes of them.

Sources: NCCL source, graph/topo.h and graph/tuning.cc (bandwidth of a link by generation, efficiency of NVLS). With
NVLS each GPU of n sends and receives S(1 + 1/n) of S bytes, which makes a bus bandwidth of 2(n-1)/(n+1) of what the
links carry; published measurements of H100, H200 and B200 bear it out within 7 %.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from doctor.model.facts import TopologyFacts

NVLS_SINCE = (2, 17)
_MOST_WITHOUT_SWITCH = 8  # GPUs


@dataclass(frozen=True)
class Generation:
    """The NVLinks of a GPU model: GB/s each as NCCL counts them, how many there are at most, the share NVLS gets."""

    each: float
    most: int
    nvls: float | None = None


@dataclass(frozen=True)
class Wiring:
    """The NVLinks of the GPU that has fewest of them; `switched`: all of them lead to NVSwitches."""

    links: int
    switched: bool
    fewer: tuple[str, ...] = ()  # GPUs with fewer links than the others


# NVIDIA H100 80GB HBM3, NVIDIA A100-SXM4-80GB, Tesla V100-SXM2-16GB, NVIDIA GeForce RTX 3090, NVIDIA RTX A6000
_GENERATIONS = (
    (re.compile(r"\bG?B[123]00\b"), Generation(40.1, 18, 0.74)),
    (re.compile(r"\bG?H(?:100|200|800|20)\b"), Generation(20.6, 18, 0.85)),
    (re.compile(r"\bA(?:100|800|30)\b"), Generation(20.0, 12)),
    (re.compile(r"\bA(?:40|4500|5000|5500|6000)\b|\bRTX 3090"), Generation(12.0, 4)),
    (re.compile(r"\bV100S?\b"), Generation(20.0, 6)),
    (re.compile(r"\bRTX (?:[568]000)\b(?! Ada)|\bTITAN RTX\b"), Generation(20.0, 2)),
    (re.compile(r"\bP100\b"), Generation(18.0, 4)),
)

# NV18
_BONDED = re.compile(r"NV(?P<links>\d{1,2})")


def generation_of(model: str) -> Generation | None:
    """Return what the NVLinks of this model are; None for one that has none, or is not known here."""
    return next((generation for pattern, generation in _GENERATIONS if pattern.search(model)), None)


def bonded(topology: TopologyFacts, one: str, other: str) -> int:
    """Return how many NVLinks the matrix shows between two GPUs: those of the pair, or of each to the switch."""
    found = _BONDED.fullmatch(topology.pairs.get((one, other), ""))
    return int(found["links"]) if found else 0


def wiring_of(topology: TopologyFacts, used: Sequence[str], most: int) -> Wiring | None:
    """Return the NVLinks that a ring over these GPUs has; None where they make none.

    A matrix that shows more links to all others than a GPU has is one of a switch: there each number stands for all.
    """
    totals = {gpu: sum(bonded(topology, gpu, one) for one in topology.gpus if one != gpu) for gpu in topology.gpus}
    switched = any(total > most for total in totals.values())
    if not _closed(topology, used):
        return None
    own = {gpu: _own(topology, gpu, used, switched=switched) for gpu in used}
    links = min(own.values())
    even = switched or len(used) == len(topology.gpus)  # some of a cube have fewer links among themselves by nature
    return Wiring(links, switched, tuple(gpu for gpu in used if even and own[gpu] == links < max(own.values())))


def _own(topology: TopologyFacts, gpu: str, used: Sequence[str], *, switched: bool) -> int:
    counts = [bonded(topology, gpu, one) for one in used if one != gpu]
    return max(counts) if switched else sum(counts)


def _closed(topology: TopologyFacts, used: Sequence[str]) -> bool:
    """Tell whether a ring of NVLinks leads over all of these GPUs: there and back for two."""
    if all(bonded(topology, one, other) for one, other in pairwise((*used, used[0]))):
        return True
    # Without a switch in the order of their numbers, or, as with eight V100s in a cube, in another order.
    orders = permutations(used[1:]) if len(used) <= _MOST_WITHOUT_SWITCH else iter(())
    return any(all(bonded(topology, *step) for step in pairwise((used[0], *order, used[0]))) for order in orders)
