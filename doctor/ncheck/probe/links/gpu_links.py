"""What the GPUs of one node let through between them: NVLS, a ring over NVLink, or PCIe.

Only an all-reduce gains by NVLS: of the other operations a GPU sends or receives as much through the switch as in a
ring (NCCL issue 1083). Sends and receives copy from GPU to GPU, with less than a ring's bandwidth (published.toml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, permutations

from ncheck.expression import expression
from ncheck.facts.topology import TopologyFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.nccl.settings import PlacedSetting, is_on, release_of
from ncheck.parse.nvidia_smi import Gpu
from ncheck.probe.links.algorithms import NVLS, NVLS_TREE, RING, TREE, allows, settings_on
from ncheck.probe.links.ceiling import Ceiling, Component, unknown
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.links.pcie_links import between_gpus


def inside(node: str, hardware: NodeHardware, ranks: int, version: str = "", elsewhere: int = 0) -> Ceiling:
    """Return what an all-reduce of this number of GPUs of a node reaches with this NCCL version ("" if unknown).

    `elsewhere` are the ranks on other nodes.
    """
    used = _linked_gpus(node, hardware, ranks)
    if isinstance(used, Ceiling):
        return used
    settings = settings_on(hardware)
    without = _without_nvls(node, settings, version, NVLS_TREE if elsewhere else NVLS)
    found = _linked(node, hardware, used, without)
    return found if allows(settings, RING) or not without else _by_tree(node, found, settings, ranks + elsewhere)


def _linked_gpus(node: str, hardware: NodeHardware, ranks: int) -> tuple[str, ...] | Ceiling:
    """Return the GPUs of so many ranks, as the matrix names them; an unknown ceiling if their links are unknown."""
    if hardware.gpus is None or hardware.topology is None:
        return unknown(f"how the GPUs of {node} are connected (nvidia-smi topo -m)")
    used, models = hardware.topology.gpus[:ranks], hardware.gpus.models
    if len(used) < ranks:
        return unknown(f"how {ranks} ranks share the {len(used)} GPUs of {node}")
    if len(models) > 1:
        return unknown(f"the bandwidth between GPUs of different models ({', '.join(models)} in {node})")
    if is_on(settings_on(hardware), "NCCL_P2P_DISABLE"):
        return unknown(f"the bandwidth of host memory (NCCL_P2P_DISABLE is set on {node})")
    if generation_of(models[0]) is None and any(_linked_directly(hardware.topology, used[0], gpu) for gpu in used):
        return unknown(
            f"how fast the {'NVLinks' if hardware.gpus.vendor == 'NVIDIA' else 'XGMI links'} of {models[0]} are"
        )
    return used


# What sends and receives reach of a ring's bandwidth. Published: 0.84 to 0.95 and 0.81 to 0.92.
COPIED = {Op.ALL_TO_ALL: 0.9, Op.SEND_RECV: 0.85}


def of_op(op: Op, ring: Ceiling) -> Ceiling:
    """Return what an operation other than all-reduce carries where a ring carries so much."""
    share = COPIED.get(op)
    if share is None or ring.busbw is None:
        return ring
    return replace(ring, busbw=ring.busbw * share, term=f"{share:g} of a {ring.term}")


def inside_by(op: Op, node: str, hardware: NodeHardware, ranks: int, elsewhere: int = 0) -> Ceiling:
    """Return it for another operation than all-reduce. Of an all-to-all only a part stays inside the node.

    A ring between nodes takes as much of the NVLinks as one inside them, although one of its steps in a node goes over
    a NIC: it leaves by the NIC by which it came, and what its last GPU sends goes through the GPU near that NIC (PXN;
    NCCL source, graph/search.cc). By another NIC (NCCL_CROSS_NIC=1) n GPUs would let through n/(n-1) of it (NCCL issue
    1411); nothing was published of that for large messages.
    """
    used = _linked_gpus(node, hardware, ranks)
    if isinstance(used, Ceiling):
        return used
    settings, generation = settings_on(hardware), generation_of(hardware.gpus.models[0]) if hardware.gpus else None
    wiring = wiring_of(hardware.topology, used, generation.most) if generation and hardware.topology else None
    if op not in COPIED and not allows(settings, RING, op):
        return unknown(f"the {op.value} without a ring ({settings['NCCL_ALGO'].described} on {node})")
    if op in COPIED and not (wiring and (wiring.switched or len(used) == _TWO)):
        return unknown(f"the {op.value} between GPUs that are not linked by NVSwitches")
    if generation is None or wiring is None:
        return between_gpus(node, hardware, used)
    found = of_op(op, _ring(node, generation, wiring))
    if op is not Op.ALL_TO_ALL or found.busbw is None:
        return found
    return replace(found, busbw=found.busbw * (len(used) + elsewhere - 1) / (len(used) - 1))


def _by_tree(node: str, ring: Ceiling, settings: Mapping[str, PlacedSetting], world: int) -> Ceiling:
    """Return what a tree carries where a ring would carry so much and NCCL_ALGO leaves the tree alone."""
    if ring.busbw is None or not allows(settings, TREE):
        return ring
    busbw, why = ring.busbw * _OF_A_TREE * (world - 1) / world, f"no ring: {settings['NCCL_ALGO'].described} on {node}"
    return replace(ring, busbw=busbw, lowered_by=(*ring.lowered_by, why))


def carries_nvls_tree(node: str, hardware: NodeHardware, version: str) -> bool:
    """Return whether NCCL of this version joins NVLS of this node with that of others by a tree."""
    generation = generation_of(hardware.gpus.models[0]) if hardware.gpus and len(hardware.gpus.models) == 1 else None
    if generation is None or hardware.topology is None or not generation.nvls or not release_of(version):
        return False
    wiring = wiring_of(hardware.topology, hardware.topology.gpus, generation.most)
    switched = wiring is not None and wiring.switched
    return switched and not _without_nvls(node, settings_on(hardware), version, NVLS_TREE)


def _linked_directly(topology: TopologyFacts, one: str, other: str) -> bool:
    return bool(bonded(topology, one, other)) or topology.pairs.get((one, other)) == "XGMI"


def _linked(node: str, hardware: NodeHardware, used: tuple[str, ...], without: str) -> Ceiling:
    generation = generation_of(hardware.gpus.models[0]) if hardware.gpus else None
    wiring = wiring_of(hardware.topology, used, generation.most) if generation and hardware.topology else None
    if generation is None or wiring is None:
        return between_gpus(node, hardware, used)
    return _over_nvlink(node, len(used), generation, wiring, without)


def _over_nvlink(node: str, count: int, generation: Generation, wiring: Wiring, without: str) -> Ceiling:
    ring = _ring(node, generation, wiring)
    if ring.busbw is None or not (generation.nvls and wiring.switched):
        return ring
    switch = 2 * (count - 1) / (count + 1) * generation.nvls * ring.busbw
    if switch <= ring.busbw:
        return ring
    if without:
        return replace(ring, lowered_by=(without, *ring.lowered_by))
    return replace(ring, busbw=switch, term=f"NVLS over {count} GPUs: {_links(generation, wiring)}")


def _links(generation: Generation, wiring: Wiring) -> str:
    return f"{wiring.links} NVLinks x {generation.each:g} GB/s"


def _ring(node: str, generation: Generation, wiring: Wiring) -> Ceiling:
    term = f"ring over NVLink: {_links(generation, wiring)}"
    fewer = tuple(f"{wiring.links} NVLinks at {gpu} of {node}, more at its other GPUs" for gpu in wiring.fewer)
    return _nvlink(wiring.links * generation.each, term, fewer)


def _nvlink(busbw: float, term: str, lowered_by: tuple[str, ...]) -> Ceiling:
    return Ceiling(busbw, term, lowered_by, component=Component.NVLINK)


def _without_nvls(node: str, settings: Mapping[str, PlacedSetting], version: str, algorithm: str) -> str:
    """Return why NCCL does not use NVLS there by this algorithm, "" if it does."""
    release, since = release_of(version), _NVLS_SINCE[algorithm]
    if release and release[:2] < since:
        more = " between nodes" if algorithm == NVLS_TREE else ""
        return f"NCCL {version} has no NVLS{more} ({since[0]}.{since[1]} has)"
    if "NCCL_NVLS_ENABLE" in settings and not is_on(settings, "NCCL_NVLS_ENABLE"):
        return f"no NVLS: {settings['NCCL_NVLS_ENABLE'].described} on {node}"
    return "" if allows(settings, algorithm) else f"no NVLS: {settings['NCCL_ALGO'].described} on {node}"


def gpu_of_first_rank(hardware: NodeHardware) -> Gpu | None:
    """Return the GPU of a node's only rank, None if its GPUs are unknown."""
    return min(hardware.gpus.gpus, key=lambda gpu: gpu.index, default=None) if hardware.gpus else None


_NVLS_SINCE = {NVLS: (2, 17), NVLS_TREE: (2, 18)}
_OF_A_TREE = 0.92  # of a ring's bandwidth: NCCL source, graph/tuning.cc
_MOST_WITHOUT_SWITCH = 8  # GPUs
_TWO = 2


@dataclass(frozen=True)
class Generation:
    """The NVLinks of a GPU model: GB/s of each (as NCCL assumes), the most per GPU, the share that NVLS reaches."""

    each: float
    most: int
    nvls: float | None = None


@dataclass(frozen=True)
class Wiring:
    """The NVLinks of the GPU with the fewest; `switched`: all of them lead to NVSwitches."""

    links: int
    switched: bool
    fewer: tuple[str, ...] = ()  # GPUs with fewer links than the others


# NVIDIA H100 80GB HBM3, NVIDIA A100-SXM4-80GB, Tesla V100-SXM2-16GB, NVIDIA GeForce RTX 3090, NVIDIA RTX A6000
_GENERATIONS = (
    (expression(r"\bG?B[123]00\b"), Generation(40.1, 18, 0.74)),
    (expression(r"\bG?H(?:100|200|800|20)\b"), Generation(20.6, 18, 0.85)),
    (expression(r"\bA(?:100|800|30)\b"), Generation(20.0, 12)),
    (expression(r"\bA(?:40|4500|5000|5500|6000)\b|\bRTX 3090"), Generation(12.0, 4)),
    (expression(r"\bV100S?\b"), Generation(20.0, 6)),
    (expression(r"\bRTX (?:[568]000)\b(?! Ada)|\bTITAN RTX\b"), Generation(20.0, 2)),
    (expression(r"\bP100\b"), Generation(18.0, 4)),
)

# NV18
_BONDED = expression(r"NV(?P<links>\d{1,2})")


def generation_of(model: str) -> Generation | None:
    """Return the NVLinks of this model; None for a model that has none or is unknown here."""
    return next((generation for pattern, generation in _GENERATIONS if pattern.search(model)), None)


def bonded(topology: TopologyFacts, one: str, other: str) -> int:
    """Return how many NVLinks the matrix shows for two GPUs: between them, or from each to the switch."""
    return _count(topology.pairs.get((one, other), ""))


@lru_cache(64)  # a wiring looks at each pair of GPUs, of a few kinds
def _count(shown: str) -> int:
    found = _BONDED.fullmatch(shown)
    return int(found["links"]) if found else 0


def wiring_of(topology: TopologyFacts, used: Sequence[str], most: int) -> Wiring | None:
    """Return the NVLinks of a ring over these GPUs; None if they form no ring.

    If the matrix shows more links to all others than a GPU has, there is a switch: then each number counts all links.
    """
    totals = {gpu: sum(bonded(topology, gpu, one) for one in topology.gpus if one != gpu) for gpu in topology.gpus}
    switched = any(total > most for total in totals.values())
    if not _closed(topology, used):
        return None
    own = {gpu: _own(topology, gpu, used, switched=switched) for gpu in used}
    links = min(own.values())
    even = switched or len(used) == len(topology.gpus)  # some GPUs of a cube have fewer links to each other by design
    return Wiring(links, switched, tuple(gpu for gpu in used if even and own[gpu] == links < max(own.values())))


def _own(topology: TopologyFacts, gpu: str, used: Sequence[str], *, switched: bool) -> int:
    counts = [bonded(topology, gpu, one) for one in used if one != gpu]
    return max(counts) if switched else sum(counts)


def _closed(topology: TopologyFacts, used: Sequence[str]) -> bool:
    """Return whether NVLinks form a ring over all of these GPUs (for two: there and back)."""
    if all(bonded(topology, one, other) for one, other in pairwise((*used, used[0]))):
        return True
    # Without a switch the ring may need another order than the GPUs' numbers, as with eight V100s in a cube.
    orders = permutations(used[1:]) if len(used) <= _MOST_WITHOUT_SWITCH else iter(())
    return any(all(bonded(topology, *step) for step in pairwise((used[0], *order, used[0]))) for order in orders)
