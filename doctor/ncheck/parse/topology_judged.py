"""What ncheck says of a matrix of `nvidia-smi topo -m`: the worst hop of a ring, GPUs without NVLink, the rails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ncheck.parse.reading import Remark, error, info, warning
from ncheck.parse.topology_matrix import RANK, closest_nics

if TYPE_CHECKING:
    from ncheck.facts.topology import TopologyFacts

Paths = Mapping[tuple[str, str], str]

_MEANING = {
    "PIX": "one PCIe switch", "PXB": "several PCIe switches", "PHB": "the PCIe host bridge",
    "NODE": "host bridges within a NUMA node", "SYS": "the link between the CPUs", "SOC": "the link between the CPUs",
}  # fmt: skip


_MOST_EXACT = 10  # GPUs for which every ring is tried: ten need 2^10 x 10 x 10 steps


def judged(matrix: TopologyFacts, unreadable: Sequence[str]) -> Iterator[Remark]:
    """Yield the remarks on a matrix, errors first."""
    paths = {pair: level for pair, level in matrix.pairs.items() if pair[0] != pair[1]}
    yield from _cut(matrix, paths)
    yield from _asymmetric(paths)
    yield from _nvlinks(matrix.gpus, paths)
    yield from _ring(matrix.gpus, paths)
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


def _nvlinks(gpus: Sequence[str], paths: Paths) -> Iterator[Remark]:
    peers = {gpu: [level for (one, other), level in paths.items() if one == gpu and other in gpus] for gpu in gpus}
    links = {gpu: sum(int(level[2:]) for level in levels if level.startswith("NV")) for gpu, levels in peers.items()}
    most = max(links.values(), default=0)
    without = [gpu for gpu, count in links.items() if not count and peers[gpu]]
    if most and without:
        yield error(f"{', '.join(without)} without NVLink, although the other GPUs have it")
    fewer = [f"{gpu} ({count} of {most})" for gpu, count in links.items() if 0 < count < most]
    if fewer and len({len(levels) for levels in peers.values()}) == 1:
        yield warning(f"fewer NVLinks than the other GPUs: {', '.join(fewer)}")
    if not most and len(gpus) > 1:
        yield info("no NVLink between any two GPUs")


def _ring(gpus: Sequence[str], paths: Paths) -> Iterator[Remark]:
    """Say over which hop a ring of all GPUs must go at worst: its bandwidth is that of this hop."""
    edges = {pair: _cost(level) for pair, level in paths.items() if pair[0] in gpus and pair[1] in gpus}
    if len(gpus) < 2 or len(edges) < len(gpus) * (len(gpus) - 1):  # noqa: PLR2004
        return
    for cost in sorted(set(edges.values())):
        if _has_ring(gpus, {pair for pair, each in edges.items() if each <= cost}):
            levels = sorted({level for pair, level in paths.items() if edges.get(pair) == cost})
            meaning = _MEANING.get(levels[0], "NVLink")
            yield info(f"worst hop of a ring over all {len(gpus)} GPUs: {levels[0]} ({meaning})")
            return


def _cost(level: str) -> int:
    return -int(level[2:]) if level.startswith("NV") else 1 + RANK[level]


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
    nearest = {gpu: closest_nics(matrix, gpu) for gpu in matrix.gpus}
    levels = {level for _, level in nearest.values() if level}
    if not matrix.nics:
        yield info("the matrix has no NIC: no RDMA device that nvidia-smi knows, or an old driver")
        return
    far = [f"{gpu} ({level})" for gpu, (_, level) in nearest.items() if RANK.get(level, 0) > RANK["PHB"]]
    if far and len(far) < len(nearest):
        yield warning(f"the nearest NIC is beyond the host bridge, other GPUs have one nearer: {', '.join(far)}")
    elif far:
        yield warning(f"no GPU has a NIC within its host bridge ({', '.join(sorted(levels))}): GPUDirect RDMA is slow")
    used: dict[str, list[str]] = {}
    for gpu, (nics, level) in nearest.items():
        if len(nics) == 1 and level:
            used.setdefault(nics[0], []).append(gpu)
    for nic, gpus in used.items():
        if len(gpus) > 1:
            yield info(f"{', '.join(gpus)} share {nic} as their nearest NIC")


def _affinity(matrix: TopologyFacts) -> Iterator[Remark]:
    unknown = [gpu for gpu, cpus in matrix.cpu_affinity.items() if cpus in ("N/A", "")]
    if unknown and len(unknown) < len(matrix.cpu_affinity):
        yield warning(f"no CPU affinity for {', '.join(unknown)}")
