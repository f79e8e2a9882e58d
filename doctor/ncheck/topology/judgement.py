"""What ncheck says of a topology matrix, a pasted one or a node's: worst hop of a ring, NVLinks, nearest NICs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING

from ncheck.model.remark import Remark, error, info, warning
from ncheck.parse.topology_matrix import RANK, Matrix, closest_nics

if TYPE_CHECKING:
    from ncheck.facts.topology import TopologyFacts

Paths = Mapping[tuple[str, str], str]

# What checks explain: that the matrix of a node lacks NVLinks, and that it differs from those of other nodes.
LINK_DOWN, UNEVEN = "NVLink down", "uneven NVLinks"

_MEANING = {
    "PIX": "one PCIe switch", "PXB": "several PCIe switches", "PHB": "the PCIe host bridge",
    "NODE": "host bridges within a NUMA node", "SYS": "the link between the CPUs", "SOC": "the link between the CPUs",
    "XGMI": "AMD's link between GPUs", "PCIE": "no XGMI",
}  # fmt: skip

_MOST_EXACT = 10  # GPUs for which every ring is tried: ten need 2^10 x 10 x 10 steps


def judged(matrix: TopologyFacts, unreadable: Sequence[str]) -> Iterator[Remark]:
    """Yield the remarks on a matrix, errors first."""
    paths = {pair: level for pair, level in matrix.pairs.items() if pair[0] != pair[1]}
    yield from _cut(matrix, paths)
    yield from _asymmetric(paths)
    yield from nvlink_remarks(matrix)
    yield from _ring(matrix)
    yield from _rails(matrix)
    yield from _affinity(matrix)
    if unreadable:
        yield warning(f"the legend names no device for {', '.join(unreadable)}")


def _cut(matrix: TopologyFacts, paths: Paths) -> Iterator[Remark]:
    missing = [
        f"{gpu} to {other}"
        for gpu in matrix.gpus
        for other in (*matrix.gpus, *matrix.nics)
        if gpu != other and (gpu, other) not in paths
    ]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield warning(f"the text is cut: no path from {missing[0]}{more}")


def _asymmetric(paths: Paths) -> Iterator[Remark]:
    for (one, other), level in paths.items():
        back = paths.get((other, one))
        if one < other and back is not None and back != level:
            yield warning(f"{one} to {other} is {level}, but {other} to {one} is {back}: one of the two rows is wrong")


def nvlink_remarks(matrix: TopologyFacts) -> Iterator[Remark]:
    """Yield what is wrong with the NVLinks of a node by itself; the checks of a run yield the same.

    An error only where NVSwitches join the GPUs, which then join all. Without them many boards are uneven by design:
    bridges join pairs, and of the cubes of V100 a job may see a part. GPUs in MIG mode are not judged.
    """
    gpus = [gpu for gpu in matrix.gpus if gpu not in matrix.mig]
    links = {pair: links_in(level) for pair in permutations(gpus, 2) if (level := matrix.pairs.get(pair))}
    if len(gpus) < 2 or len(links) < len(gpus) * (len(gpus) - 1):  # noqa: PLR2004  two GPUs make a pair
        return
    total = {gpu: sum(links[gpu, other] for other in gpus if other != gpu) for gpu in gpus}
    best = {gpu: max(links[gpu, other] for other in gpus if other != gpu) for gpu in gpus}
    without = [gpu for gpu in gpus if not total[gpu]]
    switched = max(total.values()) > _MOST_LINKS
    if switched:
        yield from _cut_off(links, gpus, without)
    elif len(without) == len(gpus):
        yield info("no NVLink between any two GPUs")
    elif without:
        yield info(f"no NVLink at {_named(without)}: usual where bridges join pairs of GPUs")
    whole = len(gpus) >= _WHOLE_BOARD
    count = total if not switched and (whole or all(links.values())) else best
    most = max(count.values())
    fewer = [f"{gpu} ({count[gpu]} of {most})" for gpu in gpus if 0 < count[gpu] < most]
    if fewer and (whole or max(best.values()) >= _BRIDGED):
        yield warning(f"fewer NVLinks than the other GPUs: {', '.join(fewer)}")


_MOST_LINKS = 18  # of any GPU until 2026: a matrix that shows more counts the links to a switch for each GPU behind it
_WHOLE_BOARD = 8  # GPUs, of which a job sees all
_BRIDGED = 3  # links between two GPUs, at least, where all pairs should have the same number: a cube has one or two


def _cut_off(links: Mapping[tuple[str, str], int], gpus: Sequence[str], without: Sequence[str]) -> Iterator[Remark]:
    if without:
        verb = "has" if len(without) == 1 else "have"
        yield error(f"{_named(without)} {verb} no NVLink, although NVSwitches join the other GPUs")
    apart = [
        f"{one} and {other}"
        for one, other in combinations(gpus, 2)
        if not links[one, other] and one not in without and other not in without
    ]
    if apart:
        yield error(f"no NVLink between {_named(apart, ' nor between ')}, although NVSwitches join the other GPUs")


def _named(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return between.join(names[:_SHOWN]) + more


_SHOWN = 8


def links_in(level: str) -> int:
    """Return how many NVLinks a path has: 18 of NV18, none of SYS."""
    return int(level[2:]) if level.startswith("NV") else 0


def in_words(level: str) -> str:
    """Describe a path: "NV18 (18 NVLinks)", "SYS (the link between the CPUs)"."""
    return f"{level} ({_MEANING.get(level) or f'{links_in(level)} NVLinks'})"


def _ring(matrix: TopologyFacts) -> Iterator[Remark]:
    if level := worst_hop(matrix):
        meaning = _MEANING.get(level, "NVLink")
        yield info(f"worst hop of a ring over all {len(matrix.gpus)} GPUs: {level} ({meaning})")


def worst_hop(matrix: Matrix) -> str:
    """Return the level over which a ring of all GPUs must go at worst, for it sets the bandwidth; "" if not known."""
    gpus = matrix.gpus
    edges = {pair: _cost(level) for pair in permutations(gpus, 2) if (level := matrix.pairs.get(pair))}
    if len(gpus) < 2 or len(edges) < len(gpus) * (len(gpus) - 1):  # noqa: PLR2004
        return ""
    for cost in sorted(set(edges.values())):
        if _has_ring(gpus, {pair for pair, each in edges.items() if each <= cost}):
            return min(level for pair, level in matrix.pairs.items() if edges.get(pair) == cost)
    return ""


def _cost(level: str) -> int:
    return -links_in(level) or 1 + RANK.get(level, len(RANK))


def _has_ring(gpus: Sequence[str], edges: set[tuple[str, str]]) -> bool:
    """Return whether a ring through all GPUs uses only these edges; for many GPUs whether they are connected."""
    if len(gpus) > _MOST_EXACT:
        reached, new = {gpus[0]}, {gpus[0]}
        while new:
            new = {other for one, other in edges if one in new} - reached
            reached |= new
        return len(reached) == len(gpus)
    numbers = range(len(gpus))
    next_of = [{b for b in numbers if (gpus[a], gpus[b]) in edges} for a in numbers]
    ends = {1: {0}}  # the set of GPUs that a path from the first has visited -> where it may end
    for visited in range(1, 1 << len(gpus), 2):
        for end in ends.get(visited, ()):
            for following in next_of[end]:
                if not visited & 1 << following:
                    ends.setdefault(visited | 1 << following, set()).add(following)
    return any(0 in next_of[end] for end in ends.get((1 << len(gpus)) - 1, ()))


def _rails(matrix: TopologyFacts) -> Iterator[Remark]:
    if not matrix.nics:
        yield info("the matrix has no NIC: no RDMA device that nvidia-smi knows, or an old driver")
        return
    yield from rail_remarks(matrix)
    used: dict[str, list[str]] = {}
    for gpu in matrix.gpus:
        nics, _ = closest_nics(matrix, gpu)
        if len(nics) == 1:
            used.setdefault(nics[0], []).append(gpu)
    for nic, gpus in used.items():
        if len(gpus) > 1:
            yield info(f"{', '.join(gpus)} share {nic} as their nearest NIC")


def rail_remarks(matrix: TopologyFacts) -> Iterator[Remark]:
    """Yield which GPUs have no NIC within their host bridge; the check of a run yields the same.

    A warning only if most GPUs have one, each NIC serving two at most, and not all NICs being at one host bridge: such
    a board has a NIC for each GPU or two, and one is missing or in a wrong slot. Other machines have their NICs at one
    processor, and a virtual machine hides all.
    """
    nearest = {gpu: found for gpu in matrix.gpus if (found := closest_nics(matrix, gpu))[1]}
    far = {gpu: found for gpu, found in nearest.items() if RANK.get(found[1], 0) > RANK["PHB"]}
    near = {gpu: nics for gpu, (nics, _) in nearest.items() if gpu not in far}
    serving = {nic for nics in near.values() for nic in nics}
    places = {gpu: (matrix.legend.get(nics[0], nics[0]), level) for gpu, (nics, level) in far.items()}
    shown = _named([f"{gpu} (nearest {nic}: {level})" for gpu, (nic, level) in places.items()])
    if far and not near:
        yield info(f"no GPU has a NIC within its host bridge, or a virtual machine hides it: {shown}")
    elif far and len(far) < len(near) <= 2 * len(serving) and _apart(matrix, serving):
        yield warning(f"no NIC within the host bridge of {shown}, although {len(near)} other GPUs have one")
    elif far:
        yield info(f"the NICs are near {', '.join(near)}, and beyond the host bridge of {shown}")


def _apart(matrix: TopologyFacts, nics: Collection[str]) -> bool:
    """Return whether two of the NICs are at different host bridges; a path that the matrix lacks says nothing."""
    levels = (matrix.pairs.get(pair, "SYS") for pair in combinations(sorted(nics), 2))
    return any(RANK.get(level, 0) > RANK["PHB"] for level in levels)


def _affinity(matrix: TopologyFacts) -> Iterator[Remark]:
    unknown = [gpu for gpu, cpus in matrix.cpu_affinity.items() if cpus in ("N/A", "")]
    if unknown and len(unknown) < len(matrix.cpu_affinity):
        yield warning(f"no CPU affinity for {', '.join(unknown)}")
